// Runs what the command line asks for: see interop/foreign.
'use strict';

const { exchange } = require('./exchange.js');
const { runAll } = require('./scenario.js');

const [what, ...args] = process.argv.slice(2);

async function main() {
    switch (what) {
    case 'scenarios':
        for (const name of ['message', 'outcome', 'flow', 'address']) require(`./${name}.js`);
        return runAll(args);
    case 'restarts':
        require('./restart.js');
        return runAll(args);
    case 'write':
        return exchange.write(args[0]);
    case 'read':
        return exchange.read(args[0], Number(args[1]));
    default:
        throw new Error(`what is ${what}?`);
    }
}

main().then((good) => process.exit(good ? 0 : 1), (err) => {
    console.error(err);
    process.exit(1);
});

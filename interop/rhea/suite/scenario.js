// What the scenarios share: connections and links whose events can be waited for.
'use strict';

const readline = require('node:readline');
const rhea = require('rhea');

const URL = new globalThis.URL(process.env.LETO_AMQP_URL);
const PATIENCE = 20000; // milliseconds that any single wait may take

const scenarios = [];
let serial = 0;

// scenario declares one; it gets a Peer whose connections are closed behind it.
function scenario(name, body) {
    scenarios.push({ name, body });
}

function say(line) {
    process.stdout.write(JSON.stringify(line) + '\n');
}

// restart has the broker killed and started again.
function restart() {
    return new Promise((resolve) => {
        const lines = readline.createInterface({ input: process.stdin });
        lines.once('line', () => { lines.close(); resolve(); });
        say({ ask: 'restart' });
    });
}

async function runAll(names) {
    let good = true;
    for (const { name, body } of scenarios) {
        if (names.length && !names.includes(name)) continue;
        const peer = new Peer(name);
        let result = 'pass', text = '';
        try {
            await body(peer);
            await peer.close();
        } catch (err) {
            good = false;
            result = 'fail';
            text = err.stack || String(err);
            await peer.close().catch(() => {});
        }
        say({ scenario: name, result, text });
    }
    return good;
}

// within fails with a name when the promise takes too long.
function within(what, promise, patience = PATIENCE) {
    let timer;
    const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(`${what} takes more than ${patience} ms`)), patience);
    });
    return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// once waits for one of the events of an emitter; an event whose name ends in _error or
// _close that isn't waited for is an error.
function once(emitter, ...names) {
    return within(names.join(' or '), new Promise((resolve, reject) => {
        const bad = ['sender_error', 'receiver_error', 'session_error', 'connection_error', 'disconnected'].filter((n) => !names.includes(n));
        const off = () => {
            names.forEach((n) => emitter.removeListener(n, good));
            bad.forEach((n) => emitter.removeListener(n, wrong));
        };
        const good = (context) => { off(); resolve(context); };
        const wrong = (context) => {
            off();
            const end = context.sender || context.receiver || context.session || context.connection;
            reject(new Error(`${end && end.error ? `${end.error.condition}: ${end.error.description}` : context.error || 'disconnected'}`));
        };
        names.forEach((n) => emitter.on(n, good));
        bad.forEach((n) => emitter.on(n, wrong));
    }));
}

// Peer holds the connections of one scenario.
class Peer {
    constructor(name) {
        this.name = name;
        this.connections = [];
    }

    address() {
        return `rhea-${this.name}-${++serial}`;
    }

    async connect(options = {}) {
        const container = rhea.create_container();
        const connection = container.connect({
            host: URL.hostname, port: URL.port, reconnect: false, container_id: `rhea-${process.pid}-${++serial}`, ...options,
        });
        this.connections.push(connection);
        connection.on('error', () => {});
        await once(connection, 'connection_open');
        return connection;
    }

    async connection() {
        this.first = this.first || this.connect();
        return this.first;
    }

    async sender(target, { connection, ...options } = {}) {
        connection = connection || await this.connection();
        const link = connection.open_sender({ name: `sender-${++serial}`, target, ...options });
        await once(link, 'sender_open');
        return new Sender(link);
    }

    // receiver is a link whose credit is the scenario's business.
    async receiver(source, { connection, ...options } = {}) {
        connection = connection || await this.connection();
        const link = connection.open_receiver({ name: `receiver-${++serial}`, source, credit_window: 0, autoaccept: false, ...options });
        const inbox = new Receiver(this, link);
        await once(link, 'receiver_open');
        return inbox;
    }

    async send(address, ...messages) {
        const sender = await this.sender(address);
        for (const message of messages) await sender.send(message);
        await sender.close();
    }

    // fence goes to the broker and back, so that it has seen what was sent before.
    async fence(connection) {
        const sender = await this.sender('fence', { connection });
        await sender.send({ body: 'fence', ttl: 1 });
        await sender.close();
    }

    // find browses a queue that all share until the message with the id is there.
    async find(queue, id) {
        for (let i = 0; i < 200; i++) {
            const browser = await this.receiver({ address: queue, distribution_mode: 'copy' });
            const seen = await browser.drain(10000);
            await browser.close();
            const found = seen.find((a) => a.message.message_id === id);
            if (found) return found.message;
            await new Promise((resolve) => setTimeout(resolve, 50));
        }
        throw new Error(`message ${id} doesn't come to ${queue}`);
    }

    async close() {
        for (const connection of this.connections.splice(0)) {
            if (!connection.is_open()) continue;
            connection.close();
            await once(connection, 'connection_close', 'disconnected');
        }
    }
}

class Sender {
    constructor(link) {
        this.link = link;
        this.waiting = new Map();
        for (const outcome of ['accepted', 'rejected', 'released', 'modified']) {
            link.on(outcome, (context) => {
                const done = this.waiting.get(context.delivery.id);
                if (done) done({ outcome, delivery: context.delivery });
            });
        }
    }

    // post sends without waiting; the promise is for the outcome.
    post(message, format) {
        const delivery = this.link.send(message, undefined, format);
        return new Promise((resolve) => this.waiting.set(delivery.id, resolve)).finally(() => this.waiting.delete(delivery.id));
    }

    async credit() {
        while (!this.link.sendable()) await once(this.link, 'sendable');
    }

    async send(message, want = 'accepted') {
        await this.credit();
        const { outcome, delivery } = await within(`outcome of a message to ${this.link.name}`, this.post(message));
        if (outcome !== want) throw new Error(`${outcome}, not ${want}: ${JSON.stringify(delivery.remote_state)}`);
        return delivery;
    }

    async close() {
        this.link.close();
        await once(this.link, 'sender_close');
    }
}

class Receiver {
    constructor(peer, link) {
        this.peer = peer;
        this.link = link;
        this.arrived = [];
        link.on('message', ({ message, delivery }) => {
            this.arrived.push({ message, delivery });
            if (this.wake) this.wake();
        });
    }

    get address() {
        return this.link.source.address;
    }

    // receive grants credit for a message if there is none left.
    async receive() {
        if (!this.arrived.length && !this.link.credit) this.link.add_credit(1);
        if (!this.arrived.length) {
            await within(`receiving from ${this.link.name}`, new Promise((resolve) => { this.wake = resolve; }));
        }
        return this.arrived.shift();
    }

    async accept() {
        const got = await this.receive();
        got.delivery.accept();
        return got.message;
    }

    // drain grants credit, drains it, and returns what came.
    async drain(credit) {
        await this.peer.fence(this.link.connection); // rhea writes flows before dispositions
        if (credit) this.link.add_credit(credit);
        this.link.drain_credit();
        await once(this.link, 'receiver_drained');
        this.link.drain = false;
        return this.arrived.splice(0);
    }

    async close() {
        this.link.close();
        await once(this.link, 'receiver_close');
    }
}

module.exports = { scenario, runAll, restart, say, within, once, Peer, PATIENCE };

// Credit, draining, browsing and order.
'use strict';

const assert = require('node:assert');
const { scenario } = require('./scenario.js');

const numbers = (from, to) => Array.from({ length: to - from }, (_, i) => ({ body: from + i }));
const bodies = (arrived) => arrived.map((a) => a.message.body);

scenario('drain', async (peer) => {
    const queue = peer.address(), receiver = await peer.receiver(queue);
    assert.deepStrictEqual(await receiver.drain(10), []);
    await peer.send(queue, ...numbers(0, 3));
    assert.deepStrictEqual(bodies(await receiver.drain(2)), [0, 1]);
    assert.deepStrictEqual(bodies(await receiver.drain(10)), [2]);
    await peer.send(queue, ...numbers(3, 4));
    assert.strictEqual(receiver.arrived.length, 0, 'a message came for credit that was drained');
    assert.deepStrictEqual(bodies(await receiver.drain(1)), [3]);
});

scenario('credit_of_one', async (peer) => {
    const queue = peer.address();
    await peer.send(queue, ...numbers(0, 20));
    const receiver = await peer.receiver(queue);
    for (let i = 0; i < 20; i++) {
        const got = await receiver.receive();
        await peer.fence();
        assert.strictEqual(receiver.arrived.length, 0, 'more messages than credit');
        assert.strictEqual(got.message.body, i);
        got.delivery.accept();
    }
    assert.strictEqual((await receiver.drain(10)).length, 0);
});

scenario('browse', async (peer) => {
    const queue = peer.address();
    await peer.send(queue, ...numbers(0, 3));
    for (let i = 0; i < 2; i++) {
        const browser = await peer.receiver({ address: queue, distribution_mode: 'copy' });
        assert.strictEqual(browser.link.source.distribution_mode, 'copy');
        const seen = await browser.drain(10);
        assert.deepStrictEqual(bodies(seen), [0, 1, 2]);
        seen.forEach((a) => a.delivery.accept());
        await browser.close();
    }
    assert.deepStrictEqual(bodies(await (await peer.receiver(queue)).drain(10)), [0, 1, 2]);
});

scenario('priority', async (peer) => {
    const queue = peer.address();
    await peer.send(queue, ...Array.from({ length: 30 }, (_, i) => ({ priority: i * 7 % 10, body: [i * 7 % 10, i] })));
    const got = bodies(await (await peer.receiver(queue)).drain(100));
    assert.strictEqual(got.length, 30);
    assert.deepStrictEqual(got, [...got].sort((a, b) => b[0] - a[0] || a[1] - b[1]));
});

// The broker is killed and comes back.
'use strict';

const assert = require('node:assert');
const { scenario, restart, within } = require('./scenario.js');

scenario('reconnect_after_restart', async (peer) => {
    const queue = peer.address(), count = 50;
    const connection = await peer.connect({ reconnect: true, initial_reconnect_delay: 50, max_reconnect_delay: 500 });
    const sender = await peer.sender(queue, { connection });
    for (let i = 0; i < count; i++) await sender.send({ durable: true, body: i });
    const receiver = await peer.receiver(queue, { connection });
    for (let i = 0; i < 10; i++) await receiver.accept();
    await peer.fence(connection);

    const back = new Promise((resolve) => connection.once('connection_open', resolve));
    await restart();
    await within('reconnect', back);

    await sender.credit();
    await sender.send({ durable: true, body: count });
    for (let i = 10; i <= count; i++) assert.strictEqual((await receiver.accept()).body, i);
    assert.strictEqual((await receiver.drain(10)).length, 0);
    connection.set_reconnect(false);
});

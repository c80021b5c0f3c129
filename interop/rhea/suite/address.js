// Queues, topics and the ways to name them.
'use strict';

const assert = require('node:assert');
const { scenario, once } = require('./scenario.js');

const bodies = (arrived) => arrived.map((a) => a.message.body);

async function queue(peer, address) {
    const one = await peer.receiver(address), two = await peer.receiver(address), sender = await peer.sender(address);
    for (let i = 0; i < 3; i++) await sender.send({ body: i });
    assert.deepStrictEqual([...bodies(await one.drain(2)), ...bodies(await two.drain(2))].sort(), [0, 1, 2]);
}

async function topic(peer, address) {
    const sender = await peer.sender(address);
    await sender.send({ body: 'nobody listens' });
    const one = await peer.receiver(address), two = await peer.receiver(address);
    await sender.send({ body: 1 });
    await sender.send({ body: 2 });
    const late = await peer.receiver(address);
    assert.deepStrictEqual(bodies(await one.drain(10)), [1, 2]);
    assert.deepStrictEqual(bodies(await two.drain(10)), [1, 2]);
    assert.deepStrictEqual(await late.drain(10), []);
}

scenario('queue', (peer) => queue(peer, peer.address()));
scenario('queue_by_capability', (peer) => queue(peer, { address: peer.address(), capabilities: 'queue' }));
scenario('queue_by_prefix', (peer) => queue(peer, 'queue://' + peer.address()));
scenario('topic_by_capability', (peer) => topic(peer, { address: peer.address(), capabilities: ['topic'] }));
scenario('topic_by_prefix', (peer) => topic(peer, 'topic://' + peer.address()));

scenario('anonymous_relay', async (peer) => {
    const relay = await peer.sender({}), address = peer.address();
    await relay.send({ to: address, body: 1 });
    const got = await (await peer.receiver(address)).accept();
    assert.deepStrictEqual([got.to, got.body], [address, 1]);
    await relay.send({ body: 'to nobody' }, 'rejected');
});

scenario('request_reply', async (peer) => {
    const service = peer.address(), answering = await peer.connect();
    const requests = await peer.receiver(service, { connection: answering }), replies = await peer.sender({}, { connection: answering });
    const mine = await peer.receiver({ dynamic: true });
    assert.ok(mine.address);
    for (let i = 0; i < 3; i++) {
        await peer.send(service, { reply_to: mine.address, correlation_id: `c${i}`, body: i });
        const asked = await requests.accept();
        await replies.send({ to: asked.reply_to, correlation_id: asked.correlation_id, body: asked.body * 2 });
        const answer = await mine.accept();
        assert.deepStrictEqual([answer.correlation_id, answer.body], [`c${i}`, i * 2]);
    }
});

scenario('durable_subscription', async (peer) => {
    const source = { address: 'topic://' + peer.address(), durable: 2, expiry_policy: 'never' }, id = peer.address();
    const first = await peer.connect({ container_id: id });
    const one = await peer.receiver(source, { connection: first, name: 'subscription' });
    one.link.detach();
    await once(one.link, 'receiver_close');
    first.close();
    await once(first, 'connection_close');
    await peer.send(source.address, { body: 'while away' });
    const second = await peer.connect({ container_id: id });
    const again = await peer.receiver(source, { connection: second, name: 'subscription' });
    assert.strictEqual((await again.accept()).body, 'while away');
    await again.close();
});

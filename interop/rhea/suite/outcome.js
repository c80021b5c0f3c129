// What becomes of a message with each outcome.
'use strict';

const assert = require('node:assert');
const crypto = require('node:crypto');
const rhea = require('rhea');
const { scenario } = require('./scenario.js');

async function offer(peer, fields = {}) {
    const queue = peer.address(), id = crypto.randomUUID();
    await peer.send(queue, { message_id: id, body: 'marked', ...fields });
    return { queue, id, receiver: await peer.receiver(queue) };
}

scenario('accepted', async (peer) => {
    const { queue, receiver } = await offer(peer);
    await receiver.accept();
    await receiver.close();
    const other = await peer.receiver(queue, { connection: await peer.connect() });
    assert.strictEqual((await other.drain(10)).length, 0);
});

scenario('rejected', async (peer) => {
    const { queue, id, receiver } = await offer(peer, { message_annotations: { 'x-opt-mine': 'kept' } });
    (await receiver.receive()).delivery.reject({ condition: 'app:bad-order', description: 'no such article 4711' });
    assert.strictEqual((await receiver.drain(10)).length, 0);
    const dead = await peer.find('DLQ', id);
    assert.strictEqual(dead.body, 'marked');
    assert.strictEqual(dead.message_annotations['x-opt-ORIG-ADDRESS'], queue);
    assert.strictEqual(dead.message_annotations['x-opt-ORIG-QUEUE'], queue);
    assert.strictEqual(dead.message_annotations['x-opt-mine'], 'kept');
    assert.match(dead.message_annotations['x-opt-death-reason'], /app:bad-order.*no such article 4711/);
});

scenario('released', async (peer) => {
    const { id, receiver } = await offer(peer);
    const first = await receiver.receive();
    assert.ok(first.message.first_acquirer);
    first.delivery.release();
    const again = await receiver.accept();
    assert.strictEqual(again.message_id, id);
    assert.ok(!again.delivery_count && !again.first_acquirer);
});

scenario('modified_failed', async (peer) => {
    const { receiver } = await offer(peer, { message_annotations: { 'x-opt-old': 'as sent' } });
    for (let attempt = 0; attempt < 3; attempt++) {
        const got = await receiver.receive();
        assert.strictEqual(got.message.delivery_count || 0, attempt);
        got.delivery.modified({ delivery_failed: true, message_annotations: { 'x-opt-new': attempt } });
    }
    const got = await receiver.accept();
    assert.strictEqual(got.delivery_count, 3);
    assert.deepStrictEqual(got.message_annotations, { 'x-opt-old': 'as sent', 'x-opt-new': 2 });
});

scenario('modified_undeliverable_here', async (peer) => {
    const { queue, id, receiver } = await offer(peer);
    (await receiver.receive()).delivery.modified({ delivery_failed: true, undeliverable_here: true });
    const got = await (await peer.receiver(queue)).accept();
    assert.strictEqual(got.message_id, id);
    assert.strictEqual(got.delivery_count, 1);
    assert.strictEqual((await receiver.drain(10)).length, 0);
});

scenario('attempts_end_in_dlq', async (peer) => {
    const { id, receiver } = await offer(peer);
    for (let i = 0; i < 10; i++) (await receiver.receive()).delivery.modified({ delivery_failed: true });
    assert.strictEqual((await receiver.drain(10)).length, 0);
    assert.strictEqual((await peer.find('DLQ', id)).delivery_count, 10);
});

scenario('expired', async (peer) => {
    const { queue, id } = await offer(peer, { ttl: 200 });
    const late = await peer.find('ExpiryQueue', id);
    assert.strictEqual(late.message_annotations['x-opt-ORIG-QUEUE'], queue);
    assert.ok(late.message_annotations['x-opt-ACTUAL-EXPIRY']);
});

scenario('settle_modes', async (peer) => {
    const queue = peer.address();
    const settled = await peer.sender(queue, { snd_settle_mode: 1 });
    await settled.credit();
    settled.link.send({ body: 'settled' });
    const sender = await peer.sender(queue, { snd_settle_mode: 0 });
    await sender.send({ body: 'unsettled' });
    const second = await peer.receiver(queue, { rcv_settle_mode: 1 });
    const got = await second.receive();
    got.delivery.accept();
    await new Promise((resolve) => second.link.once('settled', resolve));
    const presettled = await peer.receiver(queue, { snd_settle_mode: 1 });
    assert.strictEqual((await presettled.receive()).delivery.remote_settled, true);
    assert.strictEqual((await (await peer.receiver(queue)).drain(10)).length, 0);
    assert.ok(rhea.message.is_accepted(got.delivery.state));
});

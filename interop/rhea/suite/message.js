// Messages: size, number, and what rhea makes of the types.
'use strict';

const assert = require('node:assert');
const crypto = require('node:crypto');
const rhea = require('rhea');
const { scenario } = require('./scenario.js');

const { types, message } = rhea;

scenario('ten_mebibytes', async (peer) => {
    const body = crypto.randomBytes(10 << 20), address = peer.address();
    await peer.send(address, { body: message.data_section(body) });
    const got = await (await peer.receiver(address)).accept();
    assert.ok(body.equals(got.body.content));
});

scenario('thousand_in_order', async (peer) => {
    const address = peer.address(), count = 1000;
    const sender = await peer.sender(address);
    const receiver = await peer.receiver(address, { credit_window: 100 });
    const outcomes = [];
    for (let i = 0; i < count; i++) {
        await sender.credit();
        outcomes.push(sender.post({ message_id: i, body: i }));
    }
    assert.ok((await Promise.all(outcomes)).every(({ outcome }) => outcome === 'accepted'));
    for (let i = 0; i < count; i++) assert.strictEqual((await receiver.accept()).body, i);
});

scenario('every_type', async (peer) => {
    const address = peer.address(), receiver = await peer.receiver(address), sender = await peer.sender(address);
    const big = Buffer.from('8000000000000001', 'hex'), uuid = crypto.randomBytes(16);
    const values = [
        [types.wrap_boolean(true), true], [types.wrap_boolean(false), false], [types.wrap_ubyte(255), 255], [types.wrap_ushort(65535), 65535],
        [types.wrap_uint(4294967295), 4294967295], [types.wrap_ulong(2 ** 53 - 1), 2 ** 53 - 1], [types.wrap_ulong(big), big],
        [types.wrap_byte(-128), -128], [types.wrap_short(-32768), -32768], [types.wrap_int(-2147483648), -2147483648],
        [types.wrap_long(-(2 ** 40)), -(2 ** 40)], [types.wrap_long(big), big], [types.wrap_float(1.5), 1.5],
        [types.wrap_double(Math.PI), Math.PI], [types.wrap_double(-Infinity), -Infinity], [types.wrap_char(0x1F680), 0x1F680],
        [types.wrap_timestamp(1234567890123), new Date(1234567890123)], [types.wrap_uuid(uuid), uuid],
        [types.wrap_binary(Buffer.alloc(256)), Buffer.alloc(256)], [types.wrap_string('grüße ☃ 🚀'), 'grüße ☃ 🚀'],
        [types.wrap_symbol('a.symbol'), 'a.symbol'], [['a', 1, null, [true]], ['a', 1, null, [true]]], [{ k: { l: [1] } }, { k: { l: [1] } }],
        [types.wrap_array([1, 2], types.Uint.typecode), [1, 2]],
    ];
    for (const [sent, want] of values) {
        if (!Array.isArray(want) && want.constructor !== Object) {
            await sender.send({ application_properties: { p: sent } });
            assert.deepStrictEqual((await receiver.accept()).application_properties.p, want);
        }
        await sender.send({ body: sent });
        assert.deepStrictEqual((await receiver.accept()).body, want);
    }
});

scenario('every_body', async (peer) => {
    const address = peer.address(), receiver = await peer.receiver(address), sender = await peer.sender(address);
    const one = Buffer.from('one'), none = Buffer.alloc(0);
    for (const [body, typecode, content] of [
        [message.data_section(one), 0x75, one], [message.data_sections([one, none, one]), 0x75, [one, none, one]],
        [message.sequence_section(['a', 1]), 0x76, ['a', 1]], [message.sequence_sections([['a'], [1]]), 0x76, [['a'], [1]]],
    ]) {
        await sender.send({ body });
        const got = (await receiver.accept()).body;
        assert.strictEqual(got.typecode, typecode);
        assert.deepStrictEqual(got.content, content);
    }
});

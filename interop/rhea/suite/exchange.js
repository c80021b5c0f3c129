// Specimens, written and read: see interop/foreign.
'use strict';

const fs = require('node:fs');
const rhea = require('rhea');
const { Peer, say } = require('./scenario.js');

const { types, message } = rhea;

// rhea gives an application values without their types; what it decodes from is kept.
const decode = message.decode;
message.decode = (buffer) => Object.assign(decode(buffer), { raw: buffer });

const FIELDS = {
    0x70: ['durable', 'priority', 'ttl', 'first_acquirer', 'delivery_count'],
    0x73: ['message_id', 'user_id', 'to', 'subject', 'reply_to', 'correlation_id', 'content_type', 'content_encoding',
        'absolute_expiry_time', 'creation_time', 'group_id', 'group_sequence', 'reply_to_group_id'],
};
const MAPS = { 0x72: 'message_annotations', 0x74: 'application_properties', 0x78: 'footer' };

// build makes of a specimen what an application would hand to rhea, with typed values.
function build(encoded) {
    const made = {}, data = [], sequences = [];
    for (const reader = new types.Reader(encoded); reader.remaining();) {
        const section = reader.read();
        const code = Number(section.descriptor.value);
        if (FIELDS[code]) {
            section.value.forEach((v, i) => { made[FIELDS[code][i]] = FIELDS[code][i].endsWith('_id') && v.value !== null ? v : v.value; });
        } else if (MAPS[code]) {
            made[MAPS[code]] = {};
            for (let i = 0; i < section.value.length; i += 2) made[MAPS[code]][section.value[i].value] = section.value[i + 1];
        } else if (code === 0x75) {
            data.push(section.value);
        } else if (code === 0x76) {
            sequences.push(section.value);
        } else if (code === 0x77) {
            if (section.descriptors || section.type.name === undefined) throw new Skip('rhea sends no described value as a body');
            section.descriptor = undefined;
            made.body = section;
        }
    }
    if (data.length) made.body = data.length > 1 ? message.data_sections(data) : message.data_section(data[0]);
    if (sequences.length) made.body = sequences.length > 1 ? message.sequence_sections(sequences) : message.sequence_section(sequences[0]);
    if (made.footer) throw new Skip('rhea writes the footer before the body');
    if (made.group_id && made.group_id.value !== undefined) made.group_id = made.group_id.value;
    if (made.reply_to_group_id && made.reply_to_group_id.value !== undefined) made.reply_to_group_id = made.reply_to_group_id.value;
    if (made.user_id && made.user_id.value !== undefined) made.user_id = made.user_id.value;
    return made;
}

class Skip extends Error {}

const exchange = {
    async write(address) {
        const peer = new Peer('write');
        const sender = await peer.sender(address);
        for (const { name, encoded } of JSON.parse(fs.readFileSync(process.env.LETO_SPECIMENS))) {
            let made;
            try {
                made = build(Buffer.from(encoded, 'hex'));
                message.encode(made);
            } catch (err) {
                say({ message: name, skip: err instanceof Skip ? err.message : `rhea can't encode it: ${err.message}` });
                continue;
            }
            await sender.send(made);
            say({ message: name });
        }
        await peer.close();
        return true;
    },

    async read(address, count) {
        const peer = new Peer('read');
        const receiver = await peer.receiver(address);
        for (let i = 0; i < count; i++) say({ raw: (await receiver.accept()).raw.toString('hex') });
        await peer.close();
        return true;
    },
};

module.exports = { exchange };

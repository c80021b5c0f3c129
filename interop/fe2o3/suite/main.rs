//! Scenarios written with fe2o3-amqp; see interop/foreign for what a program does.

mod peer;
mod transaction;

use fe2o3_amqp::types::definitions::{self, AmqpError};
use fe2o3_amqp::types::messaging::{
    message::__private::{Deserializable, Serializable},
    Body, Data, DistributionMode, Header, Message, MessageId, Modified, Outcome, Priority, Properties, Source, Target,
    TerminusDurability, TerminusExpiryPolicy,
};
use fe2o3_amqp::types::primitives::{Binary, OrderedMap, Symbol, Timestamp, Uuid, Value};
use serde_amqp::{described::Described, descriptor::Descriptor};
use peer::{fresh, got, numbered, value, Failure, Peer};
use std::io::BufRead;

type Done = Result<(), Failure>;

fn ensure(is: bool, what: impl std::fmt::Debug) -> Done {
    if is { Ok(()) } else { Err(format!("not so: {what:?}").into()) }
}

fn quoted(s: &str) -> String {
    let mut out = String::from("\"");
    for c in s.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => out.push(' '),
            c => out.push(c),
        }
    }
    out + "\""
}

fn say(pairs: &[(&str, &str)]) {
    let line: Vec<String> = pairs.iter().map(|(k, v)| format!("{}:{}", quoted(k), quoted(v))).collect();
    println!("{{{}}}", line.join(","));
}

macro_rules! scenarios {
    ($names:expr, $good:expr, $($name:ident),* $(,)?) => {$(
        let name = stringify!($name);
        if $names.is_empty() || $names.iter().any(|n| n == name) {
            let limit = std::time::Duration::from_secs(60);
            let text = match tokio::time::timeout(limit, $name()).await {
                Ok(Ok(())) => String::new(),
                Ok(Err(e)) => format!("failed: {e}"),
                Err(_) => "still running after 60 s".into(),
            };
            $good &= text.is_empty();
            say(&[("scenario", name), ("result", if text.is_empty() { "pass" } else { "fail" }), ("text", &text)]);
        }
    )*};
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (what, rest) = (args[0].as_str(), &args[1..]);
    let mut good = true;
    let result: Done = match what {
        "scenarios" => {
            scenarios!(rest, good, every_type, every_body, ten_mebibytes, thousand_in_order, accepted, rejected, released,
                modified_failed, modified_undeliverable_here, attempts_end_in_dlq, expired, drain, credit_of_one, browse,
                priority, queue, topic, durable_subscription, selector_is_refused, anonymous_relay, request_reply);
            use transaction::*;
            scenarios!(rest, good, transaction_commits, transaction_rolls_back, transaction_over_queues, transaction_acquires,
                transaction_refused_commit, transaction_ends_with_connection);
            Ok(())
        }
        "restarts" => {
            scenarios!(rest, good, reconnect_after_restart);
            Ok(())
        }
        "write" => write(&rest[0]).await,
        "read" => read(&rest[0], rest[1].parse().expect("a count")).await,
        _ => Err(format!("what is {what}?").into()),
    };
    if let Err(e) = result {
        eprintln!("{e}");
        good = false;
    }
    std::process::exit(if good { 0 } else { 1 });
}

async fn every_type() -> Done {
    let mut peer = Peer::new().await?;
    let address = fresh("types");
    let (mut sender, mut receiver) = (peer.sender(&address).await?, peer.receiver(&address).await?);
    let mut map = OrderedMap::new();
    map.insert(Value::String("k".into()), Value::Ubyte(1));
    for v in [
        Value::Bool(true), Value::Bool(false), Value::Ubyte(255), Value::Ushort(65535), Value::Uint(0), Value::Uint(u32::MAX),
        Value::Ulong(0), Value::Ulong(u64::MAX), Value::Byte(-128), Value::Short(i16::MIN), Value::Int(-1), Value::Int(i32::MIN),
        Value::Long(-1), Value::Long(i64::MIN), Value::Float(1.5.into()), Value::Double(std::f64::consts::PI.into()),
        Value::Char('\u{1F680}'), Value::Timestamp(Timestamp::from_milliseconds(1234567890123)), Value::Uuid(Uuid::from([7; 16])),
        Value::Binary(Binary::from(vec![0u8; 256])), Value::String("grüße ☃ 🚀".into()), Value::String("s".repeat(256)),
        Value::Symbol(Symbol::from("a.symbol")), Value::List(vec![Value::Int(1), Value::Null]), Value::Map(map),
    ] {
        sender.send(value(v.clone())).await?;
        let back = receiver.accept().await?;
        ensure(got(&back) == Some(&v), v)?;
    }
    peer.close().await
}

async fn every_body() -> Done {
    let mut peer = Peer::new().await?;
    let address = fresh("bodies");
    let (mut sender, mut receiver) = (peer.sender(&address).await?, peer.receiver(&address).await?);
    let data = |b: &[u8]| Data(Binary::from(b.to_vec()));
    sender.send(Message::builder().data_batch(vec![data(b"one"), data(b""), data(b"three")]).build()).await?;
    match receiver.accept().await?.body {
        Body::Data(all) => ensure(all.into_iter().map(|d| d.0.into_vec()).collect::<Vec<_>>() == [&b"one"[..], b"", b"three"], "data")?,
        other => ensure(false, other)?,
    }
    sender.send(Message::builder().sequence(vec![Value::Int(1), Value::String("a".into())]).build()).await?;
    match receiver.accept().await?.body {
        Body::Sequence(all) => {
            let all: Vec<_> = all.into_iter().map(|s| s.0).collect();
            ensure(all == [vec![Value::Int(1), Value::String("a".into())]], "sequence")?
        }
        other => ensure(false, other)?,
    }
    peer.close().await
}

async fn ten_mebibytes() -> Done {
    let mut peer = Peer::new().await?;
    let address = fresh("large");
    let body: Vec<u8> = (0..10usize << 20).map(|i| (i * 31 + (i >> 11)) as u8).collect();
    peer.sender(&address).await?.send(Message::builder().data(Binary::from(body.clone())).build()).await?;
    match peer.receiver(&address).await?.accept().await?.body {
        Body::Data(all) => ensure(all.into_iter().map(|d| d.0.into_vec()).collect::<Vec<_>>() == [body], "10 MiB are the same")?,
        _ => ensure(false, "a data section")?,
    }
    peer.close().await
}

async fn thousand_in_order() -> Done {
    let mut peer = Peer::new().await?;
    let address = fresh("thousand");
    let mut sender = peer.sender(&address).await?;
    let mut outcomes = Vec::new();
    for i in 0..1000 {
        outcomes.push(sender.link.send_batchable(numbered(i)).await?);
    }
    for outcome in outcomes {
        ensure(matches!(outcome.await?, Outcome::Accepted(_)), "accepted")?;
    }
    let mut receiver = peer.receiver(&address).await?;
    receiver.link.set_credit(1000).await?;
    for i in 0..1000 {
        let delivery = receiver.next().await?;
        ensure(got(delivery.message()) == Some(&Value::Int(i)), i)?;
        receiver.link.accept(&delivery).await?;
    }
    peer.close().await
}

fn marked(id: &str) -> Message<Body<Value>> {
    let properties = Properties::builder().message_id(MessageId::String(id.into())).build();
    let mut message = value(Value::String("marked".into()));
    message.properties = Some(properties);
    message
}

fn count(message: &Message<Body<Value>>) -> u32 {
    message.header.as_ref().map_or(0, |h| h.delivery_count)
}

fn failed(undeliverable_here: bool) -> Modified {
    Modified { delivery_failed: Some(true), undeliverable_here: Some(undeliverable_here), message_annotations: None }
}

async fn accepted() -> Done {
    let (mut peer, mut other) = (Peer::new().await?, Peer::new().await?);
    let address = fresh("accepted");
    peer.sender(&address).await?.send(numbered(1)).await?;
    let mut receiver = peer.receiver(&address).await?;
    receiver.accept().await?;
    receiver.link.close().await?;
    other.receiver(&address).await?.empty().await?;
    other.close().await?;
    peer.close().await
}

async fn rejected() -> Done {
    let mut peer = Peer::new().await?;
    let (address, id) = (fresh("rejected"), fresh("id"));
    peer.sender(&address).await?.send(marked(&id)).await?;
    let mut receiver = peer.receiver(&address).await?;
    let delivery = receiver.receive().await?;
    let error = definitions::Error::new(AmqpError::NotAllowed, Some("no such article 4711".into()), None);
    receiver.link.reject(&delivery, error).await?;
    receiver.empty().await?;
    let dead = peer.find("DLQ", &id).await?;
    let annotations = dead.message_annotations.ok_or("no annotations")?.0;
    for (key, want) in [
        ("x-opt-ORIG-ADDRESS", address.clone()), ("x-opt-ORIG-QUEUE", address),
        ("x-opt-death-reason", "rejected: amqp:not-allowed: no such article 4711".into()),
    ] {
        let found = annotations.iter().any(|(k, v)| format!("{k:?}").contains(key) && *v == Value::String(want.clone()));
        ensure(found, (key, want))?;
    }
    peer.close().await
}

async fn released() -> Done {
    let mut peer = Peer::new().await?;
    let address = fresh("released");
    peer.sender(&address).await?.send(numbered(1)).await?;
    let mut receiver = peer.receiver(&address).await?;
    let delivery = receiver.receive().await?;
    ensure(delivery.message().header.as_ref().is_some_and(|h| h.first_acquirer), "first-acquirer")?;
    receiver.link.release(&delivery).await?;
    ensure(count(&receiver.accept().await?) == 0, "uncounted")?;
    peer.close().await
}

async fn modified_failed() -> Done {
    let mut peer = Peer::new().await?;
    let address = fresh("modified");
    peer.sender(&address).await?.send(numbered(1)).await?;
    let mut receiver = peer.receiver(&address).await?;
    for attempt in 0..3 {
        let delivery = receiver.receive().await?;
        ensure(count(delivery.message()) == attempt, attempt)?;
        receiver.link.modify(&delivery, failed(false)).await?;
    }
    ensure(count(&receiver.accept().await?) == 3, "three attempts")?;
    peer.close().await
}

async fn modified_undeliverable_here() -> Done {
    let mut peer = Peer::new().await?;
    let address = fresh("undeliverable");
    peer.sender(&address).await?.send(numbered(1)).await?;
    let mut here = peer.receiver(&address).await?;
    let delivery = here.receive().await?;
    here.link.modify(&delivery, failed(true)).await?;
    ensure(count(&peer.receiver(&address).await?.accept().await?) == 1, "another link has it")?;
    here.empty().await?;
    peer.close().await
}

async fn attempts_end_in_dlq() -> Done {
    let mut peer = Peer::new().await?;
    let (address, id) = (fresh("attempts"), fresh("id"));
    peer.sender(&address).await?.send(marked(&id)).await?;
    let mut receiver = peer.receiver(&address).await?;
    for _ in 0..10 {
        let delivery = receiver.receive().await?;
        receiver.link.modify(&delivery, failed(false)).await?;
    }
    receiver.empty().await?;
    ensure(count(&peer.find("DLQ", &id).await?) == 10, "ten attempts")?;
    peer.close().await
}

async fn expired() -> Done {
    let mut peer = Peer::new().await?;
    let (address, id) = (fresh("expired"), fresh("id"));
    let mut message = marked(&id);
    message.header = Some(Header { ttl: Some(200), ..Header::default() });
    peer.sender(&address).await?.send(message).await?;
    peer.find("ExpiryQueue", &id).await?;
    peer.receiver(&address).await?.empty().await?;
    peer.close().await
}

async fn drain() -> Done {
    let mut peer = Peer::new().await?;
    let address = fresh("drain");
    let mut receiver = peer.receiver(&address).await?;
    receiver.empty().await?;
    let mut sender = peer.sender(&address).await?;
    for i in 0..3 {
        sender.send(numbered(i)).await?;
    }
    ensure(receiver.drain(2, 2).await? == [0, 1], "two of three")?;
    ensure(receiver.drain(10, 1).await? == [2], "the third")?;
    peer.close().await
}

async fn credit_of_one() -> Done {
    let mut peer = Peer::new().await?;
    let address = fresh("one");
    let mut sender = peer.sender(&address).await?;
    for i in 0..20 {
        sender.send(numbered(i)).await?;
    }
    let mut receiver = peer.receiver(&address).await?;
    for i in 0..20 {
        ensure(got(&receiver.accept().await?) == Some(&Value::Int(i)), i)?;
        ensure(receiver.link.credit() == 0, "no credit is left")?;
    }
    receiver.empty().await?;
    peer.close().await
}

async fn browse() -> Done {
    let mut peer = Peer::new().await?;
    let address = fresh("browse");
    let mut sender = peer.sender(&address).await?;
    for i in 0..3 {
        sender.send(numbered(i)).await?;
    }
    for _ in 0..2 {
        let source = Source::builder().address(address.as_str()).distribution_mode(DistributionMode::Copy).build();
        let mut browser = peer.receiver_of(source).await?;
        ensure(browser.drain(10, 3).await? == [0, 1, 2], "all three are seen")?;
        browser.link.close().await?;
    }
    ensure(peer.receiver(&address).await?.drain(10, 3).await? == [0, 1, 2], "all three are still there")?;
    peer.close().await
}

async fn priority() -> Done {
    let mut peer = Peer::new().await?;
    let address = fresh("priority");
    let mut sender = peer.sender(&address).await?;
    let mut want: Vec<i32> = (0..30).collect();
    for i in &want {
        let mut message = numbered(*i);
        message.header = Some(Header { priority: Priority((i * 7 % 10) as u8), ..Header::default() });
        sender.send(message).await?;
    }
    want.sort_by_key(|i| -(i * 7 % 10));
    ensure(peer.receiver(&address).await?.drain(100, 30).await? == want, "by priority, then in order")?;
    peer.close().await
}

async fn queue() -> Done {
    let mut peer = Peer::new().await?;
    let address = fresh("queue");
    let (mut one, mut two) = (peer.receiver(&address).await?, peer.receiver(&address).await?);
    let mut sender = peer.sender(&address).await?;
    for i in 0..3 {
        sender.send(numbered(i)).await?;
    }
    let mut all = one.drain(2, 1).await?;
    all.extend(two.drain(2, 1).await?);
    all.sort();
    ensure(all == [0, 1, 2], all)?;
    peer.close().await
}

async fn topic() -> Done {
    let mut peer = Peer::new().await?;
    let address = format!("topic://{}", fresh("topic"));
    let mut sender = peer.sender(&address).await?;
    sender.send(numbered(0)).await?; // nobody listens
    let (mut one, mut two) = (peer.receiver(&address).await?, peer.receiver(&address).await?);
    sender.send(numbered(1)).await?;
    sender.send(numbered(2)).await?;
    let mut late = peer.receiver(&address).await?;
    ensure(one.drain(10, 2).await? == [1, 2], "the first has both")?;
    ensure(two.drain(10, 2).await? == [1, 2], "the second has both")?;
    late.empty().await?;
    peer.close().await
}

/// It is there while nobody attends it: a link that is detached and not closed, found again by its name.
async fn durable_subscription() -> Done {
    let (container, name) = (fresh("subscriber"), fresh("subscription"));
    let address = format!("topic://{}", fresh("durable"));
    let source = || {
        Source::builder().address(address.as_str()).durable(TerminusDurability::UnsettledState)
            .expiry_policy(TerminusExpiryPolicy::Never).build()
    };
    let mut subscriber = Peer::named(&container).await?;
    let subscription = subscriber.receiver_named(&name, source()).await?;
    subscription.link.detach().await.map_err(|(_, e)| e)?;
    subscriber.close().await?;

    let mut peer = Peer::new().await?;
    let mut sender = peer.sender(&address).await?;
    sender.send(numbered(1)).await?;
    sender.send(numbered(2)).await?;

    let mut subscriber = Peer::named(&container).await?;
    let mut subscription = subscriber.receiver_named(&name, source()).await?;
    ensure(subscription.drain(10, 2).await? == [1, 2], "what was sent meanwhile")?;
    subscription.link.close().await?; // which ends it
    sender.send(numbered(3)).await?;
    let mut subscription = subscriber.receiver_named(&name, source()).await?;
    subscription.empty().await?;
    subscription.link.close().await?;
    subscriber.close().await?;
    peer.close().await
}

/// Better than one that is passed over.
async fn selector_is_refused() -> Done {
    let mut peer = Peer::new().await?;
    let selector = Described { descriptor: Descriptor::Code(0x0000_468C_0000_0004), value: Value::String("colour = 'red'".into()) };
    let source = Source::builder().address(fresh("selector")).add_to_filter("apache.org:selector-filter:string", selector).build();
    match peer.receiver_of(source).await {
        Ok(_) => Err("the selector is taken".into()),
        Err(e) => ensure(format!("{e:?}").contains("NotImplemented"), e),
    }
}

async fn anonymous_relay() -> Done {
    let mut peer = Peer::new().await?;
    let address = fresh("relay");
    let mut relay = peer.sender_to(Target::builder().build()).await?;
    let mut message = numbered(1);
    message.properties = Some(Properties::builder().to(address.clone()).build());
    relay.send(message).await?;
    ensure(got(&peer.receiver(&address).await?.accept().await?) == Some(&Value::Int(1)), "where it is to")?;
    ensure(matches!(relay.link.send(numbered(2)).await?, Outcome::Rejected(_)), "rejected without a to")?;
    peer.close().await
}

async fn request_reply() -> Done {
    let (mut client, mut answering) = (Peer::new().await?, Peer::new().await?);
    let service = fresh("service");
    let mut requests = answering.receiver(&service).await?;
    let mut replies = answering.sender_to(Target::builder().build()).await?;
    let mut mine = client.receiver_of(Source::builder().dynamic(true).build()).await?;
    let address = mine.link.source().clone().and_then(|s| s.address).ok_or("no dynamic address")?;
    let mut sender = client.sender(&service).await?;
    for i in 0..3 {
        let mut request = numbered(i);
        request.properties = Some(Properties::builder().reply_to(address.clone()).build());
        sender.send(request).await?;
        let asked = requests.accept().await?;
        let to = asked.properties.and_then(|p| p.reply_to).ok_or("no reply-to")?;
        let mut reply = numbered(i * 2);
        reply.properties = Some(Properties::builder().to(to).build());
        replies.send(reply).await?;
        ensure(got(&mine.accept().await?) == Some(&Value::Int(i * 2)), i)?;
    }
    answering.close().await?;
    client.close().await
}

/// fe2o3-amqp doesn't reconnect by itself: an application opens another connection.
async fn reconnect_after_restart() -> Done {
    let mut peer = Peer::new().await?;
    let address = fresh("restart");
    let mut sender = peer.sender(&address).await?;
    for i in 0..50 {
        let mut message = numbered(i);
        message.header = Some(Header { durable: true, ..Header::default() });
        sender.send(message).await?;
    }
    let mut receiver = peer.receiver(&address).await?;
    for i in 0..10 {
        ensure(got(&receiver.accept().await?) == Some(&Value::Int(i)), i)?;
    }
    sender.send(numbered(50)).await?;
    say(&[("ask", "restart")]);
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    let mut peer = Peer::new().await?;
    let mut receiver = peer.receiver(&address).await?;
    for i in 10..=50 {
        ensure(got(&receiver.accept().await?) == Some(&Value::Int(i)), i)?;
    }
    receiver.empty().await?;
    peer.close().await
}

async fn write(address: &str) -> Done {
    let text = std::fs::read_to_string(std::env::var("LETO_SPECIMENS")?)?;
    let mut peer = Peer::new().await?;
    let mut sender = peer.sender(address).await?;
    let cut = |s: &str, key: &str| Some(s.split_once(key)?.1.split_once('"')?.0.to_string());
    for specimen in text.split('}') {
        let (Some(digits), Some(name)) = (cut(specimen, "\"encoded\":\""), cut(specimen, "\"name\":\"")) else { continue };
        let bytes = (0..digits.len()).step_by(2).map(|i| u8::from_str_radix(&digits[i..i + 2], 16)).collect::<Result<Vec<_>, _>>()?;
        let decoded: Result<Deserializable<Message<Body<Value>>>, _> = serde_amqp::from_slice(&bytes);
        match decoded {
            Ok(message) => {
                sender.send(message.0).await.map_err(|e| format!("{name}: {e}"))?;
                say(&[("message", &name)]);
            }
            Err(e) => say(&[("message", &name), ("skip", &e.to_string())]),
        }
    }
    peer.close().await
}

async fn read(address: &str, count: usize) -> Done {
    let mut peer = Peer::new().await?;
    let mut receiver = peer.receiver(address).await?;
    for _ in 0..count {
        let message = match receiver.accept().await {
            Ok(message) => message,
            Err(e) => {
                say(&[("lost", &e.to_string())]);
                continue;
            }
        };
        let bytes = serde_amqp::to_vec(&Serializable(message))?;
        let digits: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
        say(&[("again", &digits)]);
    }
    peer.close().await
}

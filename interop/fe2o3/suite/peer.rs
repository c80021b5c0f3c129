//! What the scenarios share: a connection with a session, and links whose waits end.

use fe2o3_amqp::connection::ConnectionHandle;
use fe2o3_amqp::link::delivery::Delivery;
use fe2o3_amqp::link::receiver::CreditMode;
use fe2o3_amqp::session::SessionHandle;
use fe2o3_amqp::types::messaging::{AmqpValue, Body, DistributionMode, Message, MessageId, Outcome, SerializableBody, Source, Target};
use fe2o3_amqp::types::primitives::Value;
use fe2o3_amqp::{Connection, Receiver, Sender, Session};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::timeout;

pub type Failure = Box<dyn std::error::Error>;

const PATIENCE: Duration = Duration::from_secs(20);

static SERIAL: AtomicUsize = AtomicUsize::new(0);

/// An address, or a name, that nobody else uses.
pub fn fresh(what: &str) -> String {
    format!("fe2o3-{what}-{}-{}", std::process::id(), SERIAL.fetch_add(1, Ordering::Relaxed))
}

pub fn value(v: Value) -> Message<Body<Value>> {
    Message::builder().body(Body::Value(AmqpValue(v))).build()
}

pub fn numbered(i: i32) -> Message<Body<Value>> {
    value(Value::Int(i))
}

/// The value of a message whose body is one.
pub fn got(message: &Message<Body<Value>>) -> Option<&Value> {
    match &message.body {
        Body::Value(v) => Some(&v.0),
        _ => None,
    }
}

pub struct Peer {
    connection: ConnectionHandle<()>,
    pub session: SessionHandle<()>,
}

impl Peer {
    pub async fn new() -> Result<Peer, Failure> {
        Peer::named(&fresh("container")).await
    }

    /// A peer that the broker knows again by its container-id.
    pub async fn named(container: &str) -> Result<Peer, Failure> {
        let url = std::env::var("LETO_AMQP_URL")?;
        let mut connection = timeout(PATIENCE, Connection::open(container, url.as_str())).await??;
        let session = timeout(PATIENCE, Session::begin(&mut connection)).await??;
        Ok(Peer { connection, session })
    }

    pub async fn close(mut self) -> Result<(), Failure> {
        timeout(PATIENCE, self.session.end()).await??;
        timeout(PATIENCE, self.connection.close()).await??;
        Ok(())
    }

    pub async fn sender(&mut self, address: &str) -> Result<Out, Failure> {
        self.sender_to(Target::builder().address(address).build()).await
    }

    pub async fn sender_to(&mut self, target: Target) -> Result<Out, Failure> {
        let builder = Sender::builder().name(fresh("sender")).target(target);
        Ok(Out { link: timeout(PATIENCE, builder.attach(&mut self.session)).await?? })
    }

    pub async fn receiver(&mut self, address: &str) -> Result<In, Failure> {
        self.receiver_of(Source::builder().address(address).build()).await
    }

    pub async fn receiver_of(&mut self, source: Source) -> Result<In, Failure> {
        self.receiver_named(&fresh("receiver"), source).await
    }

    pub async fn receiver_named(&mut self, name: &str, source: Source) -> Result<In, Failure> {
        let builder = Receiver::builder().name(name).source(source).credit_mode(CreditMode::Manual);
        Ok(In { link: timeout(PATIENCE, builder.attach(&mut self.session)).await?? })
    }

    /// Browses a queue that all share until the message with the id is there.
    pub async fn find(&mut self, address: &str, id: &str) -> Result<Message<Body<Value>>, Failure> {
        for _ in 0..200 {
            let source = Source::builder().address(address).distribution_mode(DistributionMode::Copy).build();
            let mut browser = self.receiver_of(source).await?;
            let seen = browser.drained(10_000, 0).await?;
            browser.link.close().await?;
            for delivery in seen {
                let properties = delivery.message().properties.as_ref();
                if properties.is_some_and(|p| p.message_id == Some(MessageId::String(id.into()))) {
                    return Ok(delivery.into_message());
                }
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Err(format!("{id} doesn't come to {address}").into())
    }
}

pub struct Out {
    pub link: Sender,
}

impl Out {
    pub async fn send<T: SerializableBody>(&mut self, message: Message<T>) -> Result<(), Failure> {
        match timeout(PATIENCE, self.link.send(message)).await?? {
            Outcome::Accepted(_) => Ok(()),
            other => Err(format!("{other:?}, not accepted").into()),
        }
    }
}

pub struct In {
    pub link: Receiver,
}

impl In {
    pub async fn next(&mut self) -> Result<Delivery<Body<Value>>, Failure> {
        Ok(timeout(PATIENCE, self.link.recv()).await??)
    }

    /// Grants a credit and waits for a message.
    pub async fn receive(&mut self) -> Result<Delivery<Body<Value>>, Failure> {
        self.link.set_credit(1).await?;
        self.next().await
    }

    pub async fn accept(&mut self) -> Result<Message<Body<Value>>, Failure> {
        let delivery = self.receive().await?;
        self.link.accept(&delivery).await?;
        Ok(delivery.into_message())
    }

    /// Grants credit, drains it, and returns what came. fe2o3-amqp doesn't tell when a drain is
    /// answered: at least so many have to come, and then nothing for a while.
    pub async fn drained(&mut self, credit: u32, least: usize) -> Result<Vec<Delivery<Body<Value>>>, Failure> {
        self.link.set_credit(credit).await?;
        self.link.drain().await?;
        let mut came = Vec::new();
        while came.len() < least {
            came.push(self.next().await?);
        }
        while let Ok(delivery) = timeout(Duration::from_millis(200), self.link.recv()).await {
            came.push(delivery?);
        }
        Ok(came)
    }

    /// The numbers in what a drain brings, at least so many.
    pub async fn drain(&mut self, credit: u32, least: usize) -> Result<Vec<i32>, Failure> {
        let mut all = Vec::new();
        for delivery in self.drained(credit, least).await? {
            match got(delivery.message()) {
                Some(Value::Int(i)) => all.push(*i),
                other => return Err(format!("{other:?} is no number").into()),
            }
        }
        Ok(all)
    }

    pub async fn empty(&mut self) -> Result<(), Failure> {
        let left = self.drained(10, 0).await?;
        if left.is_empty() { Ok(()) } else { Err(format!("{} messages are left", left.len()).into()) }
    }
}

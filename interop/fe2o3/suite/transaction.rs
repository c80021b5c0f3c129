//! Work that holds as a whole or not at all.

use crate::peer::{fresh, got, numbered, Failure, In, Out, Peer};
use crate::{count, ensure, failed, marked, Done};
use fe2o3_amqp::transaction::{OwnedTransaction, TransactionAcquisition, TransactionDischarge, TransactionPosting, TransactionRetirement};
use fe2o3_amqp::types::messaging::{Outcome, Target};
use fe2o3_amqp::types::primitives::Value;

async fn begin(peer: &mut Peer) -> Result<OwnedTransaction, Failure> {
    Ok(OwnedTransaction::declare(&mut peer.session, fresh("controller"), None).await?)
}

async fn post(work: &OwnedTransaction, sender: &mut Out, i: i32) -> Done {
    let outcome = work.post(&mut sender.link, numbered(i)).await?;
    ensure(matches!(outcome, Outcome::Accepted(_)), outcome)
}

/// Accepts the next message, which is the attempt-th delivery of number i.
async fn accept(work: &OwnedTransaction, receiver: &mut In, i: i32, attempt: u32) -> Done {
    let delivery = receiver.receive().await?;
    ensure(got(delivery.message()) == Some(&Value::Int(i)) && count(delivery.message()) == attempt, delivery.message())?;
    Ok(work.accept(&mut receiver.link, &delivery).await?)
}

/// What there is in a queue.
async fn contents(address: &str, least: usize) -> Result<Vec<i32>, Failure> {
    let mut peer = Peer::new().await?;
    let all = peer.receiver(address).await?.drain(100, least).await?;
    peer.close().await?;
    Ok(all)
}

pub async fn transaction_commits() -> Done {
    let mut peer = Peer::new().await?;
    let address = fresh("commit");
    let mut sender = peer.sender(&address).await?;
    let work = begin(&mut peer).await?;
    post(&work, &mut sender, 1).await?;
    post(&work, &mut sender, 2).await?;
    ensure(contents(&address, 0).await?.is_empty(), "nothing is seen before the commit")?;
    work.commit().await?;

    let work = begin(&mut peer).await?;
    let mut receiver = peer.receiver(&address).await?;
    accept(&work, &mut receiver, 1, 0).await?;
    accept(&work, &mut receiver, 2, 0).await?;
    work.commit().await?;
    receiver.link.close().await?;
    ensure(contents(&address, 0).await?.is_empty(), "what was accepted is gone")?;
    peer.close().await
}

/// What was posted is gone, and what was accepted is back with one more attempt.
pub async fn transaction_rolls_back() -> Done {
    let mut peer = Peer::new().await?;
    let address = fresh("rollback");
    let (mut sender, mut receiver) = (peer.sender(&address).await?, peer.receiver(&address).await?);
    sender.send(numbered(1)).await?;
    for attempt in 0..3 {
        let work = begin(&mut peer).await?;
        post(&work, &mut sender, 2).await?;
        accept(&work, &mut receiver, 1, attempt).await?;
        work.rollback().await?;
    }
    ensure(count(&receiver.accept().await?) == 3, "three attempts")?;
    receiver.empty().await?;
    peer.close().await
}

pub async fn transaction_over_queues() -> Done {
    let mut peer = Peer::new().await?;
    let (from, to, id) = (fresh("from"), fresh("to"), fresh("id"));
    let (mut sender, mut other, mut receiver) = (peer.sender(&from).await?, peer.sender(&to).await?, peer.receiver(&from).await?);
    sender.send(numbered(1)).await?;
    sender.send(marked(&id)).await?;
    sender.send(numbered(3)).await?;
    let work = begin(&mut peer).await?;
    accept(&work, &mut receiver, 1, 0).await?;
    post(&work, &mut other, 1).await?;
    let rejected = receiver.receive().await?;
    work.reject(&mut receiver.link, &rejected, None).await?;
    let tried = receiver.receive().await?;
    work.modify(&mut receiver.link, &tried, failed(false)).await?;
    ensure(contents(&to, 0).await?.is_empty(), "nothing is seen before the commit")?;
    work.commit().await?;
    peer.find("DLQ", &id).await?;
    ensure(contents(&to, 1).await? == [1], "moved")?;
    ensure(count(&receiver.accept().await?) == 1, "one attempt")?;
    receiver.empty().await?;
    peer.close().await
}

/// What is acquired under a transaction is back after a rollback, also if nothing was said of it.
pub async fn transaction_acquires() -> Done {
    let mut peer = Peer::new().await?;
    let address = fresh("acquire");
    let (mut sender, mut receiver) = (peer.sender(&address).await?, peer.receiver(&address).await?);
    sender.send(numbered(1)).await?;
    sender.send(numbered(2)).await?;
    for (attempt, commits) in [(0, false), (1, true)] {
        let mut work = begin(&mut peer).await?.acquire(&mut receiver.link, 2).await?;
        for i in [1, 2] {
            let delivery = work.recv::<fe2o3_amqp::types::messaging::Body<Value>>().await?;
            ensure(got(delivery.message()) == Some(&Value::Int(i)) && count(delivery.message()) == attempt, delivery.message())?;
            if i == 1 || commits {
                work.accept(&delivery).await?;
            }
        }
        if commits { work.commit().await? } else { work.rollback().await? }
    }
    receiver.empty().await?;
    receiver.link.close().await?;
    ensure(contents(&address, 0).await?.is_empty(), "what was accepted is gone")?;
    peer.close().await
}

/// A message that can't be routed leaves the transaction no way but back.
pub async fn transaction_refused_commit() -> Done {
    let mut peer = Peer::new().await?;
    let address = fresh("refused");
    let (mut sender, mut receiver) = (peer.sender(&address).await?, peer.receiver(&address).await?);
    let mut relay = peer.sender_to(Target::builder().build()).await?;
    sender.send(numbered(1)).await?;
    let work = begin(&mut peer).await?;
    post(&work, &mut sender, 2).await?;
    accept(&work, &mut receiver, 1, 0).await?;
    ensure(!matches!(work.post(&mut relay.link, numbered(3)).await, Ok(Outcome::Accepted(_))), "a message to nowhere is accepted")?;
    ensure(work.commit().await.is_err(), "the commit is refused")?;
    ensure(count(&receiver.accept().await?) == 1, "one attempt")?;
    receiver.empty().await?;
    peer.close().await
}

pub async fn transaction_ends_with_connection() -> Done {
    let address = fresh("lost");
    let mut other = Peer::new().await?;
    other.sender(&address).await?.send(numbered(1)).await?;
    let mut peer = Peer::new().await?;
    let (mut sender, mut receiver) = (peer.sender(&address).await?, peer.receiver(&address).await?);
    let work = begin(&mut peer).await?;
    accept(&work, &mut receiver, 1, 0).await?;
    post(&work, &mut sender, 2).await?;
    peer.close().await?;
    let mut receiver = other.receiver(&address).await?;
    ensure(count(&receiver.accept().await?) == 1, "one attempt")?;
    receiver.empty().await?;
    other.close().await
}

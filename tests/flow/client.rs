//! The client of producers against a real server.

#![allow(clippy::unwrap_used, reason = "what goes wrong in a test fails it")]

use std::time::Duration;

use bytes::Bytes;
use overdue::{Client, Queue, Raw};
use overdue_protocol::{Keyspace, Partition, QueueName};
use overdue_tests::Redis;
use serde::{Deserialize, Serialize};

mod limits;
mod look;
mod lost_reply;
mod modes;
mod order;
mod partitions;
mod trouble;

const HOUR: Duration = Duration::from_secs(3600);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Hold {
    seat: String,
    cents: u64,
}

fn hold(cents: u64) -> Hold {
    Hold { seat: "12A".into(), cents }
}

fn orders(number: u32) -> Partition {
    Keyspace::default().partition(&QueueName::new("orders").unwrap(), number)
}

async fn connect(redis: &Redis) -> Client {
    Client::connect(redis.url()).await.unwrap()
}

/// A client with a queue `orders` of so many partitions.
async fn open<T>(redis: &Redis, partitions: u32) -> (Client, Queue<T>) {
    let client = connect(redis).await;
    client.store().create_queue(&QueueName::new("orders").unwrap(), partitions).await.unwrap();
    let queue = client.queue("orders").await.unwrap();
    (client, queue)
}

fn armed(redis: &Redis, number: u32) -> u64 {
    redis.count(&[&b"ZCARD"[..], &orders(number).index()])
}

/// A field of the tally; 0 when it is not there.
fn tally(redis: &Redis, field: &str) -> u64 {
    redis.call(&[&b"HGET"[..], &orders(0).tally(), field.as_bytes()]).text().parse().unwrap_or(0)
}

fn raw(text: &'static str) -> Raw {
    Raw::new(Bytes::from_static(text.as_bytes()))
}

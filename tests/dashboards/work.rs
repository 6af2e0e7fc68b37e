//! The load: timers, watched keys, and a plain consumer that leaves one in ten unacknowledged.

use std::sync::Arc;
use std::time::Duration;

use overdue::{Client, Queue, Raw};
use overdue_protocol::{Keyspace, QueueName};
use overdue_tests::Redis;
use overdue_tests::redis::Value;

/// Between two rounds.
const ROUND: Duration = Duration::from_millis(100);

/// Goes on until it is aborted. What is refused meanwhile is refused: faults are what the test is about.
pub(crate) async fn run(client: Client, redis: Arc<Redis>) {
    let orders: Queue<Raw> = client.queue("orders").await.unwrap();
    let plain: Queue<Raw> = client.queue("plain").await.unwrap();
    let far = Duration::from_secs(3600);
    orders.timer("far").at(far).payload(&Raw::new("")).schedule().await.unwrap();
    for round in 0_u64.. {
        arm(&orders, round).await;
        arm(&plain, round).await;
        write_keys(&redis, round);
        let _ = read_and_acknowledge(&redis);
        tokio::time::sleep(ROUND).await;
    }
}

async fn arm(queue: &Queue<Raw>, round: u64) {
    let mut ids: Vec<_> = (0..4).map(|i| format!("order-{round}-{i}")).collect();
    ids.extend(["busy", "bad"].map(|name| format!("{name}-{round}")));
    let payload = Raw::new("hold");
    let timer = |id: &String| {
        let timer = queue.timer(id).at(ROUND * 3).payload(&payload);
        if round.is_multiple_of(2) { timer.keyed() } else { timer }
    };
    let _ = queue.schedule_many(ids.iter().map(timer)).await;
}

/// Some that end, and some that are deleted before.
fn write_keys(redis: &Redis, round: u64) {
    for i in 0..3 {
        let _ = redis.command(&["SET", &format!("session:{round}-{i}"), "x", "PX", "300"]);
    }
    let _ = redis.command(&["SET", &format!("session:{round}-gone"), "x", "PX", "500"]);
    let _ = redis.command(&["DEL", &format!("session:{}-gone", round.saturating_sub(2))]);
}

fn read_and_acknowledge(redis: &Redis) -> Option<()> {
    let partition = Keyspace::default().partition(&QueueName::new("plain").ok()?, 0);
    let stream = String::from_utf8(partition.stream().to_vec()).ok()?;
    let read = ["XREADGROUP", "GROUP", "mail", "me", "COUNT", "20", "STREAMS", &stream, ">"];
    let answer = redis.command(&read).ok()?;
    let entries = answer.items().first()?.items().get(1)?.items();
    let ids = entries.iter().filter_map(|entry| entry.items().first()).map(Value::text);
    // By the millisecond in the id.
    for id in ids.filter(|id| !id.contains("0-")) {
        redis.command(&["XACK", &stream, "mail", &id]).ok()?;
    }
    Some(())
}

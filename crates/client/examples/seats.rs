//! Seats that are held and not bought go back on sale: what the handler changes in Redis is done with the acknowledgement,
//! so that a timeout which is handed out twice gives its seats back once. Run `overdue relay` beside it.

#![allow(clippy::print_stdout, reason = "an example that shows something")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use overdue::Client;
use overdue::consumer::{Effects, Timeout};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

#[derive(Serialize, Deserialize)]
struct Hold {
    show: String,
    seats: i64,
}

/// Keys by `key` are in the hash slot of the timer's partition, as they must be for that.
fn give_back(t: &Timeout<Hold>) -> Effects {
    let hold = t.payload();
    Effects::new()
        .hincr_by(t.key("free"), &hold.show, hold.seats)
        .xadd(t.key("log"), [("hold", t.idempotency_key()), ("seats", hold.seats.to_string())])
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1/".to_owned());
    let client = Client::connect(url).await?;
    let holds = client.queue::<Hold>("holds").await?;
    for (id, seats) in [("ann", 2), ("bob", 3), ("eve", 4)] {
        let hold = Hold { show: "hamlet".to_owned(), seats };
        holds.schedule(id, Duration::from_secs(2), &hold).await?;
    }
    holds.cancel("eve").await?; // she bought hers

    let (left, ended) = (AtomicU32::new(2), Arc::new(Notify::new()));
    let handler = |ended: Arc<Notify>| {
        move |t: Timeout<Hold>| {
            println!("{} did not buy: {} seats for {} are free", t.id(), t.payload().seats, t.payload().show);
            if left.fetch_sub(1, Ordering::SeqCst) == 1 {
                ended.notify_one();
            }
            async move { give_back(&t) }
        }
    };
    client.consumer::<Hold>("holds", "sale").run(handler(ended.clone()), ended.notified()).await?;
    Ok(())
}

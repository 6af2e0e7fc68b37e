//! Arms a timer and handles it. Run `overdue relay` beside it: the relay fires what is due.

#![allow(clippy::print_stdout, reason = "an example that shows something")]

use std::time::Duration;

use overdue::Client;
use overdue::consumer::{Done, Timeout};
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
struct Hold {
    seat: String,
}

async fn release(timeout: Timeout<Hold>) -> Done {
    println!("{}: releasing seat {}", timeout.idempotency_key(), timeout.payload().seat);
    Done
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::connect("redis://127.0.0.1/").await?;
    let orders = client.queue::<Hold>("orders").await?;
    orders.schedule("order-1001", Duration::from_secs(3), &Hold { seat: "12A".into() }).await?;

    let stop = async { drop(tokio::signal::ctrl_c().await) };
    client.consumer::<Hold>("orders", "billing").concurrency(64).run(release, stop).await?;
    Ok(())
}

//! An order that is not paid in time is cancelled; who pays disarms its timer. Run `overdue relay` beside it.

#![allow(clippy::print_stdout, reason = "an example that shows something")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use overdue::consumer::{Done, Timeout};
use overdue::{Client, Raw};
use tokio::sync::Notify;

/// The table of orders; yours is in a database.
#[derive(Clone, Default)]
struct Orders(Arc<Mutex<HashMap<String, &'static str>>>);

impl Orders {
    /// Changes an order only if its state is `from`: a timeout that comes twice, or too late, changes nothing.
    fn change(&self, id: &str, from: Option<&str>, to: &'static str) -> bool {
        let mut orders = self.0.lock().expect("no holder panics");
        let is_so = orders.get(id).copied() == from;
        if is_so {
            orders.insert(id.to_owned(), to);
        }
        is_so
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1/".to_owned());
    let client = Client::connect(url).await?;
    let timers = client.queue::<Raw>("orders").await?;
    let orders = Orders::default();
    for id in ["order-1", "order-2"] {
        orders.change(id, None, "open");
        timers.schedule(id, Duration::from_secs(2), &Raw::default()).await?;
    }
    // Paid. Had the timer fired a moment before, its handler would find the order paid.
    if orders.change("order-1", Some("open"), "paid") {
        timers.cancel("order-1").await?;
        println!("order-1 is paid");
    }

    let handled = Arc::new(Notify::new());
    let expire = |handled: Arc<Notify>| {
        move |timeout: Timeout<Raw>| {
            let id = timeout.id().to_string();
            if orders.change(&id, Some("open"), "cancelled") {
                println!("{id} was not paid in time: cancelled");
            }
            handled.notify_one();
            async { Done }
        }
    };
    client.consumer::<Raw>("orders", "billing").run(expire(handled.clone()), handled.notified()).await?;
    Ok(())
}

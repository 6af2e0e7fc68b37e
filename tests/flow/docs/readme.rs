//! The README: each line that can be run is run, and its Rust is compiled here.

use std::time::Duration;

use overdue::consumer::Done;
use overdue::{Raw, TimerId};
use overdue_tests::{Redis, readme};
use serde::{Deserialize, Serialize};

use super::blocks::{blocks, text};
use super::terminal::Terminal;

#[test]
fn each_line_does_what_it_says() {
    let redis = Redis::start();
    readme::play(&text("README.md"), &Terminal::at(&redis));
}

#[derive(Serialize, Deserialize)]
struct Hold;

async fn call(_: &TimerId) {}

async fn mail(_: &TimerId) -> Result<(), std::io::Error> {
    Ok(())
}

/// Never called: that it compiles is what counts.
#[rustfmt::skip]
#[allow(dead_code, reason = "the README's example, which only has to compile")]
async fn example(hold: Hold, shutdown: impl Future<Output = ()>) -> Result<(), Box<dyn std::error::Error>> {
    let client = overdue::Client::connect("redis://127.0.0.1/").await?;
    let orders = client.queue::<Hold>("orders").await?;
    orders.schedule("order-1001", Duration::from_secs(900), &hold).await?;
    orders.cancel("order-1001").await?;

    client.consumer::<Raw>("sessions", "mail").concurrency(64)
        .on("session:vip:*", |t| async move { call(t.id()).await })
        .run(|t| async move { mail(t.id()).await?; Ok(Done) }, shutdown).await?;
    Ok(())
}

#[test]
fn its_rust_is_what_is_compiled_here() {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let here = words(include_str!("readme.rs"));
    let all = blocks(&text("README.md"), "rust");
    assert!(!all.is_empty());
    for block in all {
        assert!(here.contains(&words(&block)), "{block}");
    }
}

//! The README: each line that can be run is run, and its Rust is compiled here.

use std::time::Duration;

use overdue::consumer::Done;
use overdue::{Raw, TimerId};
use overdue_tests::{Redis, eventually_blocking};
use serde::{Deserialize, Serialize};

use super::blocks::{blocks, commands, text};
use super::terminal::{SECRET, Terminal};

#[test]
fn each_line_does_what_it_says() {
    let redis = Redis::start();
    let terminal = Terminal::at(&redis);
    terminal.file("secret", SECRET);
    // Whoever has no PHP: what counts is that it is given a line, and its answer.
    terminal.program(
        "php",
        r#"[ "$*" = "artisan overdue:work" ] || exit 1
while read -r line; do
  key=${line#*'"key":"'}
  echo "worked on $line" >&2
  printf '{"key":"%s","outcome":"done"}\n' "${key%%'"'*}"
done"#,
    );
    let of_the_checkout = |line: &String| line.starts_with("./scripts/") || line.starts_with("cargo install");
    let readme = text("README.md");
    let lines: Vec<_> = commands(&readme).into_iter().filter(|line| !of_the_checkout(line)).collect();
    let stays = |line: &str| line.starts_with("overdue relay") || line.starts_with("overdue consume");
    let mut running = vec![];
    for line in &lines {
        let mut command = terminal.run(line);
        if stays(line) {
            running.push(command);
        } else {
            assert_eq!(command.code(), 0, "{line}\n{}", command.output());
        }
    }
    assert_eq!((lines.len(), running.len()), (7, 5), "{lines:#?}");
    // Nothing listens at the webhook's URL here.
    let said = [
        "session:42 is over\n",
        "order 1001 is overdue: orders/order-1001/",
        "it tries again until it can, no attempt is spent",
        r#"worked on {"key":"orders/order-1001/"#,
    ];
    assert!(readme.contains(&format!("`{}`", said[0].trim_end())));
    for (consumer, said) in running[1..].iter().zip(said) {
        eventually_blocking(said, || {
            let output = consumer.output();
            if output.contains(said) { Ok(()) } else { Err(output) }
        });
    }
    for command in &mut running {
        command.assert_runs();
    }
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

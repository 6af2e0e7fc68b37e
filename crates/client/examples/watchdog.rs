//! A watchdog: each heartbeat puts the timer off, and a device that is silent for too long is reported. Run `overdue relay`
//! beside it.

#![allow(clippy::print_stdout, reason = "an example that shows something")]

use std::sync::Arc;
use std::time::Duration;

use overdue::consumer::{Done, Timeout};
use overdue::{Client, Queue, Raw};
use tokio::sync::Notify;
use tokio::time::sleep;

/// How long a device may be silent.
const SILENCE: Duration = Duration::from_secs(2);

/// Beats until it breaks.
async fn device(watchdog: Queue<Raw>, id: &'static str, beats: Option<u32>) -> overdue::Result<()> {
    for beat in 0_u32.. {
        if Some(beat) == beats {
            return Ok(()); // it never says so
        }
        // Beats that overtake each other on their way never bring the deadline forward.
        let put_off = watchdog.timer(id).at(SILENCE).only_later().schedule().await?;
        if beat == 0 {
            println!("{id} is watched: {}", put_off.change.as_str());
        }
        sleep(SILENCE / 20).await;
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1/".to_owned());
    let client = Client::connect(url).await?;
    let watchdog = client.queue::<Raw>("devices").await?;
    let sound = tokio::spawn(device(watchdog.clone(), "pump", None));
    let broken = tokio::spawn(device(watchdog.clone(), "valve", Some(10)));

    let reported = Arc::new(Notify::new());
    let report = |reported: Arc<Notify>| {
        move |timeout: Timeout<Raw>| {
            println!("{} is silent", timeout.id());
            reported.notify_one();
            async { Done }
        }
    };
    client.consumer::<Raw>("devices", "operators").run(report(reported.clone()), reported.notified()).await?;
    broken.await??;
    sound.abort();
    watchdog.cancel("pump").await?; // switched off on purpose
    Ok(())
}

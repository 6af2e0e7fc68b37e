//! What the worker's handler measures.

use std::sync::Mutex;

use serde_json::{json, Value};
use tokio::signal::unix::{signal, SignalKind};

use crate::clock::now_us;
use crate::Result;

/// From the due time that was asked for to the start of the handler, microseconds.
#[derive(Default)]
pub struct Lateness {
    late_us: Mutex<Vec<i64>>,
}

impl Lateness {
    /// The payload begins with the due time in milliseconds.
    pub fn handled(&self, payload: &str) {
        let now = i64::try_from(now_us()).unwrap_or(i64::MAX);
        let due = payload.split(':').next().and_then(|due| due.parse::<i64>().ok()).unwrap_or_default();
        self.late_us.lock().expect("no handler panics").push(now - due * 1_000);
    }

    /// Says that the worker is at work, waits for SIGTERM, and says what was measured.
    pub async fn until_sigterm(&self) -> Result<()> {
        let mut end = signal(SignalKind::terminate())?;
        println!("\"ready\"");
        end.recv().await;
        println!("{}", self.report());
        Ok(())
    }

    fn report(&self) -> Value {
        let mut late = self.late_us.lock().expect("no handler panics").clone();
        late.sort_unstable();
        let at = |part: f64| {
            let rank = ((part * late.len() as f64).ceil() as usize).max(1);
            late.get(rank - 1).map(|us| *us as f64 / 1_000.0)
        };
        let early = late.iter().filter(|us| **us < 0).count();
        let lateness = json!({"p50": at(0.5), "p99": at(0.99), "p999": at(0.999), "max": at(1.0)});
        json!({"handled": late.len(), "early": early, "lateness_ms": lateness})
    }
}

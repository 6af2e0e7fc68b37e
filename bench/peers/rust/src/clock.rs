//! Unix time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

pub fn now_ms() -> u64 {
    now_us() / 1_000
}

pub async fn sleep_until_ms(ms: u64) {
    tokio::time::sleep(Duration::from_micros((ms * 1_000).saturating_sub(now_us()))).await;
}

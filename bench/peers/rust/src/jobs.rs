//! What is added, and when: the same for both peers.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Instant;

use futures::stream::{self, StreamExt, TryStreamExt};
use serde_json::{json, Value};

use crate::args::Args;
use crate::clock::{now_ms, now_us, sleep_until_ms};
use crate::Result;

const PAYLOAD_BYTES: usize = 100;
const AT_ONCE: usize = 4;
const AHEAD_MS: u64 = 2_000;
const RHYTHM_MS: u64 = 100;
const DAY_MS: u64 = 86_400_000;

/// Adds jobs that are due at these times, unix milliseconds.
pub trait Adds: Clone + Send + Sync + 'static {
    /// So many at most go into one `many`.
    const BULK: usize;
    fn many(&self, dues: &[u64]) -> impl Future<Output = Result<()>> + Send;
    fn one(&self, due: u64) -> impl Future<Output = Result<()>> + Send;
}

/// It begins with the due time that is asked for.
pub fn payload(due: u64) -> String {
    format!("{:x<PAYLOAD_BYTES$}", format!("{due}:"))
}

/// While Redis works on one page, the next are made.
async fn all<A: Adds>(to: &A, dues: &[u64]) -> Result<()> {
    let pages = stream::iter(dues.chunks(A::BULK)).map(Ok);
    pages.try_for_each_concurrent(AT_ONCE, |page| to.many(page)).await
}

fn ended() -> Value {
    json!({"ended_ms": now_us() as f64 / 1_000.0})
}

pub async fn burst<A: Adds>(to: &A, args: &Args) -> Result<Value> {
    let (count, due) = (args.number("count")?, args.number("due")?);
    all(to, &vec![due; count as usize]).await?;
    Ok(ended())
}

pub async fn far<A: Adds>(to: &A, args: &Args) -> Result<Value> {
    let first = now_ms() + DAY_MS;
    let dues: Vec<_> = (first..first + args.number("count")?).collect();
    all(to, &dues).await?;
    Ok(ended())
}

pub async fn steady<A: Adds>(to: &A, args: &Args) -> Result<Value> {
    let (rate, first) = (args.number("rate")?, now_ms() + 1 + AHEAD_MS + RHYTHM_MS);
    let total = rate * args.number("seconds")?;
    let (mut next, mut behind_us) = (0, 0);
    for beat in 1.. {
        let until = (beat * RHYTHM_MS * rate).div_ceil(1_000).min(total);
        let dues: Vec<_> = (next..until).map(|n| first + n * 1_000 / rate).collect();
        all(to, &dues).await?;
        next = until;
        if next == total {
            break;
        }
        let at = first - AHEAD_MS + beat * RHYTHM_MS;
        behind_us = behind_us.max(now_us().saturating_sub(at * 1_000));
        sleep_until_ms(at).await;
    }
    let mut said = ended();
    said["behind_ms"] = json!(behind_us as f64 / 1_000.0);
    Ok(said)
}

pub async fn schedule<A: Adds>(to: A, args: &Args) -> Result<Value> {
    let due = now_ms() + DAY_MS;
    let (many, single) = (args.number("many")?, args.number("single")?);
    // Redis has the scripts from here on.
    to.one(due).await?;
    let start = Instant::now();
    all(&to, &vec![due; many as usize]).await?;
    let many_per_s = many as f64 / start.elapsed().as_secs_f64();
    let start = Instant::now();
    let next = Arc::new(AtomicU64::new(0));
    let callers: Vec<_> = (0..args.number("callers")?)
        .map(|_| {
            let (to, next) = (to.clone(), next.clone());
            tokio::spawn(async move {
                while next.fetch_add(1, Ordering::Relaxed) < single {
                    to.one(due).await?;
                }
                Result::Ok(())
            })
        })
        .collect();
    for caller in callers {
        caller.await??;
    }
    Ok(json!({"many_per_s": many_per_s, "single_per_s": single as f64 / start.elapsed().as_secs_f64()}))
}

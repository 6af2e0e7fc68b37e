//! What is asked after the last timeout: Redis' own count, and the audit.

use std::time::Duration;

use overdue_protocol::tally;
use tokio::process::Command;
use tokio::time::timeout;

use crate::exit::{Exit, Failure};
use crate::stage::{Stage, blocking, program};

/// How long the audit may take.
const DEADLINE: Duration = Duration::from_secs(20);

/// How many entries were put in by firing, as Redis counts (from 7.0 on): all ever added, less those that are
/// addressed to one group, which are retries.
pub(super) async fn entries(stage: &Stage) -> Result<Option<u64>, Failure> {
    let (redis, stream) = (stage.redis.clone(), stage.partition.stream());
    let info = blocking(move || redis.command(&[&b"XINFO"[..], b"STREAM", &stream])).await?;
    let added = info.items().chunks(2).find(|pair| pair[0].text() == "entries-added");
    let added = added.and_then(|pair| pair[1].int()).and_then(|added| u64::try_from(added).ok());
    let tally = stage.store.tally(&stage.partition).await?;
    let addressed = tally.get(tally::ADDRESSED).and_then(|n| n.parse().ok()).unwrap_or(0);
    Ok(added.map(|added| added.saturating_sub(addressed)))
}

/// Runs `overdue audit`: what it says when the books don't balance.
pub(super) async fn audit(stage: &Stage) -> Result<Option<String>, Failure> {
    let failed = |error: std::io::Error| Failure::new(Exit::Usage, format!("cannot run the audit: {error}"));
    let mut command = Command::from(program::command(&stage.redis).map_err(failed)?);
    command.args(["audit", stage.partition.queue().as_str()]).kill_on_drop(true);
    let Ok(output) = timeout(DEADLINE, command.output()).await else {
        return Ok(Some(format!("the audit has not ended after {DEADLINE:?}")));
    };
    let output = output.map_err(failed)?;
    let said = [&output.stdout[..], &output.stderr[..]].concat();
    let said = String::from_utf8_lossy(&said).lines().map(str::trim).collect::<Vec<_>>().join(" | ");
    Ok((!output.status.success()).then_some(said))
}

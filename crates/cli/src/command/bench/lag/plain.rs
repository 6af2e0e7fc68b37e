//! Keys that nobody but a plain keyspace listener asks about: no relay runs, whose nudges would make them end on time.

use std::sync::Arc;

use overdue_sandbox::Redis;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use super::moment::Moment;
use super::{OF, PATIENCE, write};
use crate::exit::Failure;
use crate::stage::lateness::Lateness;
use crate::stage::{blocking, listener};

/// What their names begin with.
const PREFIX: &str = "lag-plain:";

/// What the listener heard in time. All keys are gone afterwards, and the flags that it needs are those of the server again.
pub(super) async fn measure(redis: &Arc<Redis>) -> Result<Lateness, Failure> {
    flags(redis, "Ex").await?;
    let (tx, mut heard) = mpsc::channel(OF as usize);
    let listening = listener::listen(redis.addr(), tx, |key, at_us| (key, at_us));
    let _listening = AbortOnDropHandle::new(tokio::spawn(listening));
    let (moment, names) = (Moment::soon(), (0..OF).map(|n| format!("{PREFIX}{n}")).collect::<Vec<_>>());
    write(redis, names.iter().map(|name| (name.clone(), moment.due_ms)).collect()).await?;
    moment.still_ahead()?;
    let end = Instant::now() + moment.wait() + PATIENCE;
    let mut lateness = Lateness::default();
    while lateness.len() < OF.into()
        && let Ok(Some((key, at_us))) = timeout_at(end, heard.recv()).await
    {
        if key.starts_with(PREFIX.as_bytes()) {
            lateness.note(moment.due_ms, at_us);
        }
    }
    remove(redis, names).await?;
    flags(redis, "").await?;
    Ok(lateness)
}

async fn flags(redis: &Arc<Redis>, flags: &'static str) -> Result<(), Failure> {
    let redis = redis.clone();
    blocking(move || redis.command(&["CONFIG", "SET", "notify-keyspace-events", flags]).map(drop)).await
}

/// Removes what is left, for the next to begin on the same server.
async fn remove(redis: &Arc<Redis>, keys: Vec<String>) -> Result<(), Failure> {
    let redis = redis.clone();
    blocking(move || redis.command(&[vec!["UNLINK".to_owned()], keys].concat()).map(drop)).await
}

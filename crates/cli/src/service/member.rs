//! This process's entry in the list of members, which `doctor` reads.

use std::time::{Duration, Instant};

use overdue_protocol::member::{HEARTBEAT_MS, Member};
use overdue_store::{Result, Store};
use overdue_telemetry::label::Loop;
use overdue_telemetry::{Health, Progress, Throttle};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

/// Being on the list is no work of ours: a full Redis refuses it while firing goes on. It is shown, and fails nothing.
const BOUND: Duration = Duration::from_secs(24 * 3600);
/// Entries of processes that are gone are looked for at every so many beats.
const PRUNE_EVERY: u64 = 12;
/// How long leaving the list may hold up the end.
const LEAVE: Duration = Duration::from_secs(1);

/// Who this process is.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// Unique; the name of the entry.
    pub(crate) name: String,
    pub(crate) role: &'static str,
    /// What it works on: queues, or `queue/group`. Empty = every queue.
    pub(crate) queues: Vec<String>,
    /// The hash of its watch rules ([`overdue_protocol::watch::Rules::hash`]); empty for none.
    pub(crate) rules: String,
}

/// `<host>:<pid>:<8 hex digits>`: another one in each run.
pub(crate) fn process_name() -> String {
    format!("{}:{}:{:08x}", host(), std::process::id(), rand::random::<u32>())
}

fn host() -> String {
    gethostname::gethostname().to_string_lossy().into_owned()
}

pub(super) fn register(health: &Health) -> Progress {
    health.register(Loop::Member, "", BOUND)
}

/// Beats until `stop`, then leaves the list. What is broken stands in the entry.
pub(super) async fn run(
    store: Store,
    identity: Identity,
    health: Health,
    progress: Progress,
    stop: CancellationToken,
) {
    let throttle = Throttle::default();
    let mut tick = tokio::time::interval(Duration::from_millis(HEARTBEAT_MS));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut started, mut beats) = (None, 0_u64);
    while stop.run_until_cancelled(tick.tick()).await.is_some() {
        match beat(&store, &identity, health.broken(), &mut started).await {
            Ok(()) => progress.succeed(),
            Err(error) => {
                progress.fail(error.kind().as_str());
                if let Some(pass) = throttle.pass("beat failed", Instant::now()) {
                    tracing::warn!(%error, "this process could not write itself into the list of members{pass}");
                }
            }
        }
        beats += 1;
        if beats.is_multiple_of(PRUNE_EVERY) {
            // Somebody else does it, or we do at the next turn.
            let _ = store.members_prune().await;
        }
    }
    // If it fails, the entry is removed a minute from now.
    let _ = tokio::time::timeout(LEAVE, store.leave(&identity.name)).await;
    progress.retire();
}

async fn beat(store: &Store, identity: &Identity, trouble: String, started: &mut Option<u64>) -> Result<()> {
    let seen = store.time_ms().await?;
    let member = Member {
        role: identity.role.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        host: host(),
        pid: std::process::id(),
        started: *started.get_or_insert(seen),
        seen,
        queues: identity.queues.clone(),
        rules: identity.rules.clone(),
        trouble,
    };
    store.beat(&identity.name, &member).await
}

//! `overdue doctor`: finds what is wrong and says what to do.

mod finding;
mod flags;
mod groups;
mod memory;
pub(crate) mod queue;
pub(crate) mod relays;
mod server;
mod ttl;
mod watching;

use std::collections::BTreeMap;

use overdue_protocol::member::Member;
use overdue_store::{ErrorKind, Nodes, Store};

use self::finding::{Finding, Level};
use self::watching::Watching;
use super::place;
use crate::args::check::Doctor;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::settings::Settings;

/// Runs the command. Exit code 4 when something must be done; 3 when Redis can't be reached or refuses.
pub(crate) async fn run(_args: &Doctor, settings: &Settings, output: &mut Output) -> Result<(), Failure> {
    let place = settings.redis.describe();
    let store = match place::connect(settings).await {
        Ok(store) => store,
        Err(failure) => {
            output.object(&unreachable(&failure))?;
            return Err(failure);
        }
    };
    let reach =
        Finding::ok("reach", format!("Redis answers at {place}, namespace {}", store.keyspace().namespace()));
    let mut findings = vec![reach];
    let now_ms = store.time_ms().await?;
    let members = store.members().await?;
    let alive = members.into_iter().filter(|(_, member)| relays::is_alive(member, now_ms)).collect();
    let watching = Watching::new(settings, &alive);
    findings.extend(server::look(&store).await?);
    findings.extend(look_at_nodes(settings, &store, &watching).await?);
    findings.extend(look_at_queues(&store, &alive, &watching, now_ms).await?);
    findings.sort_by_key(Finding::place);
    for finding in &findings {
        finding.say(output)?;
    }
    match findings.iter().filter(|finding| finding.level == Level::Bad).count() {
        0 => Ok(()),
        n => Err(Failure::new(
            Exit::CheckFailed,
            format!("something must be done: {n} of {} checks", findings.len()),
        )),
    }
}

fn unreachable(failure: &Failure) -> Finding {
    let what = failure.lines().collect::<Vec<_>>().join("; ");
    Finding::bad("reach", what, "correct the address, the password or the server; nothing else was looked at")
}

/// What is of each server: its flags, and what watching needs.
async fn look_at_nodes(
    settings: &Settings,
    store: &Store,
    watching: &Watching,
) -> Result<Vec<Finding>, Failure> {
    let dbs = watching.dbs().into_iter().chain([store.db()]).collect();
    let nodes = Nodes::open(&settings.redis, place::ROLE, &dbs).await?;
    let mut findings = vec![];
    let mut heard = BTreeMap::new();
    if watching.is_on() {
        let (told, punctuality) = watching::expiry::look(settings, &nodes, watching).await;
        heard = told;
        findings.extend(punctuality);
        findings.extend(watching::rights::look(settings, &nodes, watching).await);
        findings.extend(watching::buffer::look(&nodes).await);
    }
    findings.extend(flags::look(&nodes, watching, &heard).await);
    nodes.close().await;
    Ok(findings)
}

async fn look_at_queues(
    store: &Store,
    alive: &BTreeMap<String, Member>,
    watching: &Watching,
    now_ms: u64,
) -> Result<Vec<Finding>, Failure> {
    let members: Vec<_> = alive.values().cloned().collect();
    let mut findings = relays::look(&members);
    findings.extend(watching::rules::look(watching, alive));
    let queues = match store.queues().await {
        Ok(queues) => queues,
        Err(error) if matches!(error.kind(), ErrorKind::NewerFormat | ErrorKind::Malformed) => {
            findings.push(Finding::bad(
                "format",
                error.to_string(),
                "run the newest version of this program; no queue was looked at",
            ));
            return Ok(findings);
        }
        Err(error) => return Err(error.into()),
    };
    if queues.is_empty() {
        findings.push(Finding::ok(
            "queues",
            "there are no queues yet: `overdue schedule` creates the one it names",
        ));
    }
    findings.extend(ttl::look(store, &queues).await?);
    for (name, info) in queues {
        findings.extend(queue::look(store, &name, &info, &members, now_ms).await?);
        findings.extend(watching::index::look(store, &name, &info, watching, now_ms).await?);
    }
    Ok(findings)
}

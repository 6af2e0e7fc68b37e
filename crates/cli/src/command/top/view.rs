//! What is shown: two readings made into rows. With `--json` it is the answer.

use std::time::Duration;

use overdue_protocol::QueueName;
use overdue_protocol::member::Member;
use serde::Serialize;

use super::reading::{self, Reading};
use crate::command::doctor::queue::LATE_MS;
use crate::command::doctor::relays;
use crate::output::text;

/// How much a row needs a person; most first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Need {
    /// Timeouts are not fired or not handled.
    Bad,
    /// Worth a look.
    Warn,
    #[default]
    Ok,
}

/// A frame. Within each list what needs a person most stands on top, then by name.
#[derive(Debug, Default, Serialize)]
pub(super) struct View {
    pub(super) time: String,
    pub(super) used_memory: u64,
    /// 0 = no limit.
    pub(super) maxmemory: u64,
    pub(super) queues: Vec<Queue>,
    pub(super) groups: Vec<Group>,
    pub(super) processes: Vec<Process>,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct Queue {
    pub(super) level: Need,
    pub(super) queue: String,
    pub(super) paused: bool,
    pub(super) armed: u64,
    pub(super) overdue: u64,
    /// Milliseconds until the earliest timer or retry is due; negative when it is late.
    pub(super) next_in_ms: Option<i64>,
    pub(super) fired_per_s: Option<f64>,
    pub(super) lateness_ms: Option<u64>,
    pub(super) stream: u64,
    pub(super) retries: u64,
    pub(super) dead: u64,
    pub(super) last_dead_age_ms: Option<u64>,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct Group {
    pub(super) level: Need,
    pub(super) queue: String,
    pub(super) group: String,
    pub(super) gone: bool,
    pub(super) live: u64,
    /// `None` = it has no books.
    pub(super) backlog: Option<u64>,
    pub(super) pending: u64,
    pub(super) done_per_s: Option<f64>,
    pub(super) oldest_age_ms: Option<u64>,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct Process {
    pub(super) level: Need,
    pub(super) role: String,
    pub(super) host: String,
    pub(super) pid: u32,
    pub(super) version: String,
    pub(super) up_ms: u64,
    /// Empty = every queue.
    pub(super) works_on: Vec<String>,
    pub(super) trouble: String,
}

impl View {
    /// `before` is for the rates.
    pub(super) fn of(reading: &Reading, before: Option<&Reading>) -> Self {
        let mut view = Self {
            time: text::time(reading.now_ms),
            used_memory: reading.used_memory,
            maxmemory: reading.maxmemory,
            processes: reading.members.iter().map(|one| Process::of(one, reading.now_ms)).collect(),
            ..Self::default()
        };
        for (name, queue) in &reading.queues {
            let was = before.and_then(|before| before.queues.get(name));
            let rate = |now, was| rate(now, was, reading.at.duration_since(before?.at));
            let fired_per_s = was.and_then(|was| rate(queue.fired, was.fired));
            view.queues.push(Queue { fired_per_s, ..Queue::of(name, queue, reading) });
            for (group, read) in &queue.groups {
                let was = was.and_then(|was| was.groups.get(group));
                let done_per_s = was.and_then(|was| rate(read.done, was.done));
                view.groups.push(Group { done_per_s, ..Group::of(name, group, read, reading) });
            }
        }
        view.queues.sort_by_key(|row| row.level);
        view.groups.sort_by_key(|row| row.level);
        // Relays first.
        view.processes.sort_by(|a, b| {
            let key = |one: &Process| (one.host.clone(), one.pid);
            a.level.cmp(&b.level).then(b.role.cmp(&a.role)).then_with(|| key(a).cmp(&key(b)))
        });
        view
    }

    /// Whether a relay is alive.
    pub(super) fn has_relay(&self) -> bool {
        self.processes.iter().any(|one| one.role == "relay")
    }
}

/// Counts per second; `None` when they went back: somebody deleted the queue.
fn rate(now: u64, before: u64, between: Duration) -> Option<f64> {
    let seconds = between.as_secs_f64();
    (seconds > 0.0).then_some(now.checked_sub(before)? as f64 / seconds)
}

impl Queue {
    fn of(name: &QueueName, read: &reading::Queue, reading: &Reading) -> Self {
        let now_ms = reading.now_ms;
        let served = reading.members.iter().any(|member| relays::serves(member, name));
        let late = read.next_ms.is_some_and(|due| due + LATE_MS < now_ms);
        let level = match () {
            () if late || !served => Need::Bad,
            () if read.paused || read.dead > 0 => Need::Warn,
            () => Need::Ok,
        };
        let until = |due: u64| i64::try_from(due).unwrap_or(i64::MAX) - i64::try_from(now_ms).unwrap_or(0);
        Self {
            level,
            queue: name.to_string(),
            paused: read.paused,
            armed: read.armed,
            overdue: read.overdue,
            next_in_ms: read.next_ms.map(until),
            fired_per_s: None,
            lateness_ms: read.lateness_ms,
            stream: read.stream,
            retries: read.retries,
            dead: read.dead,
            last_dead_age_ms: read.last_dead_ms.map(|at| now_ms.saturating_sub(at)),
        }
    }
}

impl Group {
    fn of(queue: &QueueName, name: &str, read: &reading::Group, reading: &Reading) -> Self {
        let ours: Vec<_> =
            reading.members.iter().filter(|member| relays::reads(member, queue, name)).collect();
        // Ours write themselves down; the others show only when they ask for something.
        let live = ours.len().max(read.asked.len()) as u64;
        let waits = read.backlog.unwrap_or(read.pending) > 0 || read.since_ms.is_some();
        let level = match () {
            () if read.gone || (live == 0 && waits) => Need::Bad,
            () if !ours.is_empty() && ours.iter().all(|one| !one.trouble.is_empty()) => Need::Bad,
            () if live == 0 => Need::Warn,
            () => Need::Ok,
        };
        Self {
            level,
            queue: queue.to_string(),
            group: name.to_owned(),
            gone: read.gone,
            live,
            backlog: read.backlog,
            pending: read.pending,
            done_per_s: None,
            oldest_age_ms: read.since_ms.map(|since| reading.now_ms.saturating_sub(since)),
        }
    }
}

impl Process {
    fn of(member: &Member, now_ms: u64) -> Self {
        Self {
            level: if member.trouble.is_empty() { Need::Ok } else { Need::Bad },
            role: member.role.clone(),
            host: member.host.clone(),
            pid: member.pid,
            version: member.version.clone(),
            up_ms: now_ms.saturating_sub(member.started),
            works_on: member.queues.clone(),
            trouble: member.trouble.clone(),
        }
    }
}

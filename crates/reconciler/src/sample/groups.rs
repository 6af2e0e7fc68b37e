//! What the groups of a queue have before them, for the metrics.

use std::collections::{BTreeMap, BTreeSet};

use overdue_protocol::{GroupName, Partition, tally};
use overdue_store::{Result, Store};
use overdue_telemetry::Metric;

/// The groups, summed over the partitions.
#[derive(Default)]
pub(super) struct Groups(BTreeMap<String, Depth>);

#[derive(Default)]
struct Depth {
    /// Delivered and not acknowledged.
    pending: u64,
    /// Not delivered; `None` when a partition does not know it.
    lag: Option<u64>,
    /// With what waits for its next attempt.
    backlog: u64,
    /// When the oldest entry that it has not finished entered the stream, unix milliseconds.
    since_ms: Option<u64>,
    /// A stream has it.
    there: bool,
    /// It has a part in the books, but one stream has no such group.
    gone: bool,
}

impl Groups {
    /// Adds what one partition says.
    pub(super) async fn add(&mut self, store: &Store, partition: &Partition) -> Result<()> {
        let (groups, unfinished, tally) =
            tokio::try_join!(store.groups(partition), store.unfinished(partition), store.tally(partition))?;
        for name in tally::groups(&tally) {
            let there = groups.iter().any(|group| group.name == name.as_str());
            self.of(name.as_str()).gone |= !there;
            self.of(name.as_str()).backlog += tally::backlog(&tally, &name);
        }
        for group in groups {
            let depth = self.of(&group.name);
            depth.there = true;
            depth.pending += group.pending;
            depth.lag = depth.lag.zip(group.lag).map(|(sum, lag)| sum + lag);
            let in_books = GroupName::new(&group.name)
                .is_ok_and(|name| tally.contains_key(&tally::GroupCounter::Base.field(&name)));
            if !in_books {
                depth.backlog += group.pending + group.lag.unwrap_or(0);
            }
        }
        for one in unfinished {
            let depth = self.of(&one.group);
            depth.since_ms = [depth.since_ms, one.since_ms()].into_iter().flatten().min();
        }
        Ok(())
    }

    fn of(&mut self, name: &str) -> &mut Depth {
        let new = || Depth { lag: Some(0), ..Depth::default() };
        self.0.entry(name.to_owned()).or_insert_with(new)
    }

    /// Sets the metrics. A group of `known` that is no more has nothing before it.
    pub(super) fn report(&self, queue: &str, now_ms: u64, known: &mut BTreeSet<String>) {
        let dropped = Depth::default();
        let gone = known.iter().filter(|name| !self.0.contains_key(*name)).map(|name| (name, &dropped));
        for (group, depth) in gone.chain(&self.0) {
            let set = |metric: Metric, value: f64| metric.set(value, &[queue, group]);
            set(Metric::Pending, depth.pending as f64);
            match depth.lag {
                Some(lag) => set(Metric::GroupLag, lag as f64),
                None => Metric::GroupLag.clear(&[queue, group]),
            }
            set(Metric::GroupBacklog, depth.backlog as f64);
            let age_ms = depth.since_ms.map_or(0, |since| now_ms.saturating_sub(since));
            set(Metric::GroupOldest, age_ms as f64 / 1000.0);
            set(Metric::GroupGone, f64::from(u8::from(depth.gone)));
        }
        let there = self.0.values().filter(|depth| depth.there).count();
        Metric::Groups.set(there as f64, &[queue]);
        *known = self.0.keys().cloned().collect();
    }
}

//! Fields of the `tally` hash: the books (PROTOCOL.md section 7).

use std::collections::BTreeMap;

use crate::name::GroupName;

/// The last generation given.
pub const LAST: &str = "last";
/// The number of partitions of the queue.
pub const PARTITIONS: &str = "partitions";
/// `<process>:<ms>`: who fired from the index last.
pub const LAST_SWEEPER: &str = "last_sweeper";

/// What was armed, counted once for each generation.
pub const SCHEDULED: &str = "scheduled";
/// Fired members without a record.
pub const FOREIGN: &str = "foreign";
/// Generations that a later one took the place of before they were due.
pub const REPLACED: &str = "replaced";
/// Generations that were disarmed.
pub const CANCELLED: &str = "cancelled";
/// Generations that entered the stream from the index.
pub const FIRED_TIMERS: &str = "fired_timers";
/// Watched keys that entered the stream, whatever the proof.
pub const WATCHED_FIRED: &str = "watched_fired";
/// Those of them that did so without proof.
pub const WATCHED_UNPROVEN: &str = "watched_unproven";
/// Watched keys that left the index without proof and without a timeout.
pub const WATCHED_DROPPED: &str = "watched_dropped";
/// Positions up to this may have been forgotten, microseconds.
pub const HORIZON: &str = "horizon";
/// Retries of groups that are gone, moved to the dead letters.
pub const GROUP_GONE: &str = "group_gone";
/// Entries ever put in that are addressed to one group.
pub const ADDRESSED: &str = "addressed";
/// Dead letters removed because there were too many or they were too old.
pub const DEAD_TRIMMED: &str = "dead_trimmed";

/// `<this>:<group>` is 1 for a plain group: nobody counts its acknowledgements but who deletes.
const PLAIN: &str = "plain";

/// The field that makes `group` a plain one.
#[must_use]
pub fn plain(group: &GroupName) -> String {
    format!("{PLAIN}:{group}")
}

/// A counter of one group: `<what>:<group>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupCounter {
    /// What had been fired when the group joined, less what it found in the stream.
    Base,
    /// Timeouts it finished.
    Done,
    /// Timeouts it gave up.
    Buried,
    /// Dead letters put back for it.
    Replayed,
    /// Timeouts taken out by hand.
    Discarded,
}

impl GroupCounter {
    /// Every counter of a group.
    pub const ALL: [Self; 5] = [Self::Base, Self::Done, Self::Buried, Self::Replayed, Self::Discarded];

    /// The field for `group`.
    #[must_use]
    pub fn field(self, group: &GroupName) -> String {
        let what = match self {
            Self::Base => "base",
            Self::Done => "done",
            Self::Buried => "buried",
            Self::Replayed => "replayed",
            Self::Discarded => "discarded",
        };
        format!("{what}:{group}")
    }
}

/// The groups that have a part in the books.
pub fn groups(tally: &BTreeMap<String, String>) -> impl Iterator<Item = GroupName> {
    tally.keys().filter_map(|field| GroupName::new(field.strip_prefix("base:")?).ok())
}

/// What a group has before it by the books: unread, in hand, or waiting for its next attempt. Of a plain group also
/// what it has acknowledged since the last `trim`.
#[must_use]
pub fn backlog(tally: &BTreeMap<String, String>, group: &GroupName) -> u64 {
    let number = |field: &str| tally.get(field).and_then(|text| text.parse::<i64>().ok()).unwrap_or(0);
    let of = |counter: GroupCounter| number(&counter.field(group));
    let came =
        number(FIRED_TIMERS) + number(WATCHED_FIRED) - of(GroupCounter::Base) + of(GroupCounter::Replayed);
    let went = of(GroupCounter::Done) + of(GroupCounter::Buried) + of(GroupCounter::Discarded);
    u64::try_from(came - went).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_and_did_not_go_is_the_backlog() {
        let fields = [
            ("fired_timers", "100"),
            ("watched_fired", "10"),
            ("base:a", "40"),
            ("replayed:a", "2"),
            ("done:a", "30"),
            ("buried:a", "5"),
            ("discarded:a", "1"),
            ("base:b", "-3"),
            ("base:Not a group", "1"),
        ];
        let tally = fields.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let groups: Vec<_> = groups(&tally).collect();
        assert_eq!(groups.iter().map(GroupName::as_str).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(groups.iter().map(|group| backlog(&tally, group)).collect::<Vec<_>>(), [36, 113]);
    }
}

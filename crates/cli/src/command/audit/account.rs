//! The two equations of the books, in numbers. Pure.

use overdue_protocol::QueueName;
use serde::Serialize;

/// What all partitions of a queue say together.
#[derive(Debug, Serialize)]
pub(crate) struct Account {
    pub(super) queue: String,
    partitions: u32,
    pub(super) state: State,
    /// How many partitions moved each time they were counted.
    moving: u32,
    pub(super) timers: Timers,
    pub(super) groups: Vec<Group>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    Balanced,
    /// Something went on each time; what stood still balances.
    Moving,
    Differs,
}

/// What one partition says.
#[derive(Debug, Default)]
pub(super) struct Books {
    pub(super) timers: Timers,
    pub(super) groups: Vec<Group>,
    /// It moved each time it was counted: the numbers don't belong to one moment.
    pub(super) moving: bool,
}

/// scheduled + foreign = replaced + cancelled + fired + armed
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Timers {
    pub(super) scheduled: i64,
    pub(super) foreign: i64,
    pub(super) replaced: i64,
    pub(super) cancelled: i64,
    pub(super) fired: i64,
    pub(super) armed: i64,
    #[serde(flatten)]
    pub(super) difference: Difference,
}

/// fired + watched - base + replayed = done + buried + discarded + waiting + live
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Group {
    pub(super) group: String,
    pub(super) fired: i64,
    pub(super) watched: i64,
    pub(super) base: i64,
    pub(super) replayed: i64,
    pub(super) done: i64,
    pub(super) buried: i64,
    pub(super) discarded: i64,
    pub(super) waiting: i64,
    pub(super) live: i64,
    /// Whether it has books: groups that nobody of ours joined have none, and nothing is proven for them.
    pub(super) kept: bool,
    /// Its consumers only acknowledge: what they have done counts when it is deleted.
    pub(super) plain: bool,
    /// It has books, but was removed from the stream: it would begin at the oldest entry again.
    pub(super) gone: bool,
    #[serde(flatten)]
    pub(super) difference: Difference,
}

/// How far the two sides are apart. Loss in one partition does not make up for duplicates in another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Difference {
    /// More went in than is anywhere.
    pub(super) lost: i64,
    /// More is there than went in.
    pub(super) twice: i64,
}

impl Difference {
    fn of(left: i64, right: i64) -> Self {
        Self { lost: (left - right).max(0), twice: (right - left).max(0) }
    }

    fn is_some(self) -> bool {
        self != Self::default()
    }

    fn add(&mut self, other: Self) {
        self.lost += other.lost;
        self.twice += other.twice;
    }
}

impl Books {
    /// Compares the two sides of each equation.
    pub(super) fn balance(mut self) -> Self {
        if self.moving {
            return self;
        }
        let timers = &mut self.timers;
        timers.difference = Difference::of(
            timers.scheduled + timers.foreign,
            timers.replaced + timers.cancelled + timers.fired + timers.armed,
        );
        for group in self.groups.iter_mut().filter(|group| group.kept) {
            group.difference = Difference::of(
                group.fired + group.watched - group.base + group.replayed,
                group.done + group.buried + group.discarded + group.waiting + group.live,
            );
        }
        self
    }
}

impl Account {
    pub(super) fn new(queue: &QueueName, partitions: u32) -> Self {
        let (timers, groups) = (Timers::default(), vec![]);
        Self { queue: queue.to_string(), partitions, state: State::Balanced, moving: 0, timers, groups }
    }

    /// Adds what a partition says.
    pub(super) fn add(&mut self, books: Books) {
        self.moving += u32::from(books.moving);
        self.timers.add(&books.timers);
        for group in books.groups {
            match self.groups.iter_mut().find(|known| known.group == group.group) {
                Some(known) => known.add(&group),
                None => self.groups.push(group),
            }
        }
        let differs =
            self.timers.difference.is_some() || self.groups.iter().any(|group| group.difference.is_some());
        self.state = match (differs, self.moving) {
            (true, _) => State::Differs,
            (false, 0) => State::Balanced,
            (false, _) => State::Moving,
        };
    }

    /// The state in words.
    pub(super) fn verdict(&self) -> String {
        match self.state {
            State::Balanced => "balanced".to_owned(),
            State::Moving => {
                format!(
                    "moving: in {} of {} partitions work went on each of 5 times; no difference elsewhere",
                    self.moving, self.partitions
                )
            }
            State::Differs => "the books don't balance".to_owned(),
        }
    }

    /// What is worth a line beside the numbers.
    pub(super) fn findings(&self) -> Vec<String> {
        let mut findings = differences("timers", self.timers.difference, "the index lost them");
        for group in &self.groups {
            let name = format!("group {}", group.group);
            findings.extend(differences(
                &name,
                group.difference,
                "or acknowledged or deleted by somebody else",
            ));
            if group.gone {
                findings.push(format!("{name} was removed from the stream: it comes back with the oldest entry when a consumer starts"));
            }
            if !group.kept {
                findings.push(format!("{name} was not joined by a consumer of Overdue: it has no books, nothing is proven for it"));
            }
        }
        findings
    }
}

fn differences(what: &str, difference: Difference, loss: &str) -> Vec<String> {
    let lost = format!("{what}: {} went in and are nowhere: this looks like loss ({loss})", difference.lost);
    let twice =
        format!("{what}: {} are there that never went in: this looks like duplicates", difference.twice);
    let lines = [(difference.lost, lost), (difference.twice, twice)];
    lines.into_iter().filter(|(n, _)| *n > 0).map(|(_, line)| line).collect()
}

impl Timers {
    fn add(&mut self, other: &Self) {
        self.scheduled += other.scheduled;
        self.foreign += other.foreign;
        self.replaced += other.replaced;
        self.cancelled += other.cancelled;
        self.fired += other.fired;
        self.armed += other.armed;
        self.difference.add(other.difference);
    }
}

impl Group {
    fn add(&mut self, other: &Self) {
        self.fired += other.fired;
        self.watched += other.watched;
        self.base += other.base;
        self.replayed += other.replayed;
        self.done += other.done;
        self.buried += other.buried;
        self.discarded += other.discarded;
        self.waiting += other.waiting;
        self.live += other.live;
        self.kept &= other.kept;
        self.plain |= other.plain;
        self.gone |= other.gone;
        self.difference.add(other.difference);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timers(scheduled: i64, armed: i64) -> Books {
        Books { timers: Timers { scheduled, armed, ..Timers::default() }, ..Books::default() }.balance()
    }

    fn account(books: impl IntoIterator<Item = Books>) -> Account {
        let mut account = Account::new(&QueueName::new("q").unwrap(), 2);
        books.into_iter().for_each(|books| account.add(books));
        account
    }

    #[test]
    fn loss_in_one_partition_is_not_made_up_for_by_duplicates_in_another() {
        let account = account([timers(5, 4), timers(5, 6)]);
        assert_eq!((account.state, account.timers.scheduled, account.timers.armed), (State::Differs, 10, 10));
        assert_eq!(account.findings().len(), 2);
        assert!(account.findings()[0].contains("1 went in and are nowhere"), "{:?}", account.findings());
    }

    #[test]
    fn what_moves_proves_nothing_but_what_stands_still_does() {
        let moving = || {
            Books { moving: true, timers: Timers { scheduled: 9, ..Timers::default() }, ..Books::default() }
                .balance()
        };
        assert_eq!(account([moving(), timers(1, 1)]).state, State::Moving);
        assert_eq!(account([moving(), timers(1, 0)]).state, State::Differs);
        assert_eq!(account([timers(1, 1)]).state, State::Balanced);
    }

    #[test]
    fn every_term_of_a_group_has_its_side() {
        let group = Group { fired: 9, watched: 1, base: 2, replayed: 1, kept: true, ..Group::default() };
        let right = Group { done: 3, buried: 2, discarded: 1, waiting: 1, live: 2, ..group.clone() };
        let books = |group| Books { groups: vec![group], ..Books::default() }.balance();
        assert_eq!(account([books(right.clone())]).state, State::Balanced);
        assert_eq!(
            account([books(Group { live: 3, ..right.clone() })]).groups[0].difference,
            Difference { lost: 0, twice: 1 }
        );
        assert_eq!(account([books(Group { kept: false, ..group })]).state, State::Balanced);
    }
}

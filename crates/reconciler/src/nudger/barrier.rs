//! Keys that were gone when they were nudged: they wait until every notification from before is answered.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use overdue_protocol::watch::{Rule, WatchedKey};
use overdue_store::Feed;
use tokio::time::Instant;

/// The most keys that pass at once, but for the last group.
const PAGE: usize = 256;

/// A key that waits.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) key: WatchedKey,
    pub(super) rule: Arc<Rule>,
    /// Its deadline in the index, unix milliseconds.
    pub(super) due_ms: u64,
}

/// Keys that one touch found gone, and that wait equally long.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) feed: Feed,
    /// The position of the touch.
    pub(super) position: u64,
    /// When they pass all the same.
    until: Instant,
    pub(super) keys: Vec<Waiting>,
}

/// All that wait in one partition; no key waits twice.
#[derive(Debug, Default)]
pub(super) struct Barrier {
    groups: VecDeque<Group>,
    held: HashSet<WatchedKey>,
}

impl Barrier {
    /// Holds keys that a touch of `feed` at `position` found gone.
    pub(super) fn hold(&mut self, feed: &Feed, position: u64, now: Instant, gone: Vec<Waiting>) {
        let mut by_wait: BTreeMap<Duration, Vec<Waiting>> = BTreeMap::new();
        for waiting in gone {
            if self.held.insert(waiting.key.clone()) {
                by_wait.entry(waiting.rule.proof_wait).or_default().push(waiting);
            }
        }
        for (wait, keys) in by_wait {
            self.groups.push_back(Group { feed: feed.clone(), position, until: now + wait, keys });
        }
    }

    /// Whether the key waits.
    pub(super) fn holds(&self, key: &WatchedKey) -> bool {
        self.held.contains(key)
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    /// Takes a page of those that need not wait any more. They are held until they are released or put back.
    pub(super) fn pass(&mut self, mets: &BTreeMap<Feed, u64>, now: Instant) -> Vec<Group> {
        let mut passing = vec![];
        let mut room = PAGE;
        let mut at = 0;
        while at < self.groups.len() && room > 0 {
            let group = self.groups.get(at).filter(|group| group.passes(mets, now));
            match group.map(|group| group.keys.len()) {
                Some(keys) => {
                    room = room.saturating_sub(keys);
                    passing.extend(self.groups.remove(at));
                }
                None => at += 1,
            }
        }
        passing
    }

    /// They could not be settled: they pass again.
    pub(super) fn put_back(&mut self, groups: Vec<Group>) {
        self.groups.extend(groups);
    }

    /// They are settled: should one be due again, it is nudged again.
    pub(super) fn release(&mut self, groups: &[Group]) {
        for waiting in groups.iter().flat_map(|group| &group.keys) {
            self.held.remove(&waiting.key);
        }
    }

    /// Whether some need not wait any more.
    pub(super) fn is_open(&self, mets: &BTreeMap<Feed, u64>, now: Instant) -> bool {
        self.groups.iter().any(|group| group.passes(mets, now))
    }

    /// When the next pass whatever is heard.
    pub(super) fn until(&self) -> Option<Instant> {
        self.groups.iter().map(|group| group.until).min()
    }
}

impl Group {
    fn passes(&self, mets: &BTreeMap<Feed, u64>, now: Instant) -> bool {
        now >= self.until || mets.get(&self.feed).is_some_and(|&met| met >= self.position)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use overdue_protocol::QueueName;
    use overdue_protocol::watch::Glob;
    use overdue_store::Node;

    use super::*;

    fn feed(db: u8) -> Feed {
        Feed { node: Node::server(), db }
    }

    fn gone(name: &str, wait_ms: u64) -> Waiting {
        let queue = QueueName::new("orders").unwrap();
        let rule = Rule {
            proof_wait: Duration::from_millis(wait_ms),
            ..Rule::new(queue.clone(), Glob::new("*"), queue)
        };
        let key = WatchedKey { db: 0, key: Bytes::copy_from_slice(name.as_bytes()) };
        Waiting { key, rule: Arc::new(rule), due_ms: 1 }
    }

    fn names(groups: &[Group]) -> Vec<&[u8]> {
        groups.iter().flat_map(|group| &group.keys).map(|waiting| &*waiting.key.key).collect()
    }

    #[test]
    fn a_gone_key_waits_for_what_was_said_before_its_touch_on_its_own_feed() {
        let (mut barrier, now) = (Barrier::default(), Instant::now());
        barrier.hold(&feed(0), 100, now, vec![gone("a", 1000)]);
        barrier.hold(&feed(3), 100, now, vec![gone("b", 1000)]);
        for mets in [BTreeMap::new(), BTreeMap::from([(feed(0), 99)]), BTreeMap::from([(feed(7), 999)])] {
            assert!(!barrier.is_open(&mets, now) && barrier.pass(&mets, now).is_empty(), "{mets:?}");
        }
        let mets = BTreeMap::from([(feed(0), 100), (feed(3), 99)]);
        assert!(barrier.is_open(&mets, now));
        assert_eq!(names(&barrier.pass(&mets, now)), [b"a"]);
    }

    #[test]
    fn without_any_word_it_passes_when_the_wait_of_its_rule_is_over() {
        let (mut barrier, now) = (Barrier::default(), Instant::now());
        barrier.hold(&feed(0), 100, now, vec![gone("slow", 1000), gone("quick", 200)]);
        assert_eq!(barrier.until(), Some(now + Duration::from_millis(200)));
        let later = |ms| now + Duration::from_millis(ms);
        assert!(barrier.pass(&BTreeMap::new(), later(199)).is_empty());
        assert_eq!(names(&barrier.pass(&BTreeMap::new(), later(200))), [b"quick"]);
        assert_eq!(names(&barrier.pass(&BTreeMap::new(), later(1000))), [b"slow"]);
    }

    #[test]
    fn a_key_is_never_in_it_twice_and_stays_in_it_until_it_is_settled() {
        let (mut barrier, now) = (Barrier::default(), Instant::now());
        barrier.hold(&feed(0), 100, now, vec![gone("a", 0)]);
        barrier.hold(&feed(0), 200, now, vec![gone("a", 0)]);
        let passing = barrier.pass(&BTreeMap::new(), now);
        assert_eq!((names(&passing), passing[0].position, barrier.len()), (vec![&b"a"[..]], 100, 1));
        assert!(barrier.holds(&gone("a", 0).key), "its settle is under way");
        barrier.put_back(passing);
        let passing = barrier.pass(&BTreeMap::new(), now);
        barrier.release(&passing);
        assert!(!barrier.holds(&gone("a", 0).key) && barrier.until().is_none());
    }

    #[test]
    fn a_crowd_passes_in_pages() {
        let (mut barrier, now) = (Barrier::default(), Instant::now());
        for n in 0..10 {
            let page = (0..100).map(|i| gone(&format!("{n}/{i}"), 0)).collect();
            barrier.hold(&feed(0), n, now, page);
        }
        let mut pages = vec![];
        while let Some(page) = Some(barrier.pass(&BTreeMap::new(), now)).filter(|page| !page.is_empty()) {
            pages.push(names(&page).len());
        }
        assert_eq!(pages, [300, 300, 300, 100]);
    }
}

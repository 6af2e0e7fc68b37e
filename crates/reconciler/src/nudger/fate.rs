//! What becomes of a key that was nudged, or looked at ahead of its due.

use overdue_protocol::call::SettledWord;
use overdue_protocol::watch::Seen;
use overdue_watch::Looked;

/// When a key is nudged again that could not be settled, such as one whose look came too late, milliseconds.
const AGAIN_MS: u64 = 100;

/// What becomes of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It does not stand among those that are due any more.
    Cleared,
    /// It will be due in a moment, and stays.
    Ahead,
    /// It waits until every notification from before the look is answered.
    Waits,
    /// It stays, and is not nudged before this, unix milliseconds on the index's clock.
    NotBefore(u64),
}

/// Judges a look at a key that the index, whose clock says `now_ms`, has due at `due_ms`. What is due before `now_ms` +
/// `ahead_ms` is in the page.
pub(super) fn fate(looked: &Looked, due_ms: u64, now_ms: u64, ahead_ms: u64) -> Fate {
    use SettledWord::{Dup, Ok, Paid};
    let is_due = due_ms < now_ms;
    match (looked.seen, looked.word) {
        (Seen::Proven, Some(word)) if word.is_fired() || matches!(word, Dup | Paid) => Fate::Cleared,
        (Seen::Forever, Some(Ok)) => Fate::Cleared,
        (Seen::Due(end_ms), Some(Ok)) if end_ms >= now_ms + ahead_ms => Fate::Cleared,
        (Seen::Due(end_ms), Some(Ok)) if end_ms >= now_ms => Fate::Ahead,
        // Alive, though its time is over: the clock of its node is behind that of the index.
        (Seen::Due(end_ms), Some(Ok)) => {
            Fate::NotBefore(now_ms + end_ms.saturating_sub(looked.position / 1000) + 1)
        }
        (Seen::Gone, _) if is_due => Fate::Waits,
        _ if is_due => Fate::NotBefore(now_ms + AGAIN_MS),
        _ => Fate::Ahead,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use overdue_protocol::QueueName;
    use overdue_protocol::watch::{Glob, Rule};
    use overdue_watch::Ask;

    use super::*;

    const NOW: u64 = 1_767_225_600_000;

    /// The node's clock stands so many milliseconds behind that of the index.
    fn looked(seen: Seen, word: Option<SettledWord>, behind_ms: u64) -> Looked {
        let queue = QueueName::new("orders").unwrap();
        let rule = Arc::new(Rule::new(queue.clone(), Glob::new("*"), queue));
        let ask = Ask { key: Bytes::from_static(b"a"), rule, removal: false };
        Looked { ask, position: (NOW - behind_ms) * 1000 + 7, seen, word, due_ms: 0, now_ms: 0 }
    }

    #[test]
    fn what_has_expired_and_what_was_extended_is_cleared() {
        let cleared = |seen, word| fate(&looked(seen, Some(word), 0), NOW - 1, NOW, 50) == Fate::Cleared;
        for word in [SettledWord::Fired, SettledWord::FiredOld, SettledWord::Dup, SettledWord::Paid] {
            assert!(cleared(Seen::Proven, word), "{word:?}");
        }
        assert!(cleared(Seen::Forever, SettledWord::Ok));
        assert!(cleared(Seen::Due(NOW + 50), SettledWord::Ok));
        assert_eq!(
            fate(&looked(Seen::Due(NOW + 49), Some(SettledWord::Ok), 0), NOW - 1, NOW, 50),
            Fate::Ahead
        );
    }

    #[test]
    fn a_key_that_lives_by_the_clock_of_its_node_is_not_nudged_before_its_end_there() {
        let alive = looked(Seen::Due(NOW - 1), Some(SettledWord::Ok), 20);
        assert_eq!(fate(&alive, NOW - 1, NOW, 0), Fate::NotBefore(NOW + 20));
        let at_its_end = looked(Seen::Due(NOW - 1), Some(SettledWord::Ok), 1);
        assert_eq!(fate(&at_its_end, NOW - 1, NOW, 0), Fate::NotBefore(NOW + 1));
    }

    #[test]
    fn gone_proves_nothing_and_before_its_due_does_not_matter() {
        assert_eq!(fate(&looked(Seen::Gone, None, 0), NOW - 1, NOW, 50), Fate::Waits);
        assert_eq!(fate(&looked(Seen::Gone, None, 0), NOW, NOW, 50), Fate::Ahead);
    }

    #[test]
    fn what_could_not_be_settled_is_not_nudged_at_once_again() {
        for (seen, word) in [
            (Seen::Due(NOW + 900), Some(SettledWord::Stale)),
            (Seen::Forever, Some(SettledWord::Old)),
            (Seen::Proven, Some(SettledWord::Old)),
            (Seen::Elsewhere, None),
        ] {
            assert_eq!(
                fate(&looked(seen, word, 0), NOW - 1, NOW, 50),
                Fate::NotBefore(NOW + 100),
                "{seen:?}"
            );
        }
    }
}

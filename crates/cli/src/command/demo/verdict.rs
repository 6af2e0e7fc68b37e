//! What came out: two tables for people, one object for machines.

use serde::Serialize;

use super::ledger::Tally;
use super::score::{Counts, Heard};
use crate::exit::Failure;
use crate::output::Output;
use crate::output::text::count;
use crate::stage::ms;

/// The counts, and what the audit says.
pub(super) struct Verdict {
    pub(super) counts: Counts,
    /// What does not balance; `None` when all does.
    pub(super) unbalanced: Option<String>,
    /// For how long a timeout of a dead consumer is kept from the others, seconds.
    pub(super) lease_s: u64,
    /// How long after the last due time the demo ended, µs.
    pub(super) after_us: u64,
}

/// The last line with `--json`.
#[derive(Serialize)]
struct Line {
    armed: u64,
    fired: u64,
    handled: u64,
    /// Of timers and keys.
    duplicate_entries: u64,
    lost: u64,
    early: u64,
    lateness_ms: Lateness,
    /// What a plain listener heard of the same keys, written on a Redis that nobody watches.
    baseline: Plain,
    /// What a plain listener heard beside Overdue, whose nudges make Redis end the keys on time.
    beside: Plain,
    /// The plain keys, as Overdue's consumers saw them.
    watched: Watched,
}

#[derive(Serialize)]
struct Lateness {
    p50: f64,
    p99: f64,
    max: f64,
}

#[derive(Serialize)]
struct Plain {
    expected: u64,
    seen: u64,
    /// Of those seen; null when it saw none.
    p50_ms: Option<f64>,
}

#[derive(Serialize)]
struct Watched {
    written: u64,
    timeouts: u64,
    handled: u64,
    lost: u64,
    /// Timeouts beyond the first of a key.
    twice: u64,
    early: u64,
    by_notification: u64,
    by_nudge: u64,
    unproven: u64,
    p50_ms: f64,
    p99_ms: f64,
    max_ms: f64,
}

impl Verdict {
    /// Whether every promise was kept.
    pub(super) fn is_good(&self) -> bool {
        let Counts { timers, keys, duplicates, .. } = &self.counts;
        let kept = |tally: &Tally| tally.lost == 0 && tally.early == 0;
        kept(timers) && kept(keys) && *duplicates == 0 && self.unbalanced.is_none()
    }

    /// Writes it.
    pub(super) fn write(&self, output: &mut Output) -> Result<(), Failure> {
        for line in self.ours().into_iter().chain(self.plain()) {
            output.say(line)?;
        }
        output.object(&self.line())
    }

    fn line(&self) -> Line {
        let Counts { timers, keys, duplicates, beside, alone } = &self.counts;
        let plain =
            |heard: &Heard| Plain { expected: keys.expected, seen: heard.seen, p50_ms: heard.p50_us.map(ms) };
        Line {
            armed: timers.expected,
            fired: timers.fired,
            handled: timers.handled,
            duplicate_entries: *duplicates,
            lost: timers.lost,
            early: timers.early,
            lateness_ms: Lateness { p50: ms(timers.p50_us), p99: ms(timers.p99_us), max: ms(timers.max_us) },
            baseline: plain(alone),
            beside: plain(beside),
            watched: Watched {
                written: keys.expected,
                timeouts: keys.fired + keys.duplicates,
                handled: keys.handled,
                lost: keys.lost,
                twice: keys.duplicates,
                early: keys.early,
                by_notification: keys.by_notification,
                by_nudge: keys.by_index.saturating_sub(keys.unproven),
                unproven: keys.unproven,
                p50_ms: ms(keys.p50_us),
                p99_ms: ms(keys.p99_us),
                max_ms: ms(keys.max_us),
            },
        }
    }

    fn ours(&self) -> Vec<String> {
        let (lease, Counts { timers, keys, duplicates, .. }) = (self.lease_s, &self.counts);
        let pair = |name, of: fn(&Tally) -> u64, note: &str| row(name, of(timers), of(keys), note);
        let late = |name, of: fn(&Tally) -> u64, note| line(name, &time(of(timers)), &time(of(keys)), note);
        let Tally { by_notification, by_index, unproven, .. } = keys;
        let (heard, nudged) = (count(*by_notification), count(by_index.saturating_sub(*unproven)));
        let unproven =
            if *unproven == 0 { String::new() } else { format!(", {} unproven", count(*unproven)) };
        let again = format!("by another consumer, after the dead one's lease of {lease} s");
        let mut table = vec![
            String::new(),
            "Overdue: one of two relays and one of three consumers killed, notifications cut once".to_owned(),
            line("", "timers", "plain keys", "(SET ... PX, watched)"),
            pair("armed", |t| t.expected, ""),
            pair(
                "fired",
                |t| t.fired,
                &format!("keys: {heard} by a notification, {nudged} by a nudge{unproven}"),
            ),
            pair("handled", |t| t.handled, ""),
            pair(
                "handled twice",
                |t| t.twice,
                "the acknowledgement died with its consumer: idempotency keys",
            ),
            pair("started again", |t| t.restarted, &again),
            pair("lost", |t| t.lost, ""),
            pair("early", |t| t.early, ""),
            pair("fired twice", |t| t.duplicates, ""),
            late("lateness p50", |t| t.p50_us, "from due to handler start"),
            late("         p99", |t| t.p99_us, ""),
            late("         max", |t| t.max_us, ""),
        ];
        let seen = timers.duplicates + keys.duplicates;
        if *duplicates > seen {
            table.push(format!("  ENTRIES THAT NOBODY CAN EXPLAIN: {}", count(duplicates - seen)));
        }
        table.push(match &self.unbalanced {
            None => "  books balance".to_owned(),
            Some(what) => format!("  BOOKS DO NOT BALANCE: {what}"),
        });
        table
    }

    fn plain(&self) -> Vec<String> {
        let Counts { keys, beside, alone, .. } = &self.counts;
        let heard = |name, heard: &Heard, note| {
            let p50 = heard.p50_us.map_or_else(|| "-".to_owned(), time);
            line(name, &count(heard.seen), &p50, note)
        };
        let (all, after) = (count(keys.expected), time(self.after_us));
        vec![
            String::new(),
            format!("A plain keyspace listener, on the very same {all} keys, {after} after the last was due"),
            line("", "heard of", "p50 of those", ""),
            heard("without Overdue", alone, "the same SETs on a second Redis that nobody watches"),
            heard(
                "beside Overdue",
                beside,
                "on time by Overdue's nudges; what ends while it is cut off is lost",
            ),
        ]
    }
}

fn row(name: &str, timers: u64, keys: u64, note: &str) -> String {
    line(name, &count(timers), &count(keys), note)
}

fn line(name: &str, first: &str, second: &str, note: &str) -> String {
    format!("  {name:<16}{first:>9}  {second:>12}   {note}").trim_end().to_owned()
}

/// Microseconds for people: `4.1 ms`, `2.6 s`.
fn time(us: u64) -> String {
    if us < 1_000_000 { format!("{:.1} ms", ms(us)) } else { format!("{:.1} s", ms(us) / 1_000.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict() -> Verdict {
        let timers = Tally {
            expected: 10_000,
            fired: 10_000,
            by_index: 10_000,
            handled: 10_000,
            twice: 1,
            restarted: 6,
            p50_us: 1_500,
            p99_us: 4_123,
            max_us: 2_625_500,
            ..Tally::default()
        };
        let keys = Tally {
            expected: 1_000,
            fired: 1_000,
            by_index: 900,
            by_notification: 100,
            unproven: 1,
            handled: 1_000,
            p50_us: 2_500,
            p99_us: 9_000,
            max_us: 2_100_000,
            ..Tally::default()
        };
        let beside = Heard { seen: 995, p50_us: Some(2_000) };
        let counts = Counts { timers, keys, duplicates: 0, beside, alone: Heard::default() };
        Verdict { counts, unbalanced: None, lease_s: 2, after_us: 400_000 }
    }

    #[test]
    fn machines_get_the_fields_in_the_order_that_was_promised() {
        let line = serde_json::to_string(&verdict().line()).unwrap();
        let timers =
            r#""armed":10000,"fired":10000,"handled":10000,"duplicate_entries":0,"lost":0,"early":0"#;
        let late = r#""lateness_ms":{"p50":1.5,"p99":4.123,"max":2625.5}"#;
        let baseline = r#""baseline":{"expected":1000,"seen":0,"p50_ms":null}"#;
        let beside = r#""beside":{"expected":1000,"seen":995,"p50_ms":2.0}"#;
        let watched = concat!(
            r#""watched":{"written":1000,"timeouts":1000,"handled":1000,"lost":0,"twice":0,"early":0,"#,
            r#""by_notification":100,"by_nudge":899,"unproven":1,"p50_ms":2.5,"p99_ms":9.0,"max_ms":2100.0}"#
        );
        assert_eq!(line, format!("{{{timers},{late},{baseline},{beside},{watched}}}"));
    }

    #[test]
    fn what_breaks_a_promise_is_a_failed_check() {
        assert!(verdict().is_good());
        let with = |change: fn(&mut Verdict)| {
            let mut verdict = verdict();
            change(&mut verdict);
            verdict.is_good()
        };
        assert!(!with(|v| v.counts.timers.lost = 1) && !with(|v| v.counts.keys.lost = 1));
        assert!(!with(|v| v.counts.timers.early = 1) && !with(|v| v.counts.keys.early = 1));
        assert!(!with(|v| v.counts.duplicates = 1));
        assert!(!with(|v| v.unbalanced = Some("1 is missing".into())));
        assert!(with(|v| v.counts.timers.twice = 9));
    }

    #[test]
    fn the_tables_fit_a_terminal() {
        let verdict = verdict();
        for line in verdict.ours().into_iter().chain(verdict.plain()) {
            assert!(line.chars().count() <= 110, "{line}");
        }
    }
}

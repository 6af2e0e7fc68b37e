//! What came out: a table for people, one object for machines.

use serde::Serialize;

use super::score::Counts;
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
    duplicate_entries: u64,
    lost: u64,
    early: u64,
    lateness_ms: Lateness,
    baseline: Baseline,
}

#[derive(Serialize)]
struct Lateness {
    p50: f64,
    p99: f64,
    max: f64,
}

#[derive(Serialize)]
struct Baseline {
    expected: u64,
    seen: u64,
    /// Of those seen; null when it saw none.
    p50_ms: Option<f64>,
}

impl Verdict {
    /// Whether every promise was kept.
    pub(super) fn is_good(&self) -> bool {
        let Counts { lost, duplicates, early, .. } = self.counts;
        lost == 0 && duplicates == 0 && early == 0 && self.unbalanced.is_none()
    }

    /// Writes it.
    pub(super) fn write(&self, output: &mut Output) -> Result<(), Failure> {
        for line in self.table() {
            output.say(line)?;
        }
        output.object(&self.line())
    }

    fn line(&self) -> Line {
        let counts = &self.counts;
        Line {
            armed: counts.armed,
            fired: counts.fired,
            handled: counts.handled,
            duplicate_entries: counts.duplicates,
            lost: counts.lost,
            early: counts.early,
            lateness_ms: Lateness { p50: ms(counts.p50_us), p99: ms(counts.p99_us), max: ms(counts.max_us) },
            baseline: Baseline {
                expected: counts.keyed,
                seen: counts.heard,
                p50_ms: counts.heard_p50_us.map(ms),
            },
        }
    }

    fn table(&self) -> Vec<String> {
        [self.ours(), self.plain()].concat()
    }

    fn ours(&self) -> Vec<String> {
        let (c, lease) = (&self.counts, self.lease_s);
        let books = match &self.unbalanced {
            None => "balance".to_owned(),
            Some(what) => format!("DO NOT BALANCE: {what}"),
        };
        let fired =
            format!("{} by the index, {} by a notification", count(c.by_index), count(c.by_notification));
        let again = format!("cut off by the kill, handled by another consumer after the lease of {lease} s");
        let [p50, p99, max] = [c.p50_us, c.p99_us, c.max_us].map(time);
        let mut table = vec![
            String::new(),
            "Overdue, one of two relays and one of three consumers killed, notifications cut once".to_owned(),
            row("armed", c.armed, &format!("{} of them keyed", count(c.keyed))),
            row("fired", c.fired, &fired),
            row("handled", c.handled, ""),
            row(
                "handled twice",
                c.twice,
                "to the end: the acknowledgement died with its consumer, hence idempotency keys",
            ),
            row("started again", c.restarted, &again),
            row("lost", c.lost, ""),
            row("early", c.early, ""),
            row("duplicate entries", c.duplicates, ""),
            format!("  lateness    p50 {p50}, p99 {p99}, max {max}, from due to handler start"),
        ];
        if c.max_us >= lease * 1_000_000 {
            table.push(format!(
                "              (the longest waited for the lease of the dead consumer, {lease} s)"
            ));
        }
        table.push(format!("  books       {books}"));
        table
    }

    fn plain(&self) -> Vec<String> {
        let c = &self.counts;
        let (keyed, after) = (count(c.keyed), time(self.after_us));
        let heard = c.heard_p50_us.map_or_else(|| "-".to_owned(), time);
        vec![
            String::new(),
            format!("A plain keyspace listener, on the keys of the {keyed} keyed timers"),
            row("seen", c.heard, &format!("of {keyed} when the demo ended, {after} after the last")),
            format!("  lateness    p50 {heard}, of those it saw"),
        ]
    }
}

fn row(name: &str, n: u64, note: &str) -> String {
    format!("  {name:<18}{:>9}   {note}", count(n)).trim_end().to_owned()
}

/// Microseconds for people: `4.1 ms`, `2.6 s`.
fn time(us: u64) -> String {
    if us < 1_000_000 { format!("{:.1} ms", ms(us)) } else { format!("{:.1} s", ms(us) / 1_000.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict() -> Verdict {
        let counts = Counts {
            armed: 10_000,
            keyed: 1_000,
            fired: 10_000,
            by_index: 9_990,
            by_notification: 10,
            duplicates: 0,
            handled: 10_000,
            twice: 1,
            restarted: 6,
            lost: 0,
            early: 0,
            p50_us: 1_500,
            p99_us: 4_123,
            max_us: 2_625_500,
            heard: 0,
            heard_p50_us: None,
        };
        Verdict { counts, unbalanced: None, lease_s: 2, after_us: 400_000 }
    }

    #[test]
    fn machines_get_the_fields_in_the_order_that_was_promised() {
        let line = serde_json::to_string(&verdict().line()).unwrap();
        assert_eq!(
            line,
            r#"{"armed":10000,"fired":10000,"handled":10000,"duplicate_entries":0,"lost":0,"early":0,"lateness_ms":{"p50":1.5,"p99":4.123,"max":2625.5},"baseline":{"expected":1000,"seen":0,"p50_ms":null}}"#
        );
    }

    #[test]
    fn what_breaks_a_promise_is_a_failed_check() {
        assert!(verdict().is_good());
        let with = |change: fn(&mut Verdict)| {
            let mut verdict = verdict();
            change(&mut verdict);
            verdict.is_good()
        };
        assert!(!with(|v| v.counts.lost = 1) && !with(|v| v.counts.duplicates = 1));
        assert!(!with(|v| v.counts.early = 1) && !with(|v| v.unbalanced = Some("1 is missing".into())));
        assert!(with(|v| v.counts.twice = 9));
    }

    #[test]
    fn the_table_fits_a_terminal() {
        for line in verdict().table() {
            assert!(line.chars().count() <= 110, "{line}");
        }
    }
}

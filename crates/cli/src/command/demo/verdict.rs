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
        let c = &self.counts;
        let lease = self.lease_s;
        let row = |name: &str, n: u64, note: &str| {
            format!("  {name:<18}{:>9}   {note}", count(n)).trim_end().to_owned()
        };
        let late = |us: u64| format!("{:.1} ms", ms(us));
        let waited = if c.max_us >= lease * 1_000_000 {
            format!("; the longest waited for the lease of the dead consumer, {lease} s")
        } else {
            String::new()
        };
        let heard = c.heard_p50_us.map_or_else(|| "-".to_owned(), late);
        let books = match &self.unbalanced {
            None => "balance".to_owned(),
            Some(what) => format!("DO NOT BALANCE: {what}"),
        };
        vec![
            String::new(),
            "Overdue, one of two relays and one of three consumers killed, notifications cut once".to_owned(),
            row("armed", c.armed, &format!("{} of them keyed", count(c.keyed))),
            row(
                "fired",
                c.fired,
                &format!(
                    "{} by the index, {} by a notification",
                    count(c.by_index),
                    count(c.by_notification)
                ),
            ),
            row("handled", c.handled, ""),
            row(
                "handled twice",
                c.twice,
                "to the end: the acknowledgement died with its consumer, hence idempotency keys",
            ),
            row(
                "started again",
                c.restarted,
                &format!("cut off by the kill, handled by another consumer after the lease of {lease} s"),
            ),
            row("lost", c.lost, ""),
            row("early", c.early, ""),
            row("duplicate entries", c.duplicates, ""),
            format!(
                "  lateness    p50 {}, p99 {}, max {}, from due to handler start{waited}",
                late(c.p50_us),
                late(c.p99_us),
                late(c.max_us)
            ),
            format!("  books       {books}"),
            String::new(),
            format!("A plain keyspace listener, on the keys of the {} keyed timers", count(c.keyed)),
            row("seen", c.heard, &format!("of {} when the demo ended", count(c.keyed))),
            format!("  lateness    p50 {heard}, of those it saw"),
        ]
    }
}

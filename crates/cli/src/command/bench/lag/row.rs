//! A row of the table.

use serde::Serialize;

use super::OF;
use crate::output::text::count;
use crate::stage::consumer::Report;
use crate::stage::lateness::Lateness;
use crate::stage::ms;

/// What a consumer says of all that was due.
pub(super) struct Handled(pub(super) Report);

impl Handled {
    /// What should not be: something is missing, was handled twice, or early.
    pub(super) fn wrong(&self, what: &str) -> Option<String> {
        let Report { handled, early, .. } = self.0;
        let wrong = handled != u64::from(OF) || early > 0;
        wrong.then(|| format!("{handled} of {OF} {what} were handled, {early} of them early"))
    }
}

/// For one number of background keys.
#[derive(Serialize)]
pub(super) struct Row {
    background: u32,
    plain: Plain,
    watched: Seen,
    timers: Seen,
}

#[derive(Serialize)]
struct Plain {
    seen: u64,
    of: u32,
    /// Of those seen; null when none was.
    p50_ms: Option<f64>,
}

#[derive(Serialize)]
struct Seen {
    seen: u64,
    /// Of those seen; null when none was.
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
}

impl Row {
    pub(super) fn new(background: u32, plain: &Lateness, watched: &Handled, timers: &Handled) -> Self {
        let seen = |Handled(report): &Handled| {
            let at = |us| (report.handled > 0).then(|| ms(us));
            Seen { seen: report.handled, p50_ms: at(report.p50_us), p99_ms: at(report.p99_us) }
        };
        let plain = Plain { seen: plain.len(), of: OF, p50_ms: plain.at(0.5).map(ms) };
        Self { background, plain, watched: seen(watched), timers: seen(timers) }
    }

    fn line(&self) -> String {
        let Self { background, plain, watched, timers } = self;
        let seen = |of: &Seen| format!("{:>6} {:>9} {:>9}", count(of.seen), time(of.p50_ms), time(of.p99_ms));
        let plain = format!("{:>6} {:>9}", count(plain.seen), time(plain.p50_ms));
        let background = count((*background).into());
        format!("{background:>15}   {plain}   {}   {}", seen(watched), seen(timers))
    }
}

/// All rows, for people.
pub(super) fn table(rows: &[Row]) -> Vec<String> {
    let seen = format!("{:>6} {:>9} {:>9}", "seen", "p50", "p99");
    let mut table = vec![
        format!("{:>15}   {:^16}   {:^26}   {:^26}", "", "plain listener", "watched keys", "timers"),
        format!("{:>15}   {:>6} {:>9}   {seen}   {seen}", "background keys", "seen", "p50"),
    ];
    table.extend(rows.iter().map(Row::line));
    table.iter_mut().for_each(|line| line.truncate(line.trim_end().len()));
    table
}

fn time(ms: Option<f64>) -> String {
    match ms {
        None => "-".to_owned(),
        Some(ms) if ms < 1_000.0 => format!("{ms:.1} ms"),
        Some(ms) => format!("{:.1} s", ms / 1_000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(heard: u64) -> Row {
        let mut plain = Lateness::default();
        (0..heard).for_each(|_| plain.note(1_000, 1_007_000));
        let report = |handled, p50_us| {
            Handled(Report { handled, early: 0, p50_us, p99_us: 5_500, p999_us: 5_500, max_us: 5_500 })
        };
        Row::new(10_000, &plain, &report(1_000, 2_500), &report(0, 0))
    }

    #[test]
    fn machines_get_the_fields_in_the_order_that_was_promised() {
        let line = serde_json::to_string(&row(0)).unwrap();
        let plain = r#""plain":{"seen":0,"of":1000,"p50_ms":null}"#;
        let watched = r#""watched":{"seen":1000,"p50_ms":2.5,"p99_ms":5.5}"#;
        let timers = r#""timers":{"seen":0,"p50_ms":null,"p99_ms":null}"#;
        assert_eq!(line, format!(r#"{{"background":10000,{plain},{watched},{timers}}}"#));
    }

    #[test]
    fn what_is_missing_or_twice_or_early_is_wrong() {
        let handled = |handled, early| {
            Handled(Report { handled, early, p50_us: 1, p99_us: 1, p999_us: 1, max_us: 1 }).wrong("timers")
        };
        assert_eq!(handled(1_000, 0), None);
        assert_eq!(handled(999, 0).unwrap(), "999 of 1000 timers were handled, 0 of them early");
        assert!(handled(1_001, 0).is_some() && handled(1_000, 1).is_some());
    }

    #[test]
    fn the_table_stands_under_its_heads() {
        let table = table(&[row(3), row(0)]);
        assert!(table.iter().all(|line| line.chars().count() <= 100), "{table:#?}");
        assert_eq!(table[2].find("7.0 ms").map(|at| at + 6), table[1].find("p50").map(|at| at + 3));
    }
}

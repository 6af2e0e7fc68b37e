//! What all rounds say of a script.

use serde::Serialize;

use super::round::Step;

/// Of one script and one batch size, microseconds for each item.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Row {
    script: &'static str,
    batch: u32,
    /// The median of all rounds.
    us: f64,
    /// The least of all rounds.
    least_us: f64,
    /// The median with the scripts of the other folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    lua_us: Option<f64>,
    /// The median of what the others took to what ours took just before.
    #[serde(skip_serializing_if = "Option::is_none")]
    lua_ratio: Option<f64>,
}

/// What a script took in each round: with ours, and with those of the other folder.
struct Sample {
    script: &'static str,
    batch: u32,
    taken: Vec<(f64, Option<f64>)>,
}

/// All of them.
#[derive(Default)]
pub(super) struct Samples(Vec<Sample>);

impl Samples {
    /// Takes one round in: that of our scripts, and that of the others.
    pub(super) fn note(&mut self, batch: u32, items: usize, sets: &[Vec<Step>]) {
        let each = |us: u64| us as f64 / items as f64;
        for (at, &(script, us)) in sets[0].iter().enumerate() {
            let taken = (each(us), sets.get(1).map(|other| each(other[at].1)));
            match self.0.iter_mut().find(|sample| (sample.script, sample.batch) == (script, batch)) {
                Some(sample) => sample.taken.push(taken),
                None => self.0.push(Sample { script, batch, taken: vec![taken] }),
            }
        }
    }

    /// A row for each, by script.
    pub(super) fn rows(self) -> Vec<Row> {
        // As a round goes through them.
        let order: Vec<_> = self.0.iter().map(|sample| sample.script).collect();
        let mut rows: Vec<_> = self.0.iter().map(Sample::row).collect();
        rows.sort_by_key(|row| (order.iter().position(|&script| script == row.script), row.batch));
        rows
    }
}

impl Sample {
    fn row(&self) -> Row {
        let round = |n: f64, to: f64| (n * to).round() / to;
        let of = |value: fn(&(f64, Option<f64>)) -> Option<f64>, to| {
            median(self.taken.iter().filter_map(value).collect()).map(|n| round(n, to))
        };
        let least = self.taken.iter().map(|taken| taken.0).fold(f64::INFINITY, f64::min);
        Row {
            script: self.script,
            batch: self.batch,
            us: of(|taken| Some(taken.0), 1_000.0).unwrap_or(0.0),
            least_us: round(least, 1_000.0),
            lua_us: of(|taken| taken.1, 1_000.0),
            lua_ratio: of(|taken| taken.1.map(|other| other / taken.0), 10_000.0),
        }
    }
}

fn median(mut of: Vec<f64>) -> Option<f64> {
    of.sort_by(f64::total_cmp);
    of.get(of.len() / 2).copied()
}

/// All rows, for people: a line for each script, a column for each batch.
pub(super) fn table(rows: &[Row]) -> Vec<String> {
    let others = rows.iter().any(|row| row.lua_us.is_some());
    let mut head = format!("{:<15} {:>5} {:>10} {:>10}", "script", "batch", "us", "least");
    if others {
        head += &format!(" {:>10} {:>7}", "--lua", "ratio");
    }
    let line = |row: &Row| {
        let mut line = format!("{:<15} {:>5} {:>10.3} {:>10.3}", row.script, row.batch, row.us, row.least_us);
        if let (Some(us), Some(ratio)) = (row.lua_us, row.lua_ratio) {
            line += &format!(" {us:>10.3} {ratio:>7.3}");
        }
        line
    };
    [head].into_iter().chain(rows.iter().map(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_by_script_with_the_median_of_all_rounds() {
        let mut samples = Samples::default();
        for us in [10, 40, 20] {
            samples.note(
                256,
                10,
                &[vec![("schedule", us), ("sweep", 5)], vec![("schedule", us / 2), ("sweep", 5)]],
            );
            samples.note(1, 10, &[vec![("schedule", 100), ("sweep", 50)]]);
        }
        let rows = samples.rows();
        let named: Vec<_> = rows.iter().map(|row| (row.script, row.batch, row.us)).collect();
        assert_eq!(
            named,
            [("schedule", 1, 10.0), ("schedule", 256, 2.0), ("sweep", 1, 5.0), ("sweep", 256, 0.5)]
        );
        assert_eq!((rows[1].least_us, rows[1].lua_us, rows[1].lua_ratio), (1.0, Some(1.0), Some(0.5)));
        assert_eq!(rows[0].lua_us, None);
    }
}

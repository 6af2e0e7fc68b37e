//! The ledger: an acknowledged schedule is an obligation, and a judge looks at it after the faults.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

mod verdict;

pub use verdict::Verdict;

/// One armed timer: what the idempotency key is made of.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Obligation {
    /// The queue.
    pub queue: String,
    /// The timer's id.
    pub id: Vec<u8>,
    /// The generation.
    pub generation: u64,
}

impl fmt::Debug for Obligation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.queue, self.id.escape_ascii(), self.generation)
    }
}

#[derive(Debug, Default)]
struct Book {
    /// Due, unix ms.
    owed: BTreeMap<Obligation, u64>,
    /// When each was handled, unix ms.
    handled: BTreeMap<Obligation, Vec<u64>>,
    /// Released from: cancelled or replaced before it was due. Handled all the same, it is unknown.
    released: BTreeSet<Obligation>,
    /// Ids armed or cancelled with an unknown outcome.
    doubtful: BTreeSet<(String, Vec<u8>)>,
}

/// Who owes what, and what was handled. Any number of tasks and threads may write.
#[derive(Debug, Default)]
pub struct Ledger {
    book: Mutex<Book>,
}

impl Ledger {
    /// A clean page.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A schedule was acknowledged with this generation and due time (unix ms): it must be handled once.
    pub fn armed(&self, queue: &str, id: &[u8], generation: u64, due_ms: u64) {
        self.book().owed.insert(obligation(queue, id, generation), due_ms);
    }

    /// A cancel or a replacement was acknowledged: this generation must not be handled.
    pub fn released(&self, queue: &str, id: &[u8], generation: u64) {
        let obligation = obligation(queue, id, generation);
        let mut book = self.book();
        book.owed.remove(&obligation);
        book.released.insert(obligation);
    }

    /// A schedule or cancel of this id ended with an unknown outcome. One generation that nobody knows may then
    /// be handled; and what was armed may not be, as it may have been replaced or cancelled.
    pub fn doubtful(&self, queue: &str, id: &[u8]) {
        self.book().doubtful.insert((queue.to_owned(), id.to_vec()));
    }

    /// A handler has done this at `at_ms` (unix ms, the clock of the machine).
    pub fn handled(&self, queue: &str, id: &[u8], generation: u64, at_ms: u64) {
        self.book().handled.entry(obligation(queue, id, generation)).or_default().push(at_ms);
    }

    /// How many obligations nobody has handled yet.
    #[must_use]
    pub fn open(&self) -> usize {
        let book = self.book();
        book.owed.keys().filter(|owed| !book.handled.contains_key(owed)).count()
    }

    /// The command of a consumer process that notes what it handles in `file`:
    /// `overdue consume ... --exec --` and then this. [`Ledger::read_notes`] reads the file.
    #[must_use]
    pub fn note_command(file: &Path) -> Vec<String> {
        let line = r#"printf '%s %s %s %s\n' "$OVERDUE_QUEUE" "$OVERDUE_ID_BASE64" "$OVERDUE_GENERATION" "$(date +%s%3N)""#;
        // One short write to a file opened for appending: lines of many processes don't mix.
        vec!["sh".to_owned(), "-c".to_owned(), format!("{line} >> '{}'", file.display())]
    }

    /// Takes the lines of [`Ledger::note_command`] over, all of them: call it once for each file.
    ///
    /// # Panics
    /// A line is not `queue base64(id) generation unix-ms`.
    pub fn read_notes(&self, file: &Path) {
        for line in fs::read_to_string(file).unwrap_or_default().lines() {
            let parse = || {
                let mut words = line.split(' ');
                let (queue, id) = (words.next()?, BASE64_STANDARD.decode(words.next()?).ok()?);
                Some((queue, id, words.next()?.parse().ok()?, words.next()?.parse().ok()?))
            };
            let (queue, id, generation, at_ms) = parse().unwrap_or_else(|| panic!("{line:?} is no note"));
            self.handled(queue, &id, generation, at_ms);
        }
    }

    /// Takes the output of `overdue consume --print --json` over: one object a line with `queue`, `id` or
    /// `id_base64`, `generation`, and `at_ms` (when the handler began). Call it once, when the process is gone.
    ///
    /// # Panics
    /// A whole line is no such object. (A last line without its end was cut off by a kill: left out.)
    pub fn read_json_lines(&self, text: &str) {
        for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
            let parse = || {
                let object: serde_json::Value = serde_json::from_str(line).ok()?;
                let id = match object.get("id_base64").and_then(|id| id.as_str()) {
                    Some(text) => BASE64_STANDARD.decode(text).ok()?,
                    None => object.get("id")?.as_str()?.as_bytes().to_vec(),
                };
                let number = |name: &str| object.get(name)?.as_u64();
                Some((object.get("queue")?.as_str()?.to_owned(), id, number("generation")?, number("at_ms")?))
            };
            let (queue, id, generation, at_ms) = parse().unwrap_or_else(|| panic!("{line:?} is no delivery"));
            self.handled(&queue, &id, generation, at_ms);
        }
    }

    /// Compares both sides.
    #[must_use]
    pub fn judge(&self) -> Verdict {
        let book = self.book();
        let mut verdict =
            Verdict { owed: book.owed.len(), handled: book.handled.len(), ..Verdict::default() };
        let mut doubtful = book.doubtful.clone();
        let excused = |owed: &Obligation| doubtful.contains(&(owed.queue.clone(), owed.id.clone()));
        let lost = book.owed.keys().filter(|owed| !book.handled.contains_key(owed) && !excused(owed));
        verdict.lost = lost.cloned().collect();
        for (obligation, times) in &book.handled {
            if times.len() > 1 {
                verdict.twice.push((obligation.clone(), times.len()));
            }
            let first = times.iter().min().copied().unwrap_or_default();
            match book.owed.get(obligation) {
                Some(&due) if first < due => verdict.early.push((obligation.clone(), due - first)),
                Some(&due) => verdict.lateness_ms.push(first - due),
                None if book.released.contains(obligation) => verdict.released.push(obligation.clone()),
                None if doubtful.remove(&(obligation.queue.clone(), obligation.id.clone())) => {}
                None => verdict.unknown.push(obligation.clone()),
            }
        }
        verdict.lateness_ms.sort_unstable();
        verdict
    }

    /// Judges, and fails unless every obligation was met once, and nothing else was handled.
    ///
    /// # Panics
    /// With the report.
    pub fn assert_met(&self) -> Verdict {
        let verdict = self.judge();
        assert!(verdict.is_clean(), "{verdict}");
        verdict
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn obligation(queue: &str, id: &[u8], generation: u64) -> Obligation {
    Obligation { queue: queue.to_owned(), id: id.to_vec(), generation }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_judge_finds_each_fault() {
        let ledger = Ledger::new();
        for (id, generation) in [("met", 1), ("lost", 2), ("twice", 3), ("early", 4), ("cancelled", 5)] {
            ledger.armed("q", id.as_bytes(), generation, 1000);
        }
        ledger.released("q", b"cancelled", 5);
        ledger.armed("q", b"doubtful", 5, 1000);
        ledger.doubtful("q", b"doubtful");
        assert_eq!(ledger.open(), 5);
        let handled = [
            ("met", 1, 1007),
            ("twice", 3, 1001),
            ("twice", 3, 1002),
            ("early", 4, 998),
            ("cancelled", 5, 1001),
            ("doubtful", 6, 1001),
            ("doubtful", 7, 1001),
            ("strange", 8, 1001),
        ];
        for (id, generation, at_ms) in handled {
            ledger.handled("q", id.as_bytes(), generation, at_ms);
        }
        let verdict = ledger.judge();
        let of = |id: &str, generation| obligation("q", id.as_bytes(), generation);
        assert_eq!(verdict.lost, [of("lost", 2)]);
        assert_eq!(verdict.twice, [(of("twice", 3), 2)]);
        assert_eq!(verdict.early, [(of("early", 4), 2)]);
        assert_eq!(verdict.released, [of("cancelled", 5)]);
        assert_eq!(verdict.unknown, [of("doubtful", 7), of("strange", 8)]);
        assert_eq!((verdict.lateness(1.0), verdict.is_clean()), (7, false));
        assert!(verdict.to_string().contains("q/lost/2"), "{verdict}");
    }

    #[test]
    fn notes_and_lines_of_other_processes_are_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("notes");
        let ledger = Ledger::new();
        let command = Ledger::note_command(&file);
        let ran = Command::new(&command[0])
            .args(&command[1..])
            .envs([("OVERDUE_QUEUE", "q"), ("OVERDUE_ID_BASE64", "/wo="), ("OVERDUE_GENERATION", "7")])
            .status();
        assert!(ran.unwrap().success());
        ledger.read_notes(&file);
        ledger.read_json_lines(
            "{\"queue\":\"q\",\"id\":\"a\",\"generation\":8,\"at_ms\":5}\n{\"queue\":\"q\",\"i",
        );
        ledger.armed("q", b"\xff\n", 7, 1000);
        ledger.armed("q", b"a", 8, 5);
        ledger.assert_met();
    }
}

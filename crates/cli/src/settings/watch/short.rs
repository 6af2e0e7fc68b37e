//! A rule on one line: `PATTERN=QUEUE`.

use super::table::{PATTERN, QUEUE};
use crate::settings::layers::{Given, Origin};
use crate::settings::list::draft::Draft;

/// What to write.
pub(crate) const FORM: &str = "write PATTERN=QUEUE, such as session:*=sessions";

/// Pattern and queue of a rule, both valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Short {
    pattern: String,
    queue: String,
}

/// A rule a line. Spaces around pattern and queue do not count; a pattern that needs them, or a line end, goes into
/// the file.
pub(crate) fn read(text: &str) -> Result<Vec<Short>, String> {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let alone = lines.len() < 2;
    let rules = lines.into_iter().map(|line| {
        read_line(line).map_err(|problem| if alone { problem } else { format!("in {line:?}: {problem}") })
    });
    rules.collect()
}

/// A queue's name has no `=`, and a pattern may: the last one counts.
fn read_line(line: &str) -> Result<Short, String> {
    let (pattern, queue) = line.rsplit_once('=').ok_or_else(|| FORM.to_owned())?;
    let (pattern, queue) = (pattern.trim_end(), queue.trim_start());
    (PATTERN.parse)(pattern)?;
    (QUEUE.parse)(queue)?;
    Ok(Short { pattern: pattern.to_owned(), queue: queue.to_owned() })
}

impl Short {
    /// The rule as if the file said it.
    pub(super) fn draft(self, origin: &Origin) -> Draft {
        let given = |entry, text| Given { entry, text, origin: origin.clone() };
        Draft {
            origin: origin.clone(),
            given: vec![given(&PATTERN.entry, self.pattern), given(&QUEUE.entry, self.queue)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<(String, String)> {
        read(text).unwrap().into_iter().map(|short| (short.pattern, short.queue)).collect()
    }

    #[test]
    fn the_last_equals_sign_ends_the_pattern() {
        assert_eq!(pairs("a=b:*=q"), [("a=b:*".to_owned(), "q".to_owned())]);
        assert_eq!(pairs("a, b?[x-z] c=q"), [("a, b?[x-z] c".to_owned(), "q".to_owned())]);
    }

    #[test]
    fn a_line_is_a_rule_and_spaces_around_do_not_count() {
        let text = "\n  session:* = sessions\n\n\torder:*=orders \n";
        let expected = [("session:*", "sessions"), ("order:*", "orders")];
        assert_eq!(pairs(text), expected.map(|(pattern, queue)| (pattern.to_owned(), queue.to_owned())));
        assert_eq!(pairs(""), []);
    }

    #[test]
    fn what_is_wrong_says_what_to_write() {
        assert_eq!(read("session:*").unwrap_err(), FORM);
        assert_eq!(read("a=b\nsession:*").unwrap_err(), format!("in \"session:*\": {FORM}"));
        assert_eq!(read("=q").unwrap_err(), "empty: write a Redis glob such as session:*");
        assert!(read("session:*=").unwrap_err().starts_with("the queue name \"\" is not valid: 1 to 64 of"));
        assert!(
            read("session:*=Sessions").unwrap_err().starts_with("the queue name \"Sessions\" is not valid")
        );
    }
}

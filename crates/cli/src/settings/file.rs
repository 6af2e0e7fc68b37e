//! Settings from the TOML file. Every error says line and column.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::key::Entry;
use super::layers::{Given, Origin};
use super::list::draft::Draft;
use super::list::{LISTS, List};
use super::nearest::nearest;
use super::table::ALL;
use super::value::value_text;

/// The largest file that is read, in bytes: a settings file has a few KiB.
const MOST_BYTES: u64 = 1024 * 1024;

/// What the file says, and what is wrong with it.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) given: Vec<Given>,
    /// The tables of each list, such as `[[watch]]`, in their order.
    pub(crate) lists: BTreeMap<&'static str, Vec<Draft>>,
    pub(crate) errors: Vec<String>,
}

/// Reads the file at `path`.
pub(crate) fn read(path: &Path) -> Contents {
    match read_text(path) {
        Ok(text) => read_settings(&path.display().to_string(), &text),
        Err(problem) => Contents { errors: vec![problem], ..Contents::default() },
    }
}

fn read_text(path: &Path) -> Result<String, String> {
    let cannot = |problem: &dyn std::fmt::Display| format!("cannot read {}: {problem}", path.display());
    let about = std::fs::metadata(path).map_err(|error| cannot(&error))?;
    if about.len() > MOST_BYTES {
        return Err(cannot(&"it is larger than 1 MiB, and so no settings file"));
    }
    std::fs::read_to_string(path).map_err(|error| cannot(&error))
}

/// As [`read`], for a text that came from `name`.
pub(crate) fn read_settings(name: &str, text: &str) -> Contents {
    let mut reading = Reading { name, text, contents: Contents::default() };
    let (table, mut errors) = DeTable::parse_recoverable(text);
    // Behind the first mistake in the syntax the parser guesses: only that one is worth saying.
    errors.sort_by_key(|error| error.span().map_or(0, |span| span.start));
    match errors.first() {
        None => reading.take_top(table.get_ref()),
        Some(error) => reading.error(error.span().unwrap_or(0..0), &error.message().replace('\n', ", ")),
    }
    reading.contents
}

struct Reading<'a> {
    name: &'a str,
    text: &'a str,
    contents: Contents,
}

impl Reading<'_> {
    fn take_top(&mut self, table: &DeTable<'_>) {
        for (name, value) in in_order(table) {
            match (value.get_ref(), List::of(name.get_ref())) {
                (DeValue::Array(tables), Some(list)) => {
                    tables.iter().for_each(|table| self.take_table(list, table));
                }
                (DeValue::Table(_), Some(list)) => self.error(name.span(), &List::form(list.name)),
                (_, Some(list)) => {
                    self.error(value.span(), &format!("{}: {}", list.name, List::form(list.name)));
                }
                (DeValue::Table(section), None) if is_section(name.get_ref()) => {
                    self.take_section(name.get_ref(), section);
                }
                (DeValue::Table(_), None) => self.no_section(name),
                (DeValue::Array(items), None) if is_list(items) && !is_section(name.get_ref()) => {
                    self.no_section(name);
                }
                _ if is_section(name.get_ref()) => {
                    self.error(
                        name.span(),
                        &format!("{0} is a section: write [{0}] on a line of its own", name.get_ref()),
                    );
                }
                _ => self.take(name.get_ref(), name.span(), value),
            }
        }
    }

    fn no_section(&mut self, name: &Spanned<Cow<'_, str>>) {
        let nearest = nearest(name.get_ref(), sections().chain(LISTS.map(|list| list.name)));
        let written =
            if List::of(nearest).is_some() { format!("[[{nearest}]]") } else { format!("[{nearest}]") };
        let problem = format!("there is no section [{}]; the nearest name is {written}", name.get_ref());
        self.error(name.span(), &problem);
    }

    fn take_section(&mut self, section: &str, table: &DeTable<'_>) {
        for (name, value) in in_order(table) {
            self.take(&format!("{section}.{}", name.get_ref()), name.span(), value);
        }
    }

    fn take(&mut self, path: &str, at: Range<usize>, value: &Spanned<DeValue<'_>>) {
        let given = self.read(ALL, path, at, value);
        self.contents.given.extend(given);
    }

    fn take_table(&mut self, list: &'static List, table: &Spanned<DeValue<'_>>) {
        let DeValue::Table(said) = table.get_ref() else {
            return self.error(table.span(), &List::form(list.name));
        };
        let mut draft = Draft { origin: Origin::File(self.place(table.span().start)), given: vec![] };
        for (name, value) in in_order(said) {
            let path = format!("{}.{}", list.name, name.get_ref());
            draft.given.extend(self.read(list.keys, &path, name.span(), value));
        }
        self.contents.lists.entry(list.name).or_default().push(draft);
    }

    fn read(
        &mut self,
        known: &[&'static Entry],
        path: &str,
        at: Range<usize>,
        value: &Spanned<DeValue<'_>>,
    ) -> Option<Given> {
        let Some(entry) = known.iter().copied().find(|entry| entry.path == path) else {
            let nearest = nearest(path, known.iter().map(|entry| entry.path));
            self.error(at, &format!("there is no setting {path}; the nearest name is {nearest}"));
            return None;
        };
        match value_text(entry, value.get_ref()) {
            Ok(text) => Some(Given { entry, text, origin: Origin::File(self.place(value.span().start)) }),
            Err(problem) => {
                self.error(value.span(), &format!("{path}: {problem}"));
                None
            }
        }
    }

    fn error(&mut self, at: Range<usize>, problem: &str) {
        let place = self.place(at.start);
        self.contents.errors.push(format!("{place}: {problem}"));
    }

    /// `name:line:column`, both from 1; columns count characters.
    fn place(&self, offset: usize) -> String {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
        format!("{}:{line}:{column}", self.name)
    }
}

/// The parser keeps names sorted; people want errors in the order of their file.
fn in_order<'t, 'd>(table: &'t DeTable<'d>) -> Vec<(&'t Spanned<Cow<'d, str>>, &'t Spanned<DeValue<'d>>)> {
    let mut pairs: Vec<_> = table.iter().collect();
    pairs.sort_by_key(|(name, _)| name.span().start);
    pairs
}

fn sections() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|entry| entry.section_and_name().0).filter(|section| !section.is_empty())
}

/// Whether these came from `[[name]]`.
fn is_list(items: &DeArray<'_>) -> bool {
    !items.is_empty() && items.iter().all(|item| matches!(item.get_ref(), DeValue::Table(_)))
}

fn is_section(name: &str) -> bool {
    sections().any(|section| section == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Vec<(String, String, String)>, Vec<String>) {
        let Contents { given, errors, .. } = read_settings("overdue.toml", text);
        let given = given.into_iter().map(|g| (g.entry.path.to_owned(), g.text, g.origin.to_string()));
        (given.collect(), errors)
    }

    #[test]
    fn values_come_with_their_place() {
        let text = "namespace = \"team\"\n[consume]\n  concurrency = 1_000 # many\n[relay]\nqueues = [\"a\", \"b\"]\n";
        let (given, errors) = read(text);
        assert_eq!(errors, Vec::<String>::new());
        let expected = [
            ("namespace", "team", "overdue.toml:1:13"),
            ("consume.concurrency", "1000", "overdue.toml:3:17"),
            ("relay.queues", "a,b", "overdue.toml:5:10"),
        ];
        assert_eq!(given, expected.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned())));
    }

    #[test]
    fn unknown_names_are_errors_with_line_and_column() {
        let (_, errors) = read("[relay]\ngrcae = \"5ms\"\n\n[comsume]\nlease = \"3s\"\n");
        assert_eq!(
            errors,
            [
                "overdue.toml:2:1: there is no setting relay.grcae; the nearest name is relay.grace",
                "overdue.toml:4:2: there is no section [comsume]; the nearest name is [consume]",
            ]
        );
    }

    #[test]
    fn wrong_forms_say_what_to_write() {
        let (_, errors) =
            read("relay = 5\n[redis]\nurl = [\"a\"]\n[consume]\nconcurrency = 1.5\nlease = { s = 1 }\n");
        assert_eq!(
            errors,
            [
                "overdue.toml:1:1: relay is a section: write [relay] on a line of its own",
                "overdue.toml:3:7: redis.url: write it between quotes",
                "overdue.toml:5:15: consume.concurrency: write a whole number",
                "overdue.toml:6:9: consume.lease: write it between quotes",
            ]
        );
        let (_, errors) = read("[relay]\nqueues = [1]\n");
        assert_eq!(
            errors,
            ["overdue.toml:2:10: relay.queues: write a list of strings, such as [\"orders\"]"]
        );
    }

    #[test]
    fn text_that_is_not_toml_is_an_error_with_line_and_column() {
        let (given, errors) = read("[redis]\nurl = \"a\nb\"\n");
        assert!(given.is_empty());
        assert!(errors.len() == 1 && errors[0].starts_with("overdue.toml:2:"), "{errors:?}");
        let (_, errors) = read("[redis]\nurl = \"a\"\nurl = \"b\"\n");
        assert!(errors[0].starts_with("overdue.toml:3:1: duplicate key"), "{errors:?}");
    }
}

//! Lists of tables in the file: `[[watch]]`, `[[group]]`, `[[consumer]]`. What a table of each can say is defined once,
//! in a table of its own; `config sample`, `config check` and `config show` follow from it.

pub(crate) mod draft;

use super::key::Entry;
use super::{consumer, group, table, watch};

/// One list of tables.
#[derive(Debug)]
pub(crate) struct List {
    /// Between the double brackets.
    pub(crate) name: &'static str,
    /// Every key of a table, in the order of the sample file.
    pub(crate) keys: &'static [&'static Entry],
    /// Stands before the one that the sample file shows.
    pub(crate) about: &'static str,
    /// The keys that name one in `config show`.
    pub(crate) named_by: &'static [&'static str],
    /// The section that says what a table does not.
    pub(crate) section: Option<&'static str>,
}

/// All lists, in the order of the sample file.
pub(crate) static LISTS: [&List; 3] = [&watch::LIST, &group::LIST, &consumer::LIST];

impl List {
    /// The list of this name.
    pub(crate) fn of(name: &str) -> Option<&'static Self> {
        LISTS.into_iter().find(|list| list.name == name)
    }

    /// What is wrong when it stands in the file as something else.
    pub(crate) fn form(name: &str) -> String {
        format!("{name} is a list: write [[{name}]] on a line of its own for each")
    }

    /// The setting that holds for tables which do not say `entry` themselves.
    pub(crate) fn fallback(&self, entry: &Entry) -> Option<&'static Entry> {
        let (section, (_, name)) = (self.section?, entry.section_and_name());
        table::ALL.iter().copied().find(|known| known.section_and_name() == (section, name))
    }
}

//! `overdue config show`: the values in effect, and where each comes from.

use serde::Serialize;

use super::layers::Layers;
use super::table::ALL;
use crate::output::Row;

/// One setting as it is in effect. A password shows as `***`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Effective {
    pub(crate) name: &'static str,
    /// Empty = not set.
    pub(crate) value: String,
    /// A flag, a variable, `file:line:column`, or `default`.
    pub(crate) from: String,
}

impl Row for Effective {
    const COLUMNS: &'static [&'static str] = &["SETTING", "VALUE", "FROM"];

    fn cells(&self) -> Vec<String> {
        let value = if self.value.is_empty() { "-".to_owned() } else { self.value.clone() };
        vec![self.name.to_owned(), value, self.from.clone()]
    }
}

/// Every setting, in the order of the table.
pub(crate) fn effective(layers: &Layers) -> Vec<Effective> {
    let settings = ALL.iter().map(|entry| {
        let given = layers.look_up(entry);
        Effective { name: entry.path, value: entry.shown(&given.text), from: given.origin.to_string() }
    });
    settings.collect()
}

//! `overdue config show`: the values in effect, and where each comes from.

use overdue_protocol::watch::Rule;
use serde::Serialize;

use super::key::Form;
use super::layers::Layers;
use super::table::{ALL, WATCH};
use super::watch;
use crate::output::{Row, text};

/// One setting as it is in effect. A password shows as `***`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Effective {
    pub(crate) name: String,
    /// Empty = not set.
    pub(crate) value: String,
    /// A flag, a variable, `file:line:column`, or `default`.
    pub(crate) from: String,
}

impl Row for Effective {
    const COLUMNS: &'static [&'static str] = &["SETTING", "VALUE", "FROM"];

    fn cells(&self) -> Vec<String> {
        let value = match self.value.as_str() {
            "" => "-".to_owned(),
            value if value.contains(char::is_control) => text::printable(value.as_bytes()),
            value => value.to_owned(),
        };
        vec![self.name.clone(), value, self.from.clone()]
    }
}

/// Every setting, in the order of the table, then the watch rules: `rules` is what the layers resolve to.
pub(crate) fn effective(layers: &Layers, rules: &[Rule]) -> Vec<Effective> {
    let scalars = ALL.iter().filter(|entry| entry.form != Form::Rules).map(|entry| {
        let given = layers.look_up(entry);
        Effective {
            name: entry.path.to_owned(),
            value: entry.shown(&given.text),
            from: given.origin.to_string(),
        }
    });
    scalars.chain(watched(layers, rules)).collect()
}

/// `watch.<rule>.<key>` for all that a rule can say; one line when there is no rule.
fn watched(layers: &Layers, rules: &[Rule]) -> Vec<Effective> {
    if rules.is_empty() {
        let from = layers.look_up(&WATCH.entry).origin.to_string();
        return vec![Effective { name: WATCH.entry.path.to_owned(), value: String::new(), from }];
    }
    let drafts = watch::drafts(layers);
    let shown = drafts.iter().zip(rules).flat_map(|(draft, rule)| {
        watch::table::KEYS.iter().map(move |entry| {
            let (section, key) = entry.section_and_name();
            let given = draft.look_up(entry);
            // These two have defaults that depend on other settings.
            let value = match key {
                "name" => rule.name.to_string(),
                "db" => rule.db.to_string(),
                _ => given.text,
            };
            Effective {
                name: format!("{section}.{}.{key}", rule.name),
                value,
                from: given.origin.to_string(),
            }
        })
    });
    shown.collect()
}

//! `overdue config show`: the values in effect, and where each comes from.

use overdue_protocol::watch::Rule;
use serde::Serialize;

use super::key::{Entry, Form};
use super::layers::{Given, Layers, Origin};
use super::list::List;
use super::table::{ALL, WATCH};
use super::{consumer, group, watch};
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

/// Every setting, in the order of the table, then the lists: `rules` is what the layers resolve to.
pub(crate) fn effective(layers: &Layers, rules: &[Rule]) -> Vec<Effective> {
    let scalars = ALL.iter().filter(|entry| entry.form != Form::Rules).map(|entry| {
        let given = layers.look_up(entry);
        Effective {
            name: entry.path.to_owned(),
            value: entry.shown(&given.text),
            from: given.origin.to_string(),
        }
    });
    let lists = watched(layers, rules).into_iter();
    scalars.chain(lists).chain(listed(layers, &group::LIST)).chain(listed(layers, &consumer::LIST)).collect()
}

/// `watch.<rule>.<key>` for all that a rule can say; one line when there is no rule.
fn watched(layers: &Layers, rules: &[Rule]) -> Vec<Effective> {
    if rules.is_empty() {
        return vec![none(&watch::LIST, &layers.look_up(&WATCH.entry).origin)];
    }
    let drafts = watch::drafts(layers);
    let shown = drafts.iter().zip(rules).flat_map(|(draft, rule)| {
        // These two have defaults that depend on other settings.
        let value = |entry: &'static Entry| match entry.section_and_name() {
            (_, "name") => Some(rule.name.to_string()),
            (_, "db") => Some(rule.db.to_string()),
            _ => None,
        };
        let name = rule.name.as_str();
        watch::LIST.keys.iter().map(move |entry| line(name, entry, value(entry), &draft.look_up(entry)))
    });
    shown.collect()
}

/// `<list>.<its name>.<key>` for all that a table of the list can say; one line when there is none.
fn listed(layers: &Layers, list: &'static List) -> Vec<Effective> {
    let drafts = layers.drafts(list);
    if drafts.is_empty() {
        return vec![none(list, &Origin::Default)];
    }
    let shown = drafts.iter().flat_map(|draft| {
        let names = list.keys.iter().filter(|entry| list.named_by.contains(&entry.section_and_name().1));
        let names: Vec<String> = names.map(|entry| draft.look_up(entry).text).collect();
        let name = names.join(".");
        let given = |entry: &'static Entry| match (draft.said(entry), list.fallback(entry)) {
            (None, Some(fallback)) => layers.look_up(fallback),
            _ => draft.look_up(entry),
        };
        list.keys.iter().map(move |entry| line(&name, entry, None, &given(entry))).collect::<Vec<_>>()
    });
    shown.collect()
}

fn none(list: &List, origin: &Origin) -> Effective {
    Effective { name: list.name.to_owned(), value: String::new(), from: origin.to_string() }
}

fn line(of: &str, entry: &Entry, value: Option<String>, given: &Given) -> Effective {
    let (list, key) = entry.section_and_name();
    Effective {
        name: format!("{list}.{of}.{key}"),
        value: value.unwrap_or_else(|| entry.shown(&given.text)),
        from: given.origin.to_string(),
    }
}

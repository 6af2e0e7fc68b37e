//! One table of a list, as it was given.

use crate::settings::key::{Entry, Key};
use crate::settings::layers::{Given, Layers, Origin};

/// A table of a list; nothing in it is known to be valid yet.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    /// Where it begins.
    pub(crate) origin: Origin,
    /// What it says.
    pub(crate) given: Vec<Given>,
}

impl Draft {
    /// What it says for `entry`, if anything.
    pub(crate) fn said(&self, entry: &'static Entry) -> Option<&Given> {
        self.given.iter().find(|given| given.entry == entry)
    }

    /// What it says for `entry`, or the default.
    pub(crate) fn look_up(&self, entry: &'static Entry) -> Given {
        let default = || Given { entry, text: entry.default.to_owned(), origin: Origin::Default };
        self.said(entry).cloned().unwrap_or_else(default)
    }

    /// The value for `key`. If it is wrong, that is noted and the default stands in.
    pub(crate) fn read<T>(&self, layers: &mut Layers, key: &'static Key<T>) -> T {
        layers.parse(key, &self.look_up(&key.entry)).unwrap_or_else(|| key.default_value())
    }

    /// As [`Draft::read`], with `otherwise` for what it does not say.
    pub(crate) fn read_or<T>(&self, layers: &mut Layers, key: &'static Key<T>, otherwise: T) -> T {
        let said = self.said(&key.entry).and_then(|given| layers.parse(key, given));
        said.unwrap_or(otherwise)
    }

    /// As [`Draft::read`], for what it must say.
    pub(crate) fn demand<T>(&self, layers: &mut Layers, key: &'static Key<T>) -> Option<T> {
        let Some(given) = self.said(&key.entry) else {
            let (path, (_, name), example) =
                (key.entry.path, key.entry.section_and_name(), key.entry.example);
            layers.note(&self.origin, &format!("{path} is missing: write it like {name} = {example:?}"));
            return None;
        };
        layers.parse(key, given)
    }
}

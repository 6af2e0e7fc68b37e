//! What was given, and where: flags over environment over file over default. Nothing here is known to be
//! valid yet.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use super::key::{Entry, Key};
use super::list::List;
use super::list::draft::Draft;
use super::{environment, file};

/// Where a value comes from, weakest first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    Default,
    /// `path:line:column`
    File(String),
    /// The variable.
    Environment(String),
    /// The flag, without its dashes.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(place) => f.write_str(place),
            Self::Environment(variable) => f.write_str(variable),
            Self::Flag(long) => write!(f, "--{long}"),
        }
    }
}

/// One value as it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) entry: &'static Entry,
    pub(crate) text: String,
    pub(crate) origin: Origin,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

impl Eq for Entry {}

/// All that was given, the strongest of each setting, and what is wrong so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layers {
    given: BTreeMap<&'static str, Given>,
    /// The tables of each list in the file.
    lists: BTreeMap<&'static str, Vec<Draft>>,
    errors: Vec<String>,
    file: Option<PathBuf>,
}

impl Layers {
    /// Reads the environment and the file, and puts `flags` on top. The file is `config`, else what
    /// `OVERDUE_CONFIG` names, else none. What is wrong comes out with [`Layers::into_errors`].
    pub(crate) fn collect(
        config: Option<PathBuf>,
        flags: Vec<Given>,
        variables: impl Iterator<Item = (OsString, OsString)>,
    ) -> Self {
        let mut layers = Self::default();
        let environment = environment::read(variables);
        layers.file = config.or(environment.config);
        let from_file = layers.file.as_deref().map(file::read).unwrap_or_default();
        layers.lists = from_file.lists;
        let from_file = (from_file.given, from_file.errors);
        for (given, errors) in [from_file, (environment.given, environment.errors), (flags, vec![])] {
            layers.given.extend(given.into_iter().map(|given| (given.entry.path, given)));
            layers.errors.extend(errors);
        }
        layers
    }

    /// The file that was read, if any.
    pub(crate) fn file(&self) -> Option<&PathBuf> {
        self.file.as_ref()
    }

    /// The tables of a list in the file, in their order.
    pub(crate) fn drafts(&self, list: &List) -> Vec<Draft> {
        self.lists.get(list.name).cloned().unwrap_or_default()
    }

    /// What was given for a setting, or its default, and where.
    pub(crate) fn look_up(&self, entry: &'static Entry) -> Given {
        let default = || Given { entry, text: entry.default.to_owned(), origin: Origin::Default };
        self.given.get(entry.path).cloned().unwrap_or_else(default)
    }

    /// The value of a setting. If it is wrong, that is noted and the default stands in, so that one look
    /// finds all that is wrong.
    pub(crate) fn read<T>(&mut self, key: &'static Key<T>) -> T {
        let given = self.look_up(&key.entry);
        self.parse(key, &given).unwrap_or_else(|| key.default_value())
    }

    /// What `given` means. If it is wrong, that is noted.
    pub(crate) fn parse<T>(&mut self, key: &'static Key<T>, given: &Given) -> Option<T> {
        let noted = (key.parse)(&given.text).map_err(|problem| {
            // In the environment and among the flags the origin names the setting already.
            let name = if matches!(given.origin, Origin::File(_)) {
                format!("{}: ", key.entry.path)
            } else {
                String::new()
            };
            let value =
                if key.entry.secret { String::new() } else { format!(" {:?}", key.entry.shown(&given.text)) };
            self.note(&given.origin, &format!("{name}invalid value{value}: {problem}"));
        });
        noted.ok()
    }

    /// Notes what is wrong with a value that came from `origin`.
    pub(crate) fn note(&mut self, origin: &Origin, problem: &str) {
        self.errors.push(format!("{origin}: {problem}"));
    }

    /// What is wrong so far.
    pub(crate) fn errors(&self) -> &[String] {
        &self.errors
    }

    /// What is wrong, a line each; empty if nothing is.
    pub(crate) fn into_errors(self) -> Vec<String> {
        self.errors
    }
}

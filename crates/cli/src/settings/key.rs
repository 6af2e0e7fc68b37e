//! What one setting is: its names, its default, what it says about itself, and how its text is read.

/// Names the settings of a table, and lists them under a name of its own.
macro_rules! table {
    ($(#[$doc:meta])* $all:ident; $($name:ident: $type:ty = $key:expr;)*) => {
        $(pub(crate) static $name: Key<$type> = $key;)*

        $(#[$doc])*
        pub(crate) static $all: &[&Entry] = &[$(&$name.entry),*];
    };
}
pub(super) use table;

/// How a setting stands in the TOML file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// `name = "text"`
    Text,
    /// `name = 16`
    Number,
    /// `name = ["a", "b"]`; in the environment `a,b`; as a flag once for each.
    List,
    /// `name = ["a", "b"]`, of strings that may hold anything; as text a JSON array.
    Strings,
    /// `name = true`
    Switch,
    /// `[[name]]` once for each; in the environment a line for each; as a flag once for each.
    Rules,
}

/// Which commands take the flag of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Everywhere,
    Relay,
    Consume,
}

/// The flag of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flag {
    /// Without the dashes.
    pub(crate) long: &'static str,
    /// What stands for the value in the help.
    pub(crate) value: &'static str,
    pub(crate) scope: Scope,
}

/// Everything about a setting but the type of its value.
#[derive(Debug)]
pub(crate) struct Entry {
    /// `section.name`, or just `name` at the top of the file.
    pub(crate) path: &'static str,
    pub(crate) form: Form,
    pub(crate) flag: Option<Flag>,
    /// As somebody would type it; empty = not set.
    pub(crate) default: &'static str,
    /// One sentence: what it is.
    pub(crate) help: &'static str,
    /// Unit, bounds and special values.
    pub(crate) values: &'static str,
    /// Its value is never shown.
    pub(crate) secret: bool,
    /// Its value is no URL, whatever it looks like: it is shown as it is.
    pub(crate) verbatim: bool,
    /// What the sample file shows when there is no default to show.
    pub(crate) example: &'static str,
}

impl Entry {
    /// The name in the environment: `relay.grace` is `OVERDUE_RELAY_GRACE`.
    pub(crate) fn variable(&self) -> String {
        format!("OVERDUE_{}", self.path.replace('.', "_").to_ascii_uppercase())
    }

    /// `("relay", "grace")`; the section is empty at the top of the file.
    pub(crate) fn section_and_name(&self) -> (&'static str, &'static str) {
        self.path.split_once('.').unwrap_or(("", self.path))
    }

    /// `value` as it may be shown: never a password, not even one inside a URL.
    pub(crate) fn shown(&self, value: &str) -> String {
        match value {
            "" => String::new(),
            _ if self.secret => "***".to_owned(),
            _ if self.verbatim => value.to_owned(),
            _ => super::secret::mask_url(value),
        }
    }

    /// What the sample file shows.
    pub(crate) fn sample(&self) -> &'static str {
        if self.default.is_empty() { self.example } else { self.default }
    }
}

/// A setting whose value is a `T`.
pub(crate) struct Key<T: 'static> {
    pub(crate) entry: Entry,
    /// Reads the text that any layer gives, the default too. The error says what to write instead, and
    /// does not repeat the text.
    pub(crate) parse: fn(&str) -> Result<T, String>,
}

impl<T> Key<T> {
    /// A setting without flag, default and bounds.
    pub(crate) const fn new(
        path: &'static str,
        help: &'static str,
        parse: fn(&str) -> Result<T, String>,
    ) -> Self {
        let (form, flag, secret, verbatim) = (Form::Text, None, false, false);
        let entry = Entry { path, form, flag, default: "", help, values: "", secret, verbatim, example: "" };
        Self { entry, parse }
    }

    /// The same as another setting, at a place of its own and without a flag.
    pub(crate) const fn like(path: &'static str, other: &'static Self) -> Self {
        let entry = Entry { path, flag: None, ..other.entry };
        Self { entry, parse: other.parse }
    }

    /// The default, read.
    pub(crate) fn default_value(&self) -> T {
        (self.parse)(self.entry.default).expect("every default is valid: a test reads them all")
    }

    pub(crate) const fn form(mut self, form: Form) -> Self {
        self.entry.form = form;
        self
    }

    pub(crate) const fn flag(mut self, scope: Scope, long: &'static str, value: &'static str) -> Self {
        self.entry.flag = Some(Flag { long, value, scope });
        self
    }

    pub(crate) const fn default(mut self, default: &'static str) -> Self {
        self.entry.default = default;
        self
    }

    pub(crate) const fn values(mut self, values: &'static str) -> Self {
        self.entry.values = values;
        self
    }

    pub(crate) const fn secret(mut self) -> Self {
        self.entry.secret = true;
        self
    }

    pub(crate) const fn verbatim(mut self) -> Self {
        self.entry.verbatim = true;
        self
    }

    pub(crate) const fn example(mut self, example: &'static str) -> Self {
        self.entry.example = example;
        self
    }
}

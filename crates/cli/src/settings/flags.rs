//! Command-line flags made from the table, so that a flag and its setting can't disagree.

use std::marker::PhantomData;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use super::key::{Entry, Form, Scope};
use super::layers::{Given, Origin};
use super::table::ALL;

/// The flags of all settings whose scope is `S`, as they were typed. For `#[command(flatten)]`.
#[derive(Clone, Debug)]
pub(crate) struct Flags<S> {
    pub(crate) given: Vec<Given>,
    scope: PhantomData<S>,
}

/// Names a [`Scope`] as a type.
pub(crate) trait Scoped {
    const SCOPE: Scope;
}

macro_rules! scopes {
    ($($name:ident)*) => { $(
        /// The scope of this name.
        #[derive(Clone, Debug)]
        pub(crate) struct $name;

        impl Scoped for $name {
            const SCOPE: Scope = Scope::$name;
        }
    )* };
}

scopes! { Everywhere Relay Consume }

fn entries(scope: Scope) -> impl Iterator<Item = (&'static Entry, &'static str, &'static str)> {
    ALL.iter().filter_map(move |entry| {
        let flag = entry.flag.filter(|flag| flag.scope == scope)?;
        Some((*entry, flag.long, flag.value))
    })
}

impl<S: Scoped> Args for Flags<S> {
    fn augment_args(command: Command) -> Command {
        entries(S::SCOPE).fold(command, |command, (entry, long, value)| {
            let action = match entry.form {
                Form::List | Form::Rules => ArgAction::Append,
                _ => ArgAction::Set,
            };
            let arg = Arg::new(entry.path)
                .long(long)
                .value_name(value)
                .action(action)
                .help(short_help(entry))
                .long_help(long_help(entry));
            command.arg(match S::SCOPE {
                Scope::Everywhere => arg.global(true).help_heading("Everywhere"),
                _ => arg,
            })
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<S: Scoped> FromArgMatches for Flags<S> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = entries(S::SCOPE).filter_map(|(entry, long, _)| {
            let values: Vec<&str> = matches.get_many::<String>(entry.path)?.map(String::as_str).collect();
            let between = if entry.form == Form::Rules { "\n" } else { "," };
            Some(Given { entry, text: values.join(between), origin: Origin::Flag(long) })
        });
        Ok(Self { given: given.collect(), scope: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// For `-h`: what it is and its default.
fn short_help(entry: &Entry) -> String {
    let default = match entry.default {
        "" => String::new(),
        default => format!(" [default: {default}]"),
    };
    format!("{}{default}", entry.help.trim_end_matches('.'))
}

/// For `--help`: also its values, and its name in the environment.
fn long_help(entry: &Entry) -> String {
    let values = match entry.values {
        "" => String::new(),
        values => format!("\n{values}"),
    };
    format!("{}{values}\n[env: {}]", short_help(entry), entry.variable())
}

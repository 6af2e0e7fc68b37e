//! Settings from `OVERDUE_...` variables. A name that means nothing is an error: a typing error there is
//! silent everywhere else.

use std::ffi::OsString;
use std::path::PathBuf;

use super::layers::{Given, Origin};
use super::nearest::nearest;
use super::table::ALL;

const PREFIX: &str = "OVERDUE_";
/// Names the settings file.
const CONFIG: &str = "OVERDUE_CONFIG";
/// Not settings, but ours: what `consume --exec` sets for the command (which may run `overdue`), and the
/// server program of `demo`, `bench` and the tests.
const OTHERS: [&str; 18] = [
    "OVERDUE_KEY",
    "OVERDUE_QUEUE",
    "OVERDUE_ID",
    "OVERDUE_ID_BASE64",
    "OVERDUE_GENERATION",
    "OVERDUE_DUE_MS",
    "OVERDUE_ATTEMPT",
    "OVERDUE_SOURCE",
    "OVERDUE_GROUP",
    "OVERDUE_KIND",
    "OVERDUE_RULE",
    "OVERDUE_DB",
    "OVERDUE_PROOF",
    "OVERDUE_CAUSE",
    "OVERDUE_CAPTURED_MS",
    "OVERDUE_ENCODING",
    "OVERDUE_FLAW",
    "OVERDUE_REDIS_SERVER",
];

/// What the environment says.
#[derive(Debug, Default)]
pub(crate) struct Environment {
    pub(crate) given: Vec<Given>,
    pub(crate) config: Option<PathBuf>,
    pub(crate) errors: Vec<String>,
}

/// Reads the variables that begin with `OVERDUE_`. An empty one counts as not set.
pub(crate) fn read(variables: impl Iterator<Item = (OsString, OsString)>) -> Environment {
    let mut environment = Environment::default();
    let mut ours: Vec<(String, OsString)> = variables
        .filter_map(|(name, value)| name.into_string().ok().map(|name| (name, value)))
        .filter(|(name, _)| name.starts_with(PREFIX))
        .filter(|(name, _)| !OTHERS.contains(&name.as_str()) && !is_service_link(name))
        .collect();
    ours.sort();
    for (name, value) in ours {
        environment.take(name, value);
    }
    environment
}

impl Environment {
    fn take(&mut self, name: String, value: OsString) {
        let entry = ALL.iter().copied().find(|entry| entry.variable() == name);
        match entry {
            _ if name == CONFIG && value.is_empty() => {}
            _ if name == CONFIG => self.config = Some(value.into()),
            None => self.errors.push(unknown(&name)),
            Some(_) if value.is_empty() => {}
            Some(entry) => match value.into_string() {
                Ok(text) => self.given.push(Given { entry, text, origin: Origin::Environment(name) }),
                Err(_) => self.errors.push(format!("{name}: the value is not UTF-8")),
            },
        }
    }
}

fn unknown(name: &str) -> String {
    let mut known: Vec<String> = ALL.iter().map(|entry| entry.variable()).collect();
    known.push(CONFIG.to_owned());
    let nearest = nearest(name, known.iter().map(String::as_str));
    format!("{name}: there is no such setting; the nearest name is {nearest}")
}

/// Kubernetes sets `OVERDUE_SERVICE_HOST`, `OVERDUE_PORT_9633_TCP_ADDR` and the like in every container
/// beside a Service called `overdue` or `overdue-...`.
fn is_service_link(name: &str) -> bool {
    name.contains("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || name.ends_with("_PORT")
        || name.contains("_PORT_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_pairs(pairs: &[(&str, &str)]) -> Environment {
        read(pairs.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))))
    }

    #[test]
    fn a_setting_is_taken_by_its_name() {
        let read = read_pairs(&[
            ("OVERDUE_REDIS_URL", "redis://a/"),
            ("PATH", "/bin"),
            ("OVERDUE_CONFIG", "/x.toml"),
        ]);
        assert_eq!(read.errors, Vec::<String>::new());
        assert_eq!(read.config, Some(PathBuf::from("/x.toml")));
        assert_eq!(read.given.len(), 1);
        assert_eq!(read.given[0].entry.path, "redis.url");
        assert_eq!(read.given[0].origin.to_string(), "OVERDUE_REDIS_URL");
    }

    #[test]
    fn an_unknown_name_is_an_error_with_the_nearest_name() {
        let read = read_pairs(&[("OVERDUE_REDIS_ULR", "x"), ("OVERDUE_CONSUMER_LEASE", "")]);
        assert_eq!(
            read.errors,
            [
                "OVERDUE_CONSUMER_LEASE: there is no such setting; the nearest name is OVERDUE_CONSUME_LEASE",
                "OVERDUE_REDIS_ULR: there is no such setting; the nearest name is OVERDUE_REDIS_URL",
            ]
        );
    }

    #[test]
    fn empty_means_not_set() {
        let read = read_pairs(&[("OVERDUE_REDIS_URL", ""), ("OVERDUE_CONFIG", "")]);
        assert!(read.errors.is_empty() && read.given.is_empty() && read.config.is_none());
    }

    #[test]
    fn what_others_set_for_us_is_left_alone() {
        let mut pairs: Vec<(&str, &str)> = OTHERS.iter().map(|name| (*name, "x")).collect();
        pairs.extend([("OVERDUE_PORT", "tcp://10.0.0.1:9633"), ("OVERDUE_RELAY_SERVICE_HOST", "10.0.0.1")]);
        pairs.extend([("OVERDUE_PORT_9633_TCP_ADDR", "10.0.0.1"), ("OVERDUE_SERVICE_PORT_HTTP", "9633")]);
        assert!(read_pairs(&pairs).errors.is_empty());
        assert!(
            ALL.iter().all(|entry| !is_service_link(&entry.variable())),
            "a setting is taken for a service link"
        );
        assert!(ALL.iter().all(|entry| !OTHERS.contains(&entry.variable().as_str())));
    }
}

//! All that a `[[watch]]` can say: one table, as [`crate::settings::table`] is for the rest.

use std::time::Duration;

use overdue_protocol::QueueName;
use overdue_protocol::watch::{Glob, OnEvicted, OnUnproven, Rule, Template};

use crate::settings::key::{Entry, Form, Key, table};
use crate::settings::parse::{self, SECOND, choice, duration, number, optional};
use crate::settings::value;

/// `payload`, without the key's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carried {
    None,
    Value,
    Key,
}

/// The longest pattern, in bytes. Redis holds every event against it.
const MOST_BYTES: usize = 1024;

table! {
    /// Every key of a rule, in the order of the sample file.
    KEYS;

    NAME: Option<QueueName> =
        Key::new("watch.name", "The rule's name: it stands in each timeout, in metrics and logs.", rule_name)
        .values("1 to 64 characters: a-z 0-9 . _ - and a letter or digit first; no two rules share one. \
                 Not set = the name of the queue");
    PATTERN: Glob =
        Key::new("watch.pattern", "Which keys: a Redis glob, as for SCAN and PSUBSCRIBE.", pattern)
        .values("* ? [a-z] [^a], and \\ before a character that stands for itself (then write it 'between these'); \
                 up to 1024 bytes. Overdue's own keys never match; the first rule that matches a key wins")
        .verbatim()
        .example("session:*");
    EXCLUDE: Vec<Glob> =
        Key::new("watch.exclude", "Which of these keys not: globs too.", patterns)
        .form(Form::Strings)
        .default("[]")
        .verbatim()
        .example("[\"session:tmp:*\"]");
    DB: Option<u8> =
        Key::new("watch.db", "The database of the keys.", |t| {
            optional(t).map(|text| number(&text, 0, u8::MAX)).transpose()
        })
        .form(Form::Number)
        .values("0 to 255; only 0 on a cluster. Not set = the one that redis.url names")
        .example("0");
    QUEUE: QueueName =
        Key::new("watch.queue", "Where the timeouts go.", parse::queue)
        .values("It is created when it is not there")
        .example("sessions");
    PAYLOAD: Carried =
        Key::new("watch.payload", "What a timeout carries.", |t| {
            choice(t, &[("none", Carried::None), ("value", Carried::Value), ("key", Carried::Key)])
        })
        .default("none")
        .values("none = just the key's name; value = the key's own value, a string or a hash, as it was at most 100ms \
                 before its end; key = the value of another key, read when the timeout fires");
    PAYLOAD_KEY: Option<Template> =
        Key::new("watch.payload_key", "That other key, for payload = \"key\".", |t| {
            optional(t).map(|text| Template::new(&text)).transpose()
        })
        .values("Such as order:{1}, where {1} is what the first * of the pattern matched")
        .verbatim();
    ON_UNPROVEN: OnUnproven =
        Key::new("watch.on_unproven", "What to do when a key is gone at its end, and nothing proves that it expired.", |t| {
            choice(t, &[("fire", OnUnproven::Fire), ("drop", OnUnproven::Drop)])
        })
        .default("fire")
        .values("fire = a timeout may be false, none is lost; drop = none is false, one may be lost");
    ON_EVICTED: OnEvicted =
        Key::new("watch.on_evicted", "What to do when Redis evicts a key for want of memory.", |t| {
            choice(t, &[("fire", OnEvicted::Fire), ("ignore", OnEvicted::Ignore)])
        })
        .default("ignore")
        .values("fire = a timeout with cause=evicted; ignore = none");
    PROOF_WAIT: Duration =
        Key::new("watch.proof_wait", "How long the notification of a key that is gone is waited for.", |t| {
            duration(t, SECOND / 20, Rule::PROOF_WAIT)
        })
        .default("1s")
        .values("A duration from 50ms to 1s; then on_unproven decides");
}

fn rule_name(text: &str) -> Result<Option<QueueName>, String> {
    let rule = "not a rule name: 1 to 64 of a-z 0-9 . _ -, beginning with a letter or digit";
    optional(text).map(|text| QueueName::new(&text).map_err(|_| rule.to_owned())).transpose()
}

fn pattern(text: &str) -> Result<Glob, String> {
    match text.len() {
        0 => Err("empty: write a Redis glob such as session:*".to_owned()),
        1..=MOST_BYTES => Ok(Glob::new(text.to_owned())),
        _ => Err(format!("longer than {MOST_BYTES} bytes: let a * stand for a part of it")),
    }
}

/// A JSON array: what patterns hold is theirs.
fn patterns(text: &str) -> Result<Vec<Glob>, String> {
    let texts: Vec<String> = serde_json::from_str(text).map_err(|_| value::strings(&EXCLUDE.entry))?;
    texts.iter().map(|text| pattern(text)).collect()
}

//! All that a `[[consumer]]` can say.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use overdue_protocol::call::From;
use overdue_protocol::{GroupName, QueueName};

use crate::settings::key::{Entry, Form, Key, table};
use crate::settings::parse::{self, choice, optional};
use crate::settings::table::{
    CONSUME_ATTEMPTS, CONSUME_CONCURRENCY, CONSUME_LEASE, CONSUME_LIMIT, CONSUME_RETRY_WAIT,
    CONSUME_RETRY_WAIT_MAX,
};
use crate::settings::value;

table! {
    /// Every key of a consumer, in the order of the sample file.
    KEYS;

    QUEUE: QueueName =
        Key::new("consumer.queue", "The queue to read.", parse::queue)
        .example("orders");
    GROUP: GroupName =
        Key::new("consumer.group", "The group to read for; created when it is not there.", parse::group)
        .values("Each group gets every timeout once")
        .example("billing");
    FROM: From =
        Key::new("consumer.from", "Where a new group begins.", parse::from)
        .default("oldest")
        .values("oldest = with what is in the stream; new = with what fires from now on");
    WEBHOOK: Option<String> =
        Key::new("consumer.webhook", "POST each timeout to this URL.", |t| {
            optional(t).map(|text| parse::web_url(&text)).transpose()
        })
        .values("http:// or https://")
        .example("https://example.com/timeouts");
    WEBHOOK_SECRET_FILE: Option<PathBuf> =
        Key::new("consumer.webhook_secret_file", "A file that holds the secret which signs the requests.", |t| {
            Ok(optional(t).map(PathBuf::from))
        })
        .values("1 or 2 lines whsec_..., two while one takes the place of the other; read again when it changes. \
                 Not set = unsigned");
    EXEC: Option<Vec<OsString>> =
        Key::new("consumer.exec", "Run this command for each timeout.", command)
        .form(Form::Strings)
        .values("The command and its arguments; no shell")
        .verbatim()
        .example("[\"./release\", \"--quick\"]");
    PIPE: Option<Vec<OsString>> =
        Key::new("consumer.pipe", "Keep this command running, one for each slot, and hand timeouts to it as lines.", command)
        .form(Form::Strings)
        .values("The command and its arguments; no shell")
        .verbatim()
        .example("[\"php\", \"artisan\", \"overdue:work\"]");
    PRINT: bool =
        Key::new("consumer.print", "Print each timeout. This handles it: it is acknowledged.", |t| {
            choice(t, &[("true", true), ("false", false)])
        })
        .form(Form::Switch)
        .default("false")
        .values("true or false");
    CONCURRENCY: usize = Key::like("consumer.concurrency", &CONSUME_CONCURRENCY);
    LEASE: Duration = Key::like("consumer.lease", &CONSUME_LEASE);
    ATTEMPTS: u32 = Key::like("consumer.attempts", &CONSUME_ATTEMPTS);
    LIMIT: Option<Duration> = Key::like("consumer.limit", &CONSUME_LIMIT);
    RETRY_WAIT: Duration = Key::like("consumer.retry_wait", &CONSUME_RETRY_WAIT);
    RETRY_WAIT_MAX: Duration = Key::like("consumer.retry_wait_max", &CONSUME_RETRY_WAIT_MAX);
}

/// A JSON array: what stands in a command is its own.
fn command(text: &str) -> Result<Option<Vec<OsString>>, String> {
    let Some(text) = optional(text) else { return Ok(None) };
    let words: Vec<String> = serde_json::from_str(&text).map_err(|_| value::strings(&EXEC.entry))?;
    if words.first().is_none_or(String::is_empty) {
        return Err(
            "empty: write the command and its arguments, such as [\"./release\", \"--quick\"]".to_owned()
        );
    }
    Ok(Some(words.into_iter().map(OsString::from).collect()))
}

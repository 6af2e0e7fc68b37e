//! All that a `[[group]]` can say.

use std::time::Duration;

use overdue_protocol::call::From;
use overdue_protocol::{GroupName, QueueName};

use crate::settings::key::{Entry, Key, table};
use crate::settings::parse::{self, HOUR, SECOND, duration};
use crate::settings::table::{CONSUME_ATTEMPTS, CONSUME_RETRY_WAIT, CONSUME_RETRY_WAIT_MAX};

table! {
    /// Every key of a group, in the order of the sample file.
    KEYS;

    QUEUE: QueueName =
        Key::new("group.queue", "The queue that its consumers read.", parse::queue)
        .values("The group is created when the queue is there")
        .example("orders");
    NAME: GroupName =
        Key::new("group.name", "The group's name.", parse::group)
        .values("1 to 64 characters: a-z 0-9 . _ - and a letter or digit first")
        .example("billing");
    FROM: From =
        Key::new("group.from", "Where it begins when it is new.", parse::from)
        .default("oldest")
        .values("oldest = with what is in the stream; new = with what fires from now on");
    LEASE: Duration =
        Key::new("group.lease", "How long a consumer may hold a timeout; then it is handed out again.", |t| {
            duration(t, SECOND, 24 * HOUR)
        })
        .default("30s")
        .values("A duration from 1s to 24h; nothing renews it, so it is longer than any handler takes");
    ATTEMPTS: u32 = Key::like("group.attempts", &CONSUME_ATTEMPTS);
    RETRY_WAIT: Duration = Key::like("group.retry_wait", &CONSUME_RETRY_WAIT);
    RETRY_WAIT_MAX: Duration = Key::like("group.retry_wait_max", &CONSUME_RETRY_WAIT_MAX);
}

//! What `overdue consume` hands timeouts to: a webhook ([`Webhook`]), a command for each ([`Exec`]), a command that stays
//! and takes one after the other ([`Pipe`]). Webhook, pipe and `--print --json` show a timeout alike: [`Message`].
//!
//! # Invariants
//! - A command is ended with all that it started, and before its timeout is tried again.
//! - What is away costs no attempt: an endpoint that can't be reached, a command that can't be started.
//! - A secret stands in no log, no error and no reason; nor does the path of a URL, which is often one.

mod child;
mod ending;
mod exec;
mod find;
mod message;
mod pipe;
mod tail;
mod webhook;

pub use child::{Groups, PATIENCE};
pub use exec::Exec;
pub use message::{IdText, Message, PayloadText};
pub use pipe::Pipe;
pub use webhook::{Webhook, WebhookOptions};

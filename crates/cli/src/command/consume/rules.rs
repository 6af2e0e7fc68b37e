//! Which consumers run: the one of the command line, or those of the settings file.

use std::borrow::Cow;

use crate::args::consume::{Consume, From, Handler};
use crate::exit::{Exit, Failure};
use crate::settings::Settings;
use crate::settings::consumer::{ConsumerRule, HandlerRule};

const NOTHING: &str = "nothing to handle: give --queue, --group and a handler such as --print, or write a [[consumer]] \
                       into the settings file and name it with --config";

/// The consumers, at least one.
///
/// # Errors
/// There is none.
pub(super) fn of<'a>(args: &Consume, settings: &'a Settings) -> Result<Cow<'a, [ConsumerRule]>, Failure> {
    if let Some(rule) = typed(args, settings) {
        return Ok(Cow::Owned(vec![rule]));
    }
    if settings.consumers.is_empty() {
        return Err(Failure::new(Exit::Usage, NOTHING));
    }
    Ok(Cow::Borrowed(&settings.consumers))
}

/// The one of the command line, where all or nothing is given.
fn typed(args: &Consume, settings: &Settings) -> Option<ConsumerRule> {
    let consume = &settings.consume;
    let handler = handler(&args.handler)?;
    let from = match args.from {
        From::Oldest => overdue_consumer::From::Oldest,
        From::New => overdue_consumer::From::New,
    };
    Some(ConsumerRule {
        queue: args.queue.clone()?,
        group: args.group.clone()?,
        from,
        limit: consume.limit_of(&handler),
        handler,
        concurrency: consume.concurrency,
        lease: consume.lease,
        attempts: consume.attempts,
        retry_wait: consume.retry_wait,
        retry_wait_max: consume.retry_wait_max,
    })
}

fn handler(typed: &Handler) -> Option<HandlerRule> {
    let command = || typed.command.clone();
    match typed {
        Handler { webhook: Some(url), webhook_secret_file, .. } => {
            Some(HandlerRule::Webhook { url: url.clone(), secret_file: webhook_secret_file.clone() })
        }
        Handler { exec: true, .. } => Some(HandlerRule::Exec(command())),
        Handler { pipe: true, .. } => Some(HandlerRule::Pipe(command())),
        Handler { print: true, .. } => Some(HandlerRule::Print),
        _ => None,
    }
}

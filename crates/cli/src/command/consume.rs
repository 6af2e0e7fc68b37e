//! `overdue consume`: handles the timeouts of a queue for a group, with the consumer library and a built-in
//! handler.

use std::io;
use std::time::Duration;

use overdue_consumer::{Backoff, Consumer, Handler, Raw};
use tokio::sync::oneshot;

use crate::args::consume::{Consume, From};
use crate::exit::{Exit, Failure};
use crate::handler::exec::{Exec, Groups, PATIENCE};
use crate::handler::print::Print;
use crate::output::Output;
use crate::service::{Service, fault};
use crate::settings::Settings;

/// How much longer than a command's own last deadline the consumer waits for it.
const MARGIN: Duration = Duration::from_secs(2);

/// Runs the command until a signal.
///
/// # Errors
/// It could not be started, or something of it broke.
pub(crate) async fn run(args: &Consume, settings: &Settings, output: &mut Output) -> Result<(), Failure> {
    if args.handler.print {
        print(args, settings, output.is_json()).await
    } else {
        exec(args, settings).await
    }
}

async fn print(args: &Consume, settings: &Settings, json: bool) -> Result<(), Failure> {
    let service = Service::begin(settings.consume.listen, || {}).await?;
    let (handler, broken) = Print::start(json, io::stdout())
        .map_err(|error| Failure::new(Exit::Usage, format!("cannot start threads: {error}")))?;
    let mut consumer = consumer(args, settings, &service).grace(settings.consume.grace);
    if let Some(limit) = settings.consume.limit {
        consumer = consumer.limit(limit);
    }
    serve(service, consumer, handler, broken).await
}

async fn exec(args: &Consume, settings: &Settings) -> Result<(), Failure> {
    let groups = Groups::default();
    let all = groups.clone();
    let service = Service::begin(settings.consume.listen, move || all.kill()).await?;
    let (limit, grace) = (settings.consume.limit, settings.consume.grace);
    let command = args.handler.command.clone();
    let handler = Exec::new(command, limit, service.stop.clone(), grace, groups.clone())?;
    // The handler ends its commands by itself, at the limit and at the end of the grace; what it hands back
    // then does not run any more.
    let consumer = consumer(args, settings, &service).grace(grace + PATIENCE + MARGIN);
    let (_never, unbroken) = oneshot::channel();
    let ended = serve(service, consumer, handler, unbroken).await;
    groups.ended().await;
    ended
}

fn consumer(args: &Consume, settings: &Settings, service: &Service) -> Consumer<Raw> {
    let consume = &settings.consume;
    let from = match args.from {
        From::Oldest => overdue_consumer::From::Oldest,
        From::New => overdue_consumer::From::New,
    };
    Consumer::builder(settings.redis.clone(), args.queue.as_str(), args.group.as_str())
        .from(from)
        .concurrency(consume.concurrency)
        .lease(consume.lease)
        .attempts(consume.attempts)
        .policy(Backoff { first: consume.retry_wait, most: consume.retry_wait_max })
        .health(service.health.clone())
}

/// Runs the consumer. `broken` tells that the handler can't work any more.
async fn serve(
    service: Service,
    consumer: Consumer<Raw>,
    handler: impl Handler<Raw>,
    broken: oneshot::Receiver<io::Error>,
) -> Result<(), Failure> {
    let mut consuming = tokio::spawn(consumer.serve(handler, service.stop.clone().cancelled_owned()));
    let started = tokio::select! {
        ended = &mut consuming => Err(ended),
        () = service.health.started() => Ok(()),
    };
    let (ended, failure) = match started {
        Err(ended) => (ended, Ok(())),
        Ok(()) => {
            service.announce();
            tokio::select! {
                ended = &mut consuming => (ended, Ok(())),
                failure = broke(&service, broken) => {
                    service.stop.cancel();
                    (consuming.await, Err(failure))
                }
            }
        }
    };
    let stopped = service.stop.is_cancelled();
    service.end().await;
    match ended {
        Ok(Ok(_)) if stopped => failure,
        Ok(Ok(_)) => Err(fault("the consumer ended by itself")),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Err(fault("the consumer panicked")),
    }
}

/// Waits until nothing can be handled any more, for ever if all is well.
async fn broke(service: &Service, broken: oneshot::Receiver<io::Error>) -> Failure {
    tokio::select! {
        failure = service.panicked() => failure,
        Ok(error) = broken => {
            tracing::warn!(%error, "stdout can't be written to; stopping");
            error.into()
        }
    }
}

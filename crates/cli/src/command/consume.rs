//! `overdue consume`: handles the timeouts of queues, each for a group, with the consumer library and a built-in handler:
//! one consumer as the command line says, or all of the settings file. The first that fails ends the process.

mod begin;
mod rules;

use std::io;

use overdue_handlers::Groups;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};

use crate::args::consume::Consume;
use crate::exit::Failure;
use crate::output::Output;
use crate::service::{Service, fault};
use crate::settings::Settings;
use begin::{Consumed, Consuming, Desk};

/// Runs the command until a signal.
///
/// # Errors
/// It could not be started, or something of it broke.
pub(crate) async fn run(args: &Consume, settings: &Settings, output: &mut Output) -> Result<(), Failure> {
    let rules = rules::of(args, settings)?;
    let groups = Groups::default();
    let all = groups.clone();
    let (listen, namespace) = (settings.consume.listen, settings.redis.keyspace.namespace());
    let service = Service::begin(listen, "consumer", namespace, move || all.kill()).await?;
    let (broken, breaks) = mpsc::unbounded_channel();
    let (json, named) = (output.is_json(), args.queue.is_none());
    let desk = Desk { settings, service: &service, groups: &groups, json, named, broken };
    // All handlers first: a command that is not there is said before anything is read.
    let begun: Result<Vec<Consuming>, Failure> = rules.iter().map(|rule| desk.begin(rule)).collect();
    drop(desk);
    let consuming = begun?.into_iter().collect();
    let ended = serve(service, consuming, breaks).await;
    groups.ended().await;
    ended
}

/// Waits for the consumers. `breaks` tells that a handler can't work any more.
async fn serve(
    service: Service,
    mut consuming: JoinSet<Consumed>,
    breaks: mpsc::UnboundedReceiver<io::Error>,
) -> Result<(), Failure> {
    let started = tokio::select! {
        Some(ended) = consuming.join_next() => Err(ended),
        () = service.health.started() => Ok(()),
    };
    let first = match started {
        Err(ended) => judge(&service, ended),
        Ok(()) => {
            service.announce();
            tokio::select! {
                Some(ended) = consuming.join_next() => judge(&service, ended),
                failure = broke(&service, breaks) => Err(failure),
            }
        }
    };
    // The others end in order.
    service.stop.cancel();
    let mut outcome = first;
    while let Some(ended) = consuming.join_next().await {
        outcome = outcome.and(judge(&service, ended));
    }
    service.end().await;
    outcome
}

fn judge(service: &Service, ended: Result<Consumed, JoinError>) -> Result<(), Failure> {
    match ended {
        Ok(Ok(_)) if service.stop.is_cancelled() => Ok(()),
        Ok(Ok(_)) => Err(fault("a consumer ended by itself")),
        Ok(Err(failure)) => Err(failure),
        Err(_) => Err(fault("a consumer panicked")),
    }
}

/// Waits until nothing can be handled any more, for ever if all is well.
async fn broke(service: &Service, mut breaks: mpsc::UnboundedReceiver<io::Error>) -> Failure {
    tokio::select! {
        failure = service.panicked() => failure,
        Some(error) = breaks.recv() => {
            tracing::warn!(%error, "stdout can't be written to; stopping");
            error.into()
        }
    }
}

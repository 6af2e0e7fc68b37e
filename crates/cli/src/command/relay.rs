//! `overdue relay`: fires timers when they are due. Listener and reconciler do not know each other; they are
//! wired here.

use std::time::Duration;

use overdue_reconciler::Reconciler;
use overdue_relay::Listener;
use overdue_store::{Error, ErrorKind, Store};
use tokio::task::JoinSet;

use crate::args::relay::Relay;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::service::{Identity, Service, process_name};
use crate::settings::{self, Settings};

/// How long calls under way may take after the signal. With what follows, the process is gone within 10 s.
const DRAIN: Duration = Duration::from_secs(5);

/// Runs the command until a signal.
///
/// # Errors
/// It could not be started, or something of it broke.
pub(crate) async fn run(_args: &Relay, settings: &Settings, _output: &mut Output) -> Result<(), Failure> {
    let relay = &settings.relay;
    let service = Service::begin(relay.listen, || {}).await?;
    let store = service.step(Store::connect(&settings.redis, "relay")).await?;
    service.step(store.prove_scripts()).await?;

    let name = process_name();
    let reconciler = Reconciler::start(store.clone(), sweeping(relay, &name), service.health.clone());
    let reconciler = service.step(reconciler).await?;
    let sweeper = reconciler.sweep_now();
    let on_gap = move || sweeper.sweep_now();
    let listener = Listener::start(store.clone(), listening(relay), service.health.clone(), on_gap);
    let listener =
        service.step(async { listener.await.map_err(|error| subscribing(error, store.db())) }).await?;

    let queues: Vec<String> = relay.queues.iter().map(ToString::to_string).collect();
    announce(settings, &store, &queues);
    service.announce();
    service.accompany(&store, Identity { name, role: "relay", queues });

    let mut loops = JoinSet::new();
    let (stop, listen_stop) = (service.stop.clone(), service.stop.clone());
    loops.spawn(async move {
        reconciler.run(stop).await;
        "reconciler"
    });
    loops.spawn(async move {
        listener.run(listen_stop).await;
        "listener"
    });
    let ended = service.watch(loops, DRAIN).await;
    service.end().await;
    store.close().await;
    tracing::info!("stopped");
    ended
}

fn sweeping(relay: &settings::Relay, process: &str) -> overdue_reconciler::Settings {
    overdue_reconciler::Settings {
        queues: relay.queues.clone(),
        grace: relay.grace,
        page: relay.page,
        dead_max: relay.dead_max,
        dead_max_age: relay.dead_max_age,
        ..overdue_reconciler::Settings::new(process)
    }
}

fn listening(relay: &settings::Relay) -> overdue_relay::Settings {
    overdue_relay::Settings {
        queues: relay.queues.clone(),
        keyspace_events: relay.keyspace_events,
        capacity: relay.buffer,
    }
}

/// A refused subscription is nearly always a missing channel right: a user that was made for 6.2 has none on 7.
fn subscribing(error: Error, db: u8) -> Failure {
    if error.kind() != ErrorKind::Refused {
        return error.into();
    }
    let rule = format!("&__keyevent@{db}__:expired");
    Failure::new(Exit::Redis, format!("{error}: the relay needs the channel rule {rule} (ACL SETUSER)"))
}

fn announce(settings: &Settings, store: &Store, queues: &[String]) {
    let queues = if queues.is_empty() { "all".to_owned() } else { queues.join(",") };
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        redis = settings.redis.describe(),
        namespace = %settings.redis.keyspace.namespace(),
        db = store.db(),
        queues,
        "relay starts"
    );
}

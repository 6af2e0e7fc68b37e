//! `overdue relay`: fires timers when they are due. Listener and reconciler do not know each other; they are
//! wired here.

use std::sync::Arc;
use std::time::Duration;

use overdue_protocol::QueueName;
use overdue_protocol::watch::Rules;
use overdue_reconciler::{Reconciler, Watching};
use overdue_relay::{Flags, Listener, Memory, WatchSettings, Watcher};
use overdue_store::{Error, ErrorKind, Nodes, Store};
use overdue_telemetry::label::ScanReason;
use overdue_watch::Looker;
use tokio::task::JoinSet;

use crate::args::relay::Relay;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::service::{Identity, Service, process_name};
use crate::settings::{self, Settings};

/// How long calls under way may take after the signal. With what follows, the process is gone within 10 s.
const DRAIN: Duration = Duration::from_secs(5);
/// The flags that the notifications of keyed timers need.
const TIMERS_NEED: &str = "Ex";

/// Runs the command until a signal.
///
/// # Errors
/// It could not be started, or something of it broke.
pub(crate) async fn run(_args: &Relay, settings: &Settings, _output: &mut Output) -> Result<(), Failure> {
    let relay = &settings.relay;
    let service = Service::begin(relay.listen, "relay", settings.redis.keyspace.namespace(), || {}).await?;
    let store = service.step(Store::connect(&settings.redis, "relay")).await?;
    service.step(store.prove_scripts()).await?;
    let rules = Rules::new(&settings.redis.keyspace, relay.watch.clone());
    let dbs = rules.dbs().into_iter().chain([store.db()]).collect();
    let nodes = service.step(Nodes::open(&settings.redis, "nodes", &dbs)).await?;

    let name = process_name();
    let reconciler = Reconciler::start(store.clone(), sweeping(settings, &name), service.health.clone());
    let mut reconciler = service.step(reconciler).await?;
    let watches = !rules.is_empty();
    let needs = needs(mode(relay), relay.grace, watches);
    let flags = Flags::start(nodes.clone(), relay.keyspace_events, &needs, service.health.clone());
    let flags = service.step(async { Ok::<_, Error>(flags.await) }).await?;
    let on_gap = || {
        let (sweeper, look_again) = (reconciler.sweep_now(), flags.look_again());
        move || {
            sweeper.sweep_now();
            look_again();
        }
    };
    let (on_gap, on_watch_gap) = (on_gap(), on_gap());

    let hash = rules.hash();
    let watcher = if rules.is_empty() {
        None
    } else {
        let how = watching(relay, &name);
        let looker = Looker::open(store.clone(), nodes.clone(), rules, relay.value_max);
        let looker = service.step(looker).await?;
        let watcher = Watcher::start(looker.clone(), how, service.health.clone(), on_watch_gap);
        let watcher = service.step(async { watcher.await.map_err(refusing_rules) }).await?;
        let scan = watcher.scan_now();
        let ask_scan = Arc::new(move |feed: &_| scan.scan_now(feed, ScanReason::Flush));
        reconciler.watch(Watching { looker, mets: watcher.mets(), ask_scan });
        Some(watcher)
    };
    let listener = if hears_timers(relay.grace, watches) {
        let listener = Listener::start(store.clone(), listening(relay), service.health.clone(), on_gap);
        Some(service.step(async { listener.await.map_err(|error| subscribing(error, store.db())) }).await?)
    } else {
        None
    };

    let queues: Vec<String> = queues(settings).iter().map(ToString::to_string).collect();
    announce(settings, &store, &queues);
    service.announce();
    service.accompany(&store, Identity { name, role: "relay", queues, rules: hash });

    let mut loops = JoinSet::new();
    let (stop, flags_stop) = (service.stop.clone(), service.stop.clone());
    loops.spawn(async move {
        reconciler.run(stop).await;
        "reconciler"
    });
    loops.spawn(async move {
        flags.run(flags_stop).await;
        "flags"
    });
    let (memory, stop) = (Memory::new(nodes.clone(), &service.health), service.stop.clone());
    loops.spawn(async move {
        memory.run(stop).await;
        "memory loop"
    });
    if let Some(listener) = listener {
        let stop = service.stop.clone();
        loops.spawn(async move {
            listener.run(stop).await;
            "listener"
        });
    }
    if let Some(watcher) = watcher {
        let stop = service.stop.clone();
        loops.spawn(async move {
            watcher.run(stop).await;
            "watcher"
        });
    }
    let ended = service.watch(loops, DRAIN).await;
    service.end().await;
    nodes.close().await;
    store.close().await;
    tracing::info!("stopped");
    ended
}

/// Those that were named, and those of the rules and of the plain groups; none = all.
fn queues(settings: &Settings) -> Vec<QueueName> {
    let mut queues = settings.relay.queues.clone();
    if !queues.is_empty() {
        queues.extend(settings.relay.watch.iter().map(|rule| rule.queue.clone()));
        queues.extend(settings.groups.iter().map(|rule| rule.queue.clone()));
        queues.sort();
        queues.dedup();
    }
    queues
}

fn sweeping(settings: &Settings, process: &str) -> overdue_reconciler::Settings {
    let relay = &settings.relay;
    overdue_reconciler::Settings {
        queues: queues(settings),
        grace: relay.grace,
        page: relay.page,
        dead_max: relay.dead_max,
        dead_max_age: relay.dead_max_age,
        groups: settings.groups.clone(),
        ..overdue_reconciler::Settings::new(process)
    }
}

fn listening(relay: &settings::Relay) -> overdue_relay::Settings {
    overdue_relay::Settings { queues: relay.queues.clone(), capacity: relay.buffer }
}

/// Whether a relay with this grace, that watches keys or does not, listens for the notifications of keyed timers. With a
/// grace of 0 they are a second chance at most; and of watched keys Redis would tell each end twice.
fn hears_timers(grace: Duration, watches: bool) -> bool {
    !watches || !grace.is_zero()
}

/// The flags that such a relay needs in `notify-keyspace-events`, each once.
pub(crate) fn needs(mode: overdue_relay::Notifications, grace: Duration, watches: bool) -> String {
    let timers = if hears_timers(grace, watches) { TIMERS_NEED } else { "" };
    let keys = if watches { mode.flags() } else { "" };
    let new = keys.chars().filter(|flag| !timers.contains(*flag));
    timers.chars().chain(new).collect()
}

/// How a relay with these settings hears of watched keys.
pub(crate) fn mode(relay: &settings::Relay) -> overdue_relay::Notifications {
    match relay.notifications {
        settings::Notifications::Keyspace => overdue_relay::Notifications::Keyspace,
        settings::Notifications::Keyevent => overdue_relay::Notifications::Keyevent,
    }
}

fn watching(relay: &settings::Relay, process: &str) -> WatchSettings {
    WatchSettings {
        mode: mode(relay),
        capacity: relay.buffer,
        scan_keys_per_s: relay.scan_keys_per_s,
        scan_every: relay.scan_every,
        ready_when_blind: relay.keyspace_events == overdue_relay::KeyspaceEvents::Ignore,
        ..WatchSettings::new(process)
    }
}

fn refusing_rules(error: Error) -> Failure {
    if error.kind() != ErrorKind::Refused {
        return error.into();
    }
    Failure::new(
        Exit::Redis,
        format!("{error}: watch rules need channel rules (ACL SETUSER); see docs/OPERATIONS.md"),
    )
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
        rules = settings.relay.watch.len(),
        plain_groups = settings.groups.len(),
        "relay starts"
    );
    for warning in settings::watch::warnings(&settings.relay.watch) {
        tracing::warn!("{warning}");
    }
}

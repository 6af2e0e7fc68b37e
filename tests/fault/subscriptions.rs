//! Subscriptions: refused, killed, hung, cut in the middle of a frame, too fast for who listens.

use std::time::{Duration, Instant};

use bytes::Bytes;
use overdue_store::{ErrorKind, Node, Secret, Settings, Signal, Subscriber};
use overdue_tests::redis::Options;
use overdue_tests::{Mode as Net, Proxy, Redis, eventually, patience};
use tokio::sync::mpsc;
use tokio::time::timeout;

mod cut;
mod nodes;
mod pace;

pub(crate) type Signals = mpsc::Receiver<Signal>;

/// Subscribes, and passes over everything up to `Up`.
pub(crate) async fn subscribe(
    url: &str,
    patterns: &[&'static str],
    capacity: usize,
) -> (Subscriber, Signals) {
    subscribe_with(&Settings::new(url), patterns, capacity).await
}

pub(crate) async fn subscribe_with(
    settings: &Settings,
    patterns: &[&'static str],
    capacity: usize,
) -> (Subscriber, Signals) {
    let (subscriber, mut signals) = open(settings, patterns, capacity).await.expect("subscribed");
    assert_eq!(next(&mut signals).await, Signal::Up);
    (subscriber, signals)
}

async fn open(
    settings: &Settings,
    patterns: &[&'static str],
    capacity: usize,
) -> overdue_store::Result<(Subscriber, Signals)> {
    Subscriber::open(settings, "test", patterns.iter().copied(), capacity).await
}

/// The next signal of any kind.
pub(crate) async fn any(signals: &mut Signals) -> Signal {
    timeout(patience(), signals.recv()).await.expect("a signal in time").expect("the subscription lives")
}

/// The next signal that is not about a single node.
pub(crate) async fn next(signals: &mut Signals) -> Signal {
    loop {
        match any(signals).await {
            Signal::Opened(_) | Signal::Closed(_) => {}
            other => return other,
        }
    }
}

pub(crate) fn message(channel: &'static str, payload: impl Into<Bytes>) -> Signal {
    Signal::Message { channel: channel.into(), payload: payload.into() }
}

fn event(db: u8, name: impl Into<Bytes>, key: impl Into<Bytes>) -> Signal {
    Signal::Event { node: Node::server(), db, name: name.into(), key: key.into() }
}

/// All events of all keys.
fn noisy() -> Redis {
    Redis::with(Options { notify: "KEA".into(), ..Options::default() }.line("databases 400"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_psubscribe_is_not_up() {
    let users = vec!["weak on >weak ~* +@all resetchannels &b*".to_owned()];
    let redis = Redis::with(Options { users, ..Options::default() });
    let mut settings = Settings::new(redis.url());
    settings.username = Some("weak".into());
    settings.password = Some(Secret::new("weak"));
    let error = open(&settings, &["a*", "b*"], 8).await.map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    let text = error.to_string();
    assert!(text.contains("NOPERM") && text.contains("channel rule &a* is missing"), "{text}");
    // Rights that are taken away later, and given back.
    redis.call(&["ACL", "SETUSER", "weak", "allchannels"]);
    let (_subscriber, mut signals) = subscribe_with(&settings, &["a*", "b*"], 8).await;
    redis.call(&["ACL", "SETUSER", "weak", "resetchannels", "&b*"]);
    redis.command(&["CLIENT", "KILL", "TYPE", "pubsub"]).ok();
    assert_eq!(next(&mut signals).await, Signal::Down);
    // The log adds like to like: count, number, ...
    let refused = || redis.call(&["ACL", "LOG"]).items()[0].items()[1].int();
    eventually("it was refused", async || refused() > Some(1)).await;
    assert!(signals.try_recv().is_err(), "a subscription that holds one pattern of two is not up");
    redis.call(&["ACL", "SETUSER", "weak", "allchannels"]);
    assert_eq!(next(&mut signals).await, Signal::Up);
    redis.call(&["PUBLISH", "abc", "hello"]);
    assert_eq!(next(&mut signals).await, message("abc", "hello"));
    redis.call(&["ACL", "SETUSER", "weak", "-psubscribe"]);
    let error = open(&settings, &["a*"], 8).await.map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("psubscribe") && !error.contains("channel rule"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_that_may_not_name_its_connection_may_subscribe() {
    let users = vec!["weak on >weak resetkeys resetchannels &a* -@all +psubscribe +ping".to_owned()];
    let redis = Redis::with(Options { users, ..Options::default() });
    let url = redis.url().replace("://", "://weak:weak@");
    let (_subscriber, mut signals) = subscribe(&url, &["a*"], 8).await;
    redis.call(&["PUBLISH", "abc", "hello"]);
    assert_eq!(next(&mut signals).await, message("abc", "hello"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_servers_are_told_apart_at_once() {
    let locked = Redis::with(Options { password: Some("sesame".into()), ..Options::default() });
    let refusal = async |url: &str| {
        let begin = Instant::now();
        let settings = Settings { connect_deadline: Duration::from_secs(1), ..Settings::new(url) };
        let error = open(&settings, &["a*"], 8).await.map(|_| ()).unwrap_err();
        assert!(begin.elapsed() < Duration::from_secs(2), "{:?} {error}", begin.elapsed());
        let text = error.to_string();
        assert!(!text.contains('\n') && !text.contains("hunter2"), "{text}");
        error.kind()
    };
    assert_eq!(refusal("redis://127.0.0.1:1/").await, ErrorKind::Unreachable);
    assert_eq!(refusal("unix:///nowhere.sock").await, ErrorKind::Unreachable);
    assert_eq!(refusal("redis://no-such-host.invalid/").await, ErrorKind::Unreachable);
    assert_eq!(refusal("redis-sentinel://127.0.0.1:1,127.0.0.1:2/main").await, ErrorKind::Unreachable);
    assert_eq!(refusal(&locked.url()).await, ErrorKind::Refused);
    assert_eq!(refusal(&locked.url().replace("://", "://:hunter2@")).await, ErrorKind::Refused);
    assert_eq!(refusal(&locked.url().replace("://", "://hunter2:hunter2@")).await, ErrorKind::Refused);
    for (answer, kind) in [
        ("HTTP/1.1 400 Bad Request\r\n\r\n", ErrorKind::NotRedis),
        ("-ERR max number of clients reached\r\n", ErrorKind::Unavailable),
        ("-DENIED Redis is running in protected mode\r\n", ErrorKind::Refused),
        ("+OK\r\n", ErrorKind::Malformed),
        ("", ErrorKind::Unreachable),
    ] {
        let url = crate::store_traps::stub(move |_| answer.to_owned()).await;
        assert_eq!(refusal(&url).await, kind, "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_of_any_bytes_come_by_their_own_channel() {
    let redis = noisy();
    let patterns = ["__keyspace@0__:*", "__keyspace@3__:*", "__keyspace@3??__:*"];
    let (_subscriber, mut signals) = subscribe(&redis.url(), &patterns, 64).await;
    let long = vec![0xff; 64 * 1024];
    let keys: [&[u8]; 6] =
        [b"", b"k\xff\x00\r\n", b"a__:b{}:*?[", "schl\u{fc}ssel".as_bytes(), b"\xc3", &long];
    let set = "redis.call('SELECT', ARGV[1]) redis.call('SET', ARGV[2], 'v') return 1";
    for key in keys {
        for db in [0, 3] {
            // No event of ours: it has no number for such a database.
            redis.call(&[b"EVAL".as_slice(), set.as_bytes(), b"0", b"399", key]);
            redis.call(&[b"EVAL".as_slice(), set.as_bytes(), b"0", db.to_string().as_bytes(), key]);
            let new = next(&mut signals).await;
            // Redis 7 tells of a key that is new, too.
            let set = if new == event(db, "new", key.to_vec()) { next(&mut signals).await } else { new };
            assert_eq!(set, event(db, "set", key.to_vec()), "{}", key.escape_ascii());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn overlapping_patterns_tell_everything_once_and_in_order() {
    const ROUNDS: usize = 200;
    let redis = Redis::with(Options { notify: "Eg$".into(), ..Options::default() });
    let patterns =
        ["__keyevent@0__:*", "__keyevent@*__:set", "__keyevent@0__:overdue-mark", "*", "ab?", "abc"];
    let (_subscriber, mut signals) = subscribe(&redis.url(), &patterns, 4_096).await;
    let round = "for i = 1, tonumber(ARGV[1]) do
        redis.call('SET', 'a', i) redis.call('SET', 'a', i) redis.call('DEL', 'a')
        redis.call('PUBLISH', '__keyevent@0__:overdue-mark', 'server ' .. i)
        redis.call('PUBLISH', 'abc', 'same') redis.call('PUBLISH', 'abc', 'same')
    end return 1";
    redis.call(&["EVAL", round, "0", &ROUNDS.to_string()]);
    for i in 1..=ROUNDS {
        for wanted in [
            event(0, "set", "a"),
            event(0, "set", "a"),
            event(0, "del", "a"),
            event(0, "overdue-mark", format!("server {i}")),
            message("abc", "same"),
            message("abc", "same"),
        ] {
            assert_eq!(any(&mut signals).await, wanted, "round {i}");
        }
    }
    redis.call(&["PUBLISH", "end", "x"]);
    assert_eq!(any(&mut signals).await, message("end", "x"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_subscription_comes_back_verified() {
    let redis = Redis::start();
    redis.call(&["CONFIG", "SET", "notify-keyspace-events", "Ex"]);
    let (subscriber, mut signals) = subscribe(&redis.url(), &["__keyevent@0__:expired", "a*"], 64).await;
    for _ in 0..5 {
        redis.call(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        let server = Node::server();
        for word in [Signal::Closed(server.clone()), Signal::Down, Signal::Opened(server), Signal::Up] {
            assert_eq!(any(&mut signals).await, word);
        }
        redis.call(&["PUBLISH", "abc", "hello"]);
        assert_eq!(any(&mut signals).await, message("abc", "hello"));
        redis.call(&[b"SET".as_slice(), b"k\xff\r\n", b"v", b"PX", b"1"]);
        assert_eq!(any(&mut signals).await, event(0, "expired", b"k\xff\r\n".to_vec()));
    }
    let named = redis.call(&["CLIENT", "LIST", "TYPE", "pubsub"]).text();
    assert!(named.contains("name=overdue-test:"), "{named}");
    subscriber.close().await;
    assert_eq!(any(&mut signals).await, Signal::Closed(Node::server()));
    assert_eq!(any(&mut signals).await, Signal::Down);
    assert_eq!(timeout(patience(), signals.recv()).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hung_server_is_noticed_by_an_idle_subscription() {
    let redis = Redis::start();
    let (_subscriber, mut signals) = subscribe(&redis.url(), &["a*"], 8).await;
    let begin = Instant::now();
    redis.sigstop();
    assert_eq!(next(&mut signals).await, Signal::Down);
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
    redis.sigcont();
    assert_eq!(next(&mut signals).await, Signal::Up);
    redis.call(&["PUBLISH", "abc", "hello"]);
    assert_eq!(next(&mut signals).await, message("abc", "hello"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_network_is_noticed_by_an_idle_subscription() {
    let redis = Redis::start();
    let proxy = Proxy::start(redis.addr());
    let (_subscriber, mut signals) = subscribe(&proxy.url(), &["a*"], 8).await;
    proxy.down(Net::Drop);
    assert_eq!(next(&mut signals).await, Signal::Down);
    proxy.cut();
    proxy.heal();
    assert_eq!(next(&mut signals).await, Signal::Up);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_subscription_stays() {
    let redis = Redis::start();
    let (_subscriber, mut signals) = subscribe(&redis.url(), &["a*"], 8).await;
    // Two heartbeats are answered by nothing else than a PONG.
    let pings = || redis.info("commandstats").get("cmdstat_ping").is_some_and(|s| s.contains("calls="));
    let before = redis.call(&["CLIENT", "LIST", "TYPE", "pubsub"]).text();
    redis.call(&["CONFIG", "RESETSTAT"]);
    eventually("it is asked", async || pings()).await;
    redis.call(&["CONFIG", "RESETSTAT"]);
    eventually("it is asked again", async || pings()).await;
    let id = |text: &str| text.split(' ').next().unwrap().to_owned();
    assert_eq!(id(&redis.call(&["CLIENT", "LIST", "TYPE", "pubsub"]).text()), id(&before));
    assert!(signals.try_recv().is_err());
}

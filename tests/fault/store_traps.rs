//! The traps of the client library, and the faults of a single server, as the store meets them.

use std::time::{Duration, Instant};

use bytes::Bytes;
use overdue_protocol::call::{From, Join, Mode, Schedule, ScheduleItem, When};
use overdue_protocol::entry::EntryId;
use overdue_protocol::{Call, Due, GroupName, Malformed, Partition, QueueName, Reply, Script, TimerId};
use overdue_store::{ErrorKind, Executed, Reader, Settings, Signal, Store};
use overdue_tests::redis::Options;
use overdue_tests::{Cluster, Mode as Net, Proxy, Redis, Sentinel, Tls, eventually, patience};
use tokio::time::timeout;

use crate::subscriptions::{message, next, subscribe, subscribe_with};

/// Counts how often it is executed. Under the name of a real script: only those have a place in the metrics.
static COUNTING: Script = Script {
    name: "sweep",
    parts: &[],
    text: "return {redis.call('INCR', KEYS[1]), {redis.call('GET', KEYS[1])}}",
};

struct Count(&'static str);

impl Call for Count {
    type Answer = u64;

    fn script(&self) -> &'static Script {
        &COUNTING
    }

    fn what(&self) -> String {
        "count".into()
    }

    fn keys(&self) -> Vec<Bytes> {
        vec![Bytes::from_static(self.0.as_bytes())]
    }

    fn args(&self) -> Vec<Bytes> {
        vec![]
    }

    fn answer(&self, reply: Reply) -> Result<u64, Malformed> {
        reply.into_array().and_then(|parts| parts[0].as_u64()).ok_or(Malformed("no count"))
    }
}

fn hasty(url: &str) -> Settings {
    Settings { command_deadline: Duration::from_millis(300), ..Settings::new(url) }
}

async fn connect(url: &str) -> Store {
    Store::connect(&Settings::new(url), "test").await.expect("a private server takes us")
}

fn partition(store: &Store, queue: &str) -> Partition {
    store.keyspace().partition(&QueueName::new(queue).unwrap(), 0)
}

fn id(id: &str) -> TimerId {
    TimerId::try_from(id).unwrap()
}

fn group() -> GroupName {
    GroupName::new("billing").unwrap()
}

fn arm(at: &Partition, timers: &[(&str, u64, &'static str)]) -> Schedule {
    let item = |&(timer, due, payload): &(&str, u64, &'static str)| ScheduleItem {
        id: id(timer),
        when: When::At(Due::from_unix_ms(due).unwrap()),
        mode: Mode::Upsert,
        payload: payload.into(),
        call: Bytes::from_static(b"12345678"),
        extras: Bytes::new(),
        keyed: false,
    };
    Schedule { partition: at.clone(), partitions: 1, items: timers.iter().map(item).collect() }
}

const FAR: u64 = 4_000_000_000_000;

// ---- commands -----------------------------------------------------------------------------------------------

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reply_lost_is_not_replayed() {
    let redis = Redis::start();
    let proxy = Proxy::start(redis.addr());
    let store = connect(&proxy.url()).await;
    assert_eq!(store.run(&Count("n")).await.unwrap(), 1);
    proxy.only("EVALSHA");
    proxy.down(Net::Cut);
    let error = store.run(&Count("n")).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.was_executed()),
        (ErrorKind::OutcomeUnknown, Executed::Unknown),
        "{error}"
    );
    proxy.heal();
    assert_eq!(store.run(&Count("n")).await.unwrap(), 3, "the lost one was executed once, not three times");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_never_left_is_not_executed_and_says_so() {
    let redis = Redis::start();
    let store = Store::connect(&hasty(&redis.url()), "test").await.unwrap();
    redis.kill9();
    let error = eventually("the loss is known", async || {
        let error = store.run(&Count("n")).await.unwrap_err();
        if error.kind() == ErrorKind::Unreachable { Ok(error) } else { Err(error) }
    });
    assert_eq!(error.await.was_executed(), Executed::No);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hung_server_is_left_by_commands() {
    let redis = Redis::start();
    let proxy = Proxy::start(redis.addr());
    let store = Store::connect(&hasty(&proxy.url()), "test").await.unwrap();
    let before = proxy.counters().accepted;
    proxy.blackhole();
    // Steady traffic: each write would reset the library's own detection.
    eventually("the hung connection is left", async || {
        let _ = store.run(&Count("n")).await;
        proxy.counters().accepted > before
    })
    .await;
    proxy.up(Net::Cut);
    proxy.heal();
    eventually("commands are answered again", async || {
        store.run(&Count("n")).await.map_err(|e| e.to_string())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_store_leaves_no_connection() {
    let redis = Redis::start();
    let clients = || redis.info("clients")["connected_clients"].clone();
    let before = clients();
    let store = connect(&redis.url()).await;
    assert_ne!(clients(), before);
    drop(store);
    let closed = connect(&redis.url()).await;
    closed.close().await;
    assert_eq!(closed.time_ms().await.unwrap_err().kind(), ErrorKind::Closed);
    let (subscriber, _signals) = subscribe(&redis.url(), &["a*"], 8).await;
    drop(subscriber);
    let reader = Reader::open(&Settings::new(redis.url()), "test").await.unwrap();
    reader.close().await;
    eventually("all are gone", async || if clients() == before { Ok(()) } else { Err(clients()) }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn script_flush_is_survived() {
    let redis = Redis::start();
    let store = connect(&redis.url()).await;
    for n in 1..5 {
        assert_eq!(store.run(&Count("n")).await.unwrap(), n);
        redis.call(&["SCRIPT", "FLUSH"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restart_is_survived_and_counted() {
    let redis = Redis::with_aof();
    let store = connect(&redis.url()).await;
    store.run(&Count("n")).await.unwrap();
    let mut made = store.reconnects();
    let before = *made.borrow_and_update();
    redis.kill9();
    redis.restart().unwrap();
    assert_eq!(
        eventually("it goes on", async || store.run(&Count("n")).await.map_err(|e| e.to_string())).await,
        2
    );
    timeout(patience(), made.wait_for(|now| *now > before)).await.unwrap().unwrap();
    eventually("it has its name again", async || {
        redis.call(&["CLIENT", "LIST"]).text().contains("name=overdue-test:")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn user_data_that_looks_like_pubsub_is_safe() {
    let redis = Redis::start();
    let store = connect(&redis.url()).await;
    for word in ["message", "pmessage", "smessage", "subscribe", "psubscribe", "unsubscribe", "punsubscribe"]
    {
        redis.call(&["FLUSHALL"]);
        let queue = QueueName::new(word).unwrap();
        let at = store.keyspace().partition(&queue, 0);
        assert!(store.create_queue(&queue, 2).await.unwrap().1);
        assert_eq!(store.queues().await.unwrap()[&queue].partitions, 2);
        for others in [0, 1, 2] {
            // Replies of three and four elements are the dangerous ones.
            redis.call(&["DEL".into(), at.index(), at.timers(), at.tally()]);
            let extra = [("message", FAR + 1, word), ("channel", FAR + 2, word)];
            let mut timers = vec![(word, FAR, word)];
            timers.extend(extra.into_iter().filter(|(name, ..)| *name != word).take(others));
            store.run(&arm(&at, &timers)).await.unwrap();
            let page = store.index_page(&at, None, None, 10).await.unwrap();
            assert_eq!(page.len(), timers.len(), "{word}");
            assert_eq!(page[0], (id(word), FAR));
            assert_eq!(store.record(&at, &id(word)).await.unwrap().unwrap().1.unwrap().payload, word);
            assert_eq!(store.head(&at).await.unwrap(), Some(FAR));
        }
        redis.call(&["DEL".into(), at.tally()]);
        redis.call(&["HSET".into(), at.tally(), word.into(), "1".into(), "channel".into(), "2".into()]);
        assert_eq!(store.tally(&at).await.unwrap()[word], "1");
        redis.call(&["XADD".into(), at.dead(), "1-1".into(), word.into(), word.into()]);
        assert_eq!(
            store.entries(&at.dead(), None, 9).await.unwrap()[0].field(word),
            Some(&Bytes::from(word))
        );
        assert_eq!(store.run(&Count("n")).await.unwrap(), 1, "the replies are still in step");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_follow_due_and_bytes_of_the_id_even_when_the_cursor_is_gone() {
    let redis = Redis::start();
    let store = connect(&redis.url()).await;
    let at = partition(&store, "orders");
    let mut all: Vec<(Vec<u8>, u64)> = vec![];
    for i in 0..300u64 {
        all.push((vec![(i % 256) as u8, (i / 7) as u8], FAR + i % 3));
    }
    all.sort_by_key(|(member, due)| (*due, member.clone()));
    all.dedup();
    for (member, due) in &all {
        redis.call(&[b"ZADD".as_slice(), &at.index(), due.to_string().as_bytes(), member]);
    }
    let (mut seen, mut after) = (vec![], None);
    loop {
        let page = store.index_page(&at, after.clone(), Some(FAR + 2), 7).await.unwrap();
        let Some((last, due)) = page.last().cloned() else { break };
        // Whatever fires between two pages takes its cursor along.
        redis.call(&[b"ZREM".as_slice(), &at.index(), last.as_bytes()]);
        seen.extend(page.into_iter().map(|(member, due)| (member.as_bytes().to_vec(), due)));
        after = Some((due, last));
    }
    all.retain(|(_, due)| *due < FAR + 2);
    assert_eq!(seen, all);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_server_refuses_before_anything_is_done() {
    let redis = Redis::start();
    let store = connect(&redis.url()).await;
    let at = partition(&store, "orders");
    redis.call(&["CONFIG", "SET", "maxmemory", "1"]);
    let error = store.run(&arm(&at, &[("a", FAR, "p")])).await.unwrap_err();
    assert_eq!((error.kind(), error.was_executed()), (ErrorKind::OutOfMemory, Executed::No), "{error}");
    store.prove_scripts().await.unwrap();
    redis.call(&["CONFIG", "SET", "maxmemory", "0"]);
    store.prove_scripts().await.unwrap();
    assert_eq!(redis.count(&["DBSIZE"]), 0, "the proof leaves nothing behind");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_full_server_a_queue_that_is_there_is_found_and_no_other_is_made() {
    let redis = Redis::start();
    let store = connect(&redis.url()).await;
    let [there, new] = ["there", "new"].map(|name| QueueName::new(name).unwrap());
    store.create_queue(&there, 3).await.unwrap();
    redis.call(&["CONFIG", "SET", "maxmemory", "1"]);
    let (found, created) = store.create_queue(&there, 1).await.unwrap();
    assert_eq!((found.partitions, created), (3, false));
    let error = store.create_queue(&new, 1).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pausing_leaves_fields_of_tomorrow_alone() {
    let redis = Redis::start();
    let store = connect(&redis.url()).await;
    let orders = QueueName::new("orders").unwrap();
    assert!(!store.set_paused(&orders, true).await.unwrap());
    // {"partitions": 3, "colour": "red"}
    let entry = b"\x82\xaapartitions\x03\xa6colour\xa3red";
    redis.call(&[b"HSET".as_slice(), b"overdue:queues", b"orders", entry]);
    assert!(store.set_paused(&orders, true).await.unwrap());
    let info = store.queue(&orders).await.unwrap().unwrap();
    assert_eq!((info.partitions, info.paused), (3, true));
    let raw = redis.call(&["HGET", "overdue:queues", "orders"]).text();
    assert!(raw.contains("colour") && raw.contains("red"), "{raw:?}");
    assert_eq!(store.create_queue(&orders, 5).await.unwrap().0.partitions, 3);
    redis.call(&[b"HSET".as_slice(), b"overdue:queues", b"orders", b"\x82\xaapartitions\x03\xa6format\x63"]);
    assert_eq!(store.queues().await.unwrap_err().kind(), ErrorKind::NewerFormat);
}

// ---- WAIT ---------------------------------------------------------------------------------------------------

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wait_counts_replicas_and_holds_up_nobody_else() {
    let redis = Redis::start();
    let store = connect(&redis.url()).await;
    let slow = store.run_with_wait(&Count("n"), 1, Duration::from_secs(3));
    let others = async {
        let begin = Instant::now();
        for _ in 0..20 {
            store.time_ms().await.unwrap();
        }
        begin.elapsed()
    };
    let (waited, others) = tokio::join!(slow, others);
    assert_eq!(waited.unwrap(), (1, 0));
    assert!(others < Duration::from_secs(2), "others waited {others:?}");
    let replica = Redis::with(Options::default().line(format!("replicaof 127.0.0.1 {}", redis.port())));
    eventually("the replica confirms", async || {
        let (_, replicas) = store.run_with_wait(&Count("n"), 1, Duration::from_millis(200)).await.unwrap();
        replicas == 1
    })
    .await;
    let error = connect(&replica.url()).await.run(&Count("n")).await.unwrap_err();
    assert_eq!((error.kind(), error.was_executed()), (ErrorKind::Unavailable, Executed::No), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reconnect_before_wait_is_an_unknown_outcome() {
    let redis = Redis::start();
    let proxy = Proxy::start(redis.addr());
    let store = connect(&proxy.url()).await;
    proxy.only("WAIT");
    proxy.up(Net::Cut);
    let error = store.run_with_wait(&Count("n"), 1, Duration::from_millis(50)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
    assert_eq!(redis.count(&["GET", "n"]), 1);
}

// ---- readers ------------------------------------------------------------------------------------------------

async fn reader(redis: &Redis, url: &str) -> (Store, Partition, Reader) {
    let store = connect(&redis.url()).await;
    let at = partition(&store, "orders");
    store.run(&Join { partition: at.clone(), group: group(), from: From::Oldest }).await.unwrap();
    let reader = Reader::open(&Settings::new(url), "reader").await.unwrap();
    (store, at, reader)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hung_server_is_noticed_by_the_reader() {
    let redis = Redis::start();
    let proxy = Proxy::start(redis.addr());
    let (_store, at, reader) = reader(&redis, &proxy.url()).await;
    let block = Duration::from_millis(200);
    assert!(reader.read(&at.stream(), &group(), "c", 10, block).await.unwrap().is_empty());
    proxy.blackhole();
    let begin = Instant::now();
    let error = reader.read(&at.stream(), &group(), "c", 10, block).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
    assert!(begin.elapsed() < Duration::from_secs(4), "{:?}", begin.elapsed());
    // The lost read must not reach the server now.
    proxy.refuse(true);
    proxy.cut();
    eventually("the network has forgotten it", async || proxy.counters().open == 0).await;
    proxy.heal();
    redis.call(&[b"XADD".as_slice(), &at.stream(), b"1-1", b"a", b"\xff\r\n"]);
    let entries = eventually("it reads again", async || {
        let entries = reader.read(&at.stream(), &group(), "c", 10, block).await.map_err(|e| e.to_string())?;
        if entries.is_empty() { Err("nothing".to_owned()) } else { Ok(entries) }
    })
    .await;
    assert_eq!(entries[0].fields, [(Bytes::from_static(b"a"), Bytes::from_static(b"\xff\r\n"))]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocked_read_ends_when_it_is_told_to() {
    let redis = Redis::start();
    let (store, at, reader) = reader(&redis, &redis.url()).await;
    let begin = Instant::now();
    let (stream, billing) = (at.stream(), group());
    let read = reader.read(&stream, &billing, "c", 10, Duration::from_secs(20));
    let mut read = std::pin::pin!(read);
    loop {
        tokio::select! {
            entries = &mut read => break assert!(entries.unwrap().is_empty()),
            () = reader.unblock() => tokio::task::yield_now().await,
        }
    }
    assert!(begin.elapsed() < Duration::from_secs(10));
    assert_eq!(store.pending_page(&at, &group(), None, 10).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_answer_of_a_read_that_was_dropped_is_not_that_of_the_next() {
    let redis = Redis::start();
    let (_store, at, reader) = reader(&redis, &redis.url()).await;
    let (stream, billing) = (at.stream(), group());
    let blocked = async |n: &str| {
        eventually("so many are blocked", async || redis.info("clients")["blocked_clients"] == n).await;
    };
    tokio::select! {
        read = reader.read(&stream, &billing, "dropped", 10, Duration::from_secs(20)) => panic!("{read:?}"),
        () = blocked("1") => {}
    }
    blocked("0").await;
    redis.call(&[b"XADD".as_slice(), &stream, b"1-1", b"a", b"b"]);
    let entries = reader.read(&stream, &billing, "next", 10, Duration::from_secs(1)).await.unwrap();
    assert_eq!((entries.len(), entries[0].id.to_string()), (1, "1-1".to_owned()));
    assert!(reader.read(&stream, &billing, "next", 10, Duration::from_millis(20)).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_reads_in_the_database_of_its_address() {
    let redis = Redis::start();
    let reader = Reader::open(&Settings::new(format!("{}3", redis.url())), "reader").await.unwrap();
    let mut connection = redis.connection().unwrap();
    for (db, id) in [("0", "1-1"), ("3", "1-2")] {
        connection.call(&["SELECT", db]).unwrap();
        connection.call(&["XADD", "s", id, "a", "b"]).unwrap();
    }
    let stream = Bytes::from_static(b"s");
    let entries = reader.follow(&stream, &EntryId::ZERO, 9, Duration::from_millis(20)).await.unwrap();
    assert_eq!(entries.iter().map(|entry| entry.id.to_string()).collect::<Vec<_>>(), ["1-2"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_that_is_gone_is_named_before_and_during_a_read() {
    let redis = Redis::start();
    let (store, at, reader) = reader(&redis, &redis.url()).await;
    let stream = at.stream();
    let during = async {
        eventually("it is blocked", async || redis.info("clients")["blocked_clients"] == "1").await;
        redis.call(&["DEL".into(), at.stream()]);
    };
    let (error, ()) = tokio::join!(
        async { reader.read(&stream, &group(), "c", 10, Duration::from_secs(20)).await.unwrap_err() },
        during
    );
    assert_eq!(error.kind(), ErrorKind::NoGroup, "{error}");
    let error = reader.read(&stream, &group(), "c", 10, Duration::from_secs(1)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoGroup, "{error}");
    assert_eq!(store.groups(&at).await.unwrap(), []);
    assert_eq!(store.consumers(&at, &group()).await.unwrap(), []);
    assert_eq!(store.pending_page(&at, &group(), None, 9).await.unwrap(), []);
    assert_eq!(store.entries(&stream, None, 9).await.unwrap(), []);
    assert!(reader.follow(&stream, &EntryId::ZERO, 9, Duration::from_millis(20)).await.unwrap().is_empty());
    redis.call(&[b"SET".as_slice(), &stream, b"x"]);
    assert_eq!(store.length(&stream).await.unwrap_err().kind(), ErrorKind::WrongType);
}

// ---- finding a server ---------------------------------------------------------------------------------------

async fn refusal(settings: &Settings) -> overdue_store::Error {
    let begin = Instant::now();
    let error = Store::connect(settings, "test").await.map(|_| ()).unwrap_err();
    assert!(
        begin.elapsed() < settings.connect_deadline + Duration::from_secs(1),
        "{:?} {error}",
        begin.elapsed()
    );
    let text = error.to_string();
    assert!(!text.contains('\n') && !text.contains("hunter2"), "{text}");
    error
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_servers_are_told_apart_at_once() {
    let locked = Redis::with(Options { password: Some("sesame".into()), ..Options::default() });
    let with = async |url: &str| refusal(&Settings::new(url)).await.kind();
    assert_eq!(with("redis://127.0.0.1:1/").await, ErrorKind::Unreachable);
    assert_eq!(with("unix:///nowhere.sock").await, ErrorKind::Unreachable);
    assert_eq!(with("redis://no-such-host.invalid/").await, ErrorKind::Unreachable);
    assert_eq!(with(&locked.url()).await, ErrorKind::Refused);
    assert_eq!(with(&locked.url().replace("://", "://:hunter2@")).await, ErrorKind::Refused);
    assert_eq!(with(&locked.url().replace("://", "://hunter2:hunter2@")).await, ErrorKind::Refused);
    assert_eq!(
        with(&locked.url().replace("redis://", "redis-cluster://:sesame@")).await,
        ErrorKind::Settings
    );
    assert_eq!(with(&format!("{}99", locked.url().replace("://", "://:sesame@"))).await, ErrorKind::Settings);
    assert_eq!(with("redis://127.0.0.1:hunter2/").await, ErrorKind::Settings);
    for (answer, kind) in [
        ("HTTP/1.1 400 Bad Request\r\n\r\n", ErrorKind::NotRedis),
        ("-ERR max number of clients reached\r\n", ErrorKind::Unavailable),
        ("-LOADING Redis is loading the dataset in memory\r\n", ErrorKind::Unavailable),
        ("-DENIED Redis is running in protected mode\r\n", ErrorKind::Refused),
        ("", ErrorKind::Unreachable),
    ] {
        let url = stub(move |_| answer.to_owned()).await;
        assert_eq!(with(&url).await, kind, "{answer}");
    }
    let old = stub(|asked| match asked {
        asked if asked.contains("PING") => "+PONG\r\n".into(),
        asked if asked.contains("INFO") => "$21\r\nredis_version:5.0.14\n\r\n".into(),
        _ => "+OK\r\n".into(),
    });
    assert_eq!(with(&old.await).await, ErrorKind::TooOld);
}

/// Something that listens and gives one answer to whatever is sent.
pub(crate) async fn stub(answer: impl Fn(&str) -> String + Send + Sync + Clone + 'static) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let answer = answer.clone();
            tokio::spawn(async move {
                let mut asked = vec![0; 4096];
                while let Ok(n @ 1..) = socket.read(&mut asked).await {
                    let asked = String::from_utf8_lossy(&asked[..n]).into_owned();
                    // Commands may come together; each begins with its number of words.
                    for command in asked.split('*').skip(1) {
                        socket.write_all(answer(command).as_bytes()).await.unwrap();
                    }
                }
            });
        }
    });
    url
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_is_checked_against_the_given_authority() {
    let (tls, other) = (Tls::start(), Tls::start());
    let mut settings = Settings::new(tls.url());
    settings.ca_file = Some(tls.ca_file());
    let store = Store::connect(&settings, "test").await.unwrap();
    assert_eq!(store.run(&Count("n")).await.unwrap(), 1);
    let _subscriber = subscribe_with(&settings, &["a*"], 8).await;
    settings.ca_file = Some(other.ca_file());
    let error = refusal(&settings).await;
    assert!(error.kind() == ErrorKind::Unreachable && error.to_string().contains("ca_file"), "{error}");
    settings.ca_file = None;
    assert_eq!(refusal(&settings).await.kind(), ErrorKind::Unreachable);
    settings.ca_file = Some("/nowhere.pem".into());
    assert_eq!(refusal(&settings).await.kind(), ErrorKind::Settings);
    let plain = refusal(&Settings::new(tls.url().replace("rediss", "redis"))).await;
    assert!([ErrorKind::NotRedis, ErrorKind::Unreachable].contains(&plain.kind()), "{plain}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sockets_databases_and_sentinel_are_found() {
    let redis = Redis::start();
    let store = connect(&format!("{}?db=3", redis.unix_url())).await;
    store.run(&Count("n")).await.unwrap();
    assert_eq!((store.db(), redis.info("keyspace").contains_key("db3")), (3, true));
    let (_subscriber, mut signals) = subscribe(&redis.unix_url(), &["a*"], 8).await;
    redis.call(&["PUBLISH", "abc", "hello"]);
    assert_eq!(next(&mut signals).await, message("abc", "hello"));
    let sentinel = Sentinel::start();
    let store = connect(&sentinel.url()).await;
    assert_eq!(store.run(&Count("n")).await.unwrap(), 1);
    let (_subscriber, mut signals) = subscribe(&sentinel.url(), &["a*"], 8).await;
    sentinel.primary().call(&["PUBLISH", "abc", "hello"]);
    assert_eq!(next(&mut signals).await, message("abc", "hello"));
}

// ---- cluster ------------------------------------------------------------------------------------------------

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_heard_whole_and_its_replies_are_not_taken_for_redirections() {
    let cluster = Cluster::start();
    let store = connect(&cluster.url()).await;
    assert_eq!((store.is_cluster(), store.default_partitions()), (true, 4));
    for node in cluster.nodes() {
        node.call(&["CONFIG", "SET", "notify-keyspace-events", "Ex"]);
    }
    let (_subscriber, mut signals) =
        subscribe(&cluster.url(), &["__keyevent@0__:expired", "overdue:*:wake"], 64).await;
    store.prove_scripts().await.unwrap();
    let evil = "MOVED 1 127.0.0.1:1";
    for queue in ["a", "b", "c", "d", "e", "f"] {
        let name = QueueName::new(queue).unwrap();
        store.create_queue(&name, 1).await.unwrap();
        let at = store.keyspace().partition(&name, 0);
        store.run(&arm(&at, &[(evil, FAR, evil)])).await.unwrap();
        assert_eq!(store.index_page(&at, None, None, 9).await.unwrap(), [(id(evil), FAR)]);
        assert_eq!(store.record(&at, &id(evil)).await.unwrap().unwrap().1.unwrap().payload, evil);
        let key = at.timer_key(&id(queue));
        cluster.node_of(&key).call(&[b"SET".as_slice(), &key, b"v", b"PX", b"1"]);
        let mut heard = vec![];
        while heard.len() < 2 {
            match next(&mut signals).await {
                Signal::Event { key, .. } => heard.push(key),
                Signal::Message { payload, .. } if payload == queue => heard.push(payload),
                Signal::Message { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        heard.sort();
        assert_eq!(heard, [Bytes::from(queue), key], "each once");
    }
    assert_eq!(store.queues().await.unwrap().len(), 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_moved_slot_is_followed_without_executing_twice() {
    let cluster = Cluster::start();
    let store = connect(&cluster.url()).await;
    assert_eq!(store.run(&Count("n")).await.unwrap(), 1);
    let slot = cluster.nodes()[0].count(&["CLUSTER", "KEYSLOT", "n"]).to_string();
    let from = cluster.node_of(b"n");
    let to = cluster.nodes().iter().find(|node| node.port() != from.port()).unwrap();
    let (from_id, to_id) = (from.call(&["CLUSTER", "MYID"]).text(), to.call(&["CLUSTER", "MYID"]).text());
    to.call(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &from_id]);
    from.call(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to_id]);
    from.call(&["MIGRATE", "127.0.0.1", &to.port().to_string(), "n", "0", "1000"]);
    to.call(&["CLUSTER", "SETSLOT", &slot, "NODE", &to_id]);
    from.call(&["CLUSTER", "SETSLOT", &slot, "NODE", &to_id]);
    assert_eq!(store.run(&Count("n")).await.unwrap(), 2);
    assert_eq!(to.count(&["GET", "n"]), 2);
}

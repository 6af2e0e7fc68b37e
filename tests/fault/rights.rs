//! Each role with a user that has just the rights that docs/OPERATIONS.md lists for it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use overdue::{Client, Raw};
use overdue_sandbox::Connection;
use overdue_sandbox::Value;
use overdue_tests::{Launch, Redis, assert_balanced, eventually};

use crate::scene::handled;
use crate::stage::{GROUP, QUEUE, partition, pending, stop, up};

const OPERATIONS: &str = include_str!("../../docs/OPERATIONS.md");

/// A server with these users, and what it refused them.
struct Guarded(Redis);

impl Guarded {
    fn start() -> Self {
        let redis = Redis::start();
        let is_old = redis.info("server")["redis_version"].starts_with("6.");
        let lines = OPERATIONS.lines().filter_map(|line| line.strip_prefix("ACL SETUSER "));
        let mut users = BTreeSet::new();
        for line in lines {
            let (user, rights) = line.split_once(' ').unwrap();
            // 6.2 gives all channels to everybody.
            if users.insert(user) {
                redis.call(&["ACL", "SETUSER", user, "resetchannels"]);
            }
            for right in rights.split(' ').filter(|&right| !is_old || right != "+pexpiretime") {
                let right = if is_old { right.replace("%R~", "~") } else { right.to_owned() };
                redis.call(&["ACL", "SETUSER", user, &right]);
            }
        }
        let roles = ["client", "consumer", "ops", "plain", "relay"].map(|role| format!("overdue-{role}"));
        assert!(users.into_iter().eq(roles.iter().map(String::as_str)));
        Self(redis)
    }

    fn url(&self, role: &str) -> String {
        self.0.url().replace("//", &format!("//overdue-{role}:SECRET@"))
    }

    fn run(&self, role: &str, args: &[&str]) -> String {
        let finished = Launch::new(args).args(["--redis", &self.url(role)]).run();
        assert!(matches!(finished.code, Some(0 | 1 | 4)), "{args:?}: {finished:?}\n{:#?}", self.refused());
        finished.stdout
    }

    fn refused(&self) -> Vec<String> {
        let words =
            |entry: &Value| entry.items().iter().take(8).map(Value::text).collect::<Vec<_>>().join(" ");
        self.0.call(&["ACL", "LOG"]).items().iter().map(words).collect()
    }
}

/// Plain timers and keyed ones, armed twice; one of each is cancelled.
async fn produce(guarded: &Guarded) {
    let client = Client::connect(guarded.url("client")).await.unwrap();
    let queue = client.queue::<Raw>(QUEUE).await.unwrap();
    let payload = Raw::new("hold");
    for id in ["plain", "keyed", "gone", "gone-keyed"] {
        for at in [Duration::from_secs(600), Duration::from_millis(300)] {
            let timer = queue.timer(id).at(at).payload(&payload);
            let timer = if id.ends_with("keyed") { timer.keyed() } else { timer };
            timer.schedule().await.unwrap();
        }
    }
    assert!(queue.get("plain").await.unwrap().is_some());
    assert_eq!((queue.count().await.unwrap(), queue.list().page().await.is_ok()), (4, true));
    let keyed = queue.cancel("gone-keyed").await.unwrap();
    assert!(keyed.is_some() && queue.cancel("gone").await.unwrap().is_some());
}

/// A plain consumer that acknowledges all but one, which becomes a dead letter.
async fn plain(guarded: &Guarded) {
    let mut wire = Connection::tcp(guarded.0.addr()).unwrap();
    wire.call(&["AUTH", "overdue-plain", "SECRET"]).unwrap();
    let stream = partition(0).stream();
    eventually("its last attempt has failed", async || {
        let read: [&[u8]; 7] = [b"XREADGROUP", b"GROUP", b"mail", b"c", b"STREAMS", &stream, b">"];
        let answer = wire.call(&read).unwrap();
        let entries = answer.items().first().map_or(&[][..], |stream| stream.items()[1].items());
        for entry in
            entries.iter().filter(|entry| !entry.items()[1].items().contains(&Value::Bytes(b"keyed".into())))
        {
            let id = entry.items()[0].text();
            wire.call(&[b"XACK".as_slice(), &stream, b"mail", id.as_bytes()]).unwrap();
        }
        let letters = guarded.run("ops", &["dead", "list", QUEUE, "--group", "mail", "--json"]);
        if letters.contains("attempts") { Ok(()) } else { Err(letters) }
    })
    .await;
}

/// Every command of `overdue` that looks or mends.
fn ops(guarded: &Guarded, config: &str) {
    // What has just fired stays in the stream: the plain group has not read it.
    guarded.run("client", &["schedule", QUEUE, "now", "--in", "0s"]);
    guarded.run("client", &["schedule", QUEUE, "late", "--in", "1h", "--keyed"]);
    guarded.run("client", &["schedule", QUEUE, "later", "--in", "1h"]);
    guarded.run("client", &["schedule", QUEUE, "later", "--in", "2h", "--only-later"]);
    for line in [
        "list orders",
        "show orders late",
        "show orders plain",
        "show orders keyed",
        "show sessions session:a",
        "tail orders --from oldest --limit 1",
        "queues list",
        "groups list",
        "pause orders",
        "resume orders",
        "dead list orders",
        "dead replay orders --all --dry-run",
        "dead replay orders --group mail --reason attempts",
        "discard orders keyed",
        "dead purge orders --all",
        "groups drop orders mail --dry-run",
        "groups drop orders effects",
        "queues set orders --history 0",
        "audit",
        "doctor",
        "top --once",
        "cancel orders late later",
    ] {
        guarded.run("ops", &line.split(' ').collect::<Vec<_>>());
    }
    let checks = guarded.run("relay", &["doctor", "--config", config]);
    assert!(checks.contains("this user may subscribe to"), "{checks}");
}

const SETTINGS: &str = r#"
[[watch]]
pattern = "session:*"
queue = "sessions"
payload = "key"
payload_key = "user:{1}"

[[group]]
queue = "orders"
name = "mail"
lease = "1s"
attempts = 2
retry_wait = "10ms"
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_role_can_do_all_that_is_its_own_and_needs_no_more() {
    let guarded = Guarded::start();
    let redis = &guarded.0;
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("overdue.toml").display().to_string();
    fs::write(&config, SETTINGS).unwrap();
    guarded.run("ops", &["queues", "create", QUEUE, "--partitions", "1"]);
    guarded.run("ops", &["queues", "set", QUEUE, "--history", "2"]);
    let relay = up(Launch::relay(&guarded.url("relay")).args(["--config", &config]));

    // Effects, a retry, a dead letter, and a holder that dies: another one claims what it held.
    produce(&guarded).await;
    let hands = |group: &str, work: &str| {
        let args = [&guarded.url("consumer"), QUEUE, group, work, "lease_ms=1000"];
        Launch::new(args).start_as(Path::new(env!("CARGO_BIN_EXE_hands")))
    };
    let effects = hands("effects", "effects");
    let killed = hands(GROUP, "sleep:60000");
    let written = partition(0).neighbour(b"b");
    eventually("effects are written", async || {
        redis.count(&[b"HLEN".as_slice(), &written]) == 2 && pending(redis) == 2
    })
    .await;
    killed.kill9();
    let script = r#"case "$OVERDUE_ID$OVERDUE_ATTEMPT" in plain1) exit 75;; keyed*) exit 65;; esac"#;
    let consume = Launch::consume(&guarded.url("consumer"), QUEUE, GROUP).args(["--lease", "1s"]);
    let consumer = up(consume.args(["--exec", "--", "sh", "-c", script]));
    handled(&consumer, "done", 1.0).await;
    handled(&consumer, "reject", 1.0).await;

    // Watched keys.
    redis.call(&["SET", "user:a", "ann"]);
    redis.call(&["SET", "session:a", "x", "PX", "200"]);
    let sessions = up(Launch::consume(&guarded.url("consumer"), "sessions", GROUP).args(["--print"]));
    eventually("the key is a timeout", async || sessions.stdout().contains("ann")).await;

    plain(&guarded).await;
    stop(&effects);
    ops(&guarded, &config);
    [&relay, &consumer, &sessions].into_iter().for_each(stop);
    assert_balanced(redis, QUEUE, 1);
    assert_eq!(guarded.refused(), Vec::<String>::new());
}

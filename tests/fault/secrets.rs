//! Secrets stand in no log, error, metric, process title or key, whatever is said most loudly.

use std::fs;
use std::time::Duration;

use overdue::Raw;
use overdue_sandbox::Value;
use overdue_tests::redis::Options;
use overdue_tests::{Answer, Launch, Program, Receiver, Redis, eventually};

use crate::stage::{GROUP, Producer, QUEUE, stop};

/// What may be shown nowhere: a password, one that was mistyped, a webhook's secret and a token in its URL.
const SECRETS: [&str; 4] =
    ["hunter2Password", "hunter2Mistyped", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "dG9rZW4tb2YtdXJs"];
const USER: &str = "worker";

/// Fails when a secret is in `text`.
fn assert_clean(what: &str, text: &str) {
    for secret in SECRETS {
        // Also as bytes in a debug line, and in upper case.
        let bytes = format!("{:?}", secret.as_bytes());
        let bytes = bytes.trim_matches(['[', ']']);
        let found = text.lines().find(|line| line.contains(secret) || line.contains(bytes));
        assert!(found.is_none(), "{what} shows {secret}: {}", found.unwrap_or_default());
    }
}

/// All that a program shows of itself.
fn shown(program: &Program) -> String {
    let title = fs::read(format!("/proc/{}/cmdline", program.pid())).unwrap();
    let pages = ["/metrics", "/livez", "/readyz"].map(|path| program.get(path).unwrap().body);
    let parts = [program.stdout(), program.stderr(), String::from_utf8_lossy(&title).into_owned()];
    parts.into_iter().chain(pages).collect::<Vec<_>>().join("\n")
}

/// All that stands in Redis, and what it shows of its connections.
fn stored(redis: &Redis) -> String {
    let mut text = redis.call(&["CLIENT", "LIST"]).text();
    let mut add = |value: &Value| text += &format!("\n{}", flat(value));
    for key in redis.call(&["KEYS", "*"]).items() {
        let key = key.text();
        add(&redis.call(&["TYPE", &key]));
        for read in [vec!["HGETALL", &key], vec!["XRANGE", &key, "-", "+"], vec!["GET", &key]] {
            add(&redis.command(&read).unwrap_or(Value::Nil));
        }
    }
    text
}

fn flat(value: &Value) -> String {
    match value.items() {
        [] => value.text(),
        items => items.iter().map(flat).collect::<Vec<_>>().join(" "),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_log_metric_title_or_key_of_a_relay_or_a_consumer_holds_one() {
    let [password, _, secret, token] = SECRETS;
    let users = vec![format!("{USER} on >{password} ~* &* +@all")];
    let redis = Redis::with(Options { users, ..Options::default() });
    let receiver = Receiver::start().await;
    receiver.answer(|request| Answer::Status(if request.data("attempt") == 1 { 500 } else { 204 }));
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let password_file = file("password", &format!("{password}\n"));
    let secret_file = file("secret", &format!("whsec_{secret}\n"));
    let hook = receiver.url(&format!("/hook/{token}?token={token}"));
    let config = file(
        "overdue.toml",
        &format!(
            "[redis]\nurl = \"{}\"\nusername = \"{USER}\"\npassword = \"{password}\"\n\
             [[consumer]]\nqueue = \"{QUEUE}\"\ngroup = \"{GROUP}\"\nwebhook = \"{hook}\"\n\
             webhook_secret_file = \"{secret_file}\"\nretry_wait = \"10ms\"\n",
            redis.url()
        ),
    );
    let relay = Launch::relay(&redis.url()).args(["--user", USER, "--password-file", &password_file]);
    let relay = relay.env("OVERDUE_LOG_FILTER", "trace").start();
    let consumer = Launch::new(["consume", "--config", &config, "--listen", "127.0.0.1:0"]);
    let consumer = consumer.env("OVERDUE_LOG_FILTER", "trace").env("OVERDUE_LOG_FORMAT", "json").start();
    let producer = Producer::new(&redis.url()).await;
    producer.arm_with(["a", "b"], Duration::ZERO, true, &Raw::new("x")).await;
    eventually("both are posted twice", async || receiver.count() >= 4).await;
    assert!(receiver.received().iter().all(|request| request.is_signed_with(&format!("whsec_{secret}"))));
    // Nobody is there for the third: it is said in the log and to the doctor.
    drop(receiver);
    producer.arm(["c"], Duration::ZERO, false).await;
    eventually("the endpoint is away", async || {
        consumer.metrics().get("overdue_endpoint_up", &[]) == Some(0.0)
    })
    .await;
    for (name, program) in [("the relay", &relay), ("the consumer", &consumer)] {
        assert_clean(name, &shown(program));
    }
    assert_clean("Redis", &stored(&redis));
    for line in [
        "config show",
        "config check",
        "doctor",
        "audit",
        "groups list",
        "list orders",
        "show orders c",
        "dead list orders",
    ] {
        let finished =
            Launch::new(line.split(' ')).args(["--config", &config]).env("OVERDUE_LOG_FILTER", "trace").run();
        assert_clean(line, &format!("{}\n{}", finished.stdout, finished.stderr));
    }
    redis.call(&["ACL", "SETUSER", USER, "resetpass", ">another"]);
    for kind in ["normal", "pubsub"] {
        redis.call(&["CLIENT", "KILL", "TYPE", kind]);
    }
    eventually("both are refused", async || {
        [&relay, &consumer].into_iter().all(|program| program.readyz().status == 503)
    })
    .await;
    for (name, program) in [("the refused relay", &relay), ("the refused consumer", &consumer)] {
        assert_clean(name, &shown(program));
    }
    stop(&relay);
    stop(&consumer);
    assert_clean("the end", &format!("{}{}", relay.stderr(), consumer.stderr()));
}

#[test]
fn no_error_of_a_start_that_fails_holds_one() {
    let mistyped = SECRETS[1];
    let redis = Redis::with(Options { password: Some("right".to_owned()), ..Options::default() });
    let port = redis.port();
    let urls = [
        format!("redis://:{mistyped}@127.0.0.1:{port}/"),
        format!("redis://{USER}:{mistyped}@127.0.0.1:{port}/"),
        format!("redis://{USER}:{mistyped}@127.0.0.1:1/"),
        format!("redis://{USER}:{mistyped}@@127.0.0.1:port/"),
        format!("redis:/{USER}:{mistyped}@127.0.0.1:{port}"),
        format!("{USER}:{mistyped}@127.0.0.1:{port}"),
        format!("http://{USER}:{mistyped}@127.0.0.1:{port}"),
        format!("rediss://{USER}:{mistyped}@127.0.0.1:{port}/"),
        format!("redis://{USER}:{mistyped}/x@127.0.0.1:{port}/x"),
        format!(
            "redis-sentinel://{USER}:{mistyped}@127.0.0.1:{port}/?sentinelServiceName=main&sentinelPassword={mistyped}"
        ),
        format!("redis-cluster://{USER}:{mistyped}@127.0.0.1:{port}/"),
    ];
    for url in &urls {
        for command in
            [&["relay"][..], &["list", "orders"], &["doctor"], &["config", "show"], &["config", "check"]]
        {
            let launch =
                Launch::new(command).env("OVERDUE_REDIS_URL", url).env("OVERDUE_LOG_FILTER", "trace");
            let finished = launch
                .env("OVERDUE_RELAY_LISTEN", "off")
                .env("OVERDUE_REDIS_CONNECT_DEADLINE", "300ms")
                .run();
            assert!(finished.code != Some(0) || command[0] == "config", "{url}: {finished:?}");
            assert_clean(
                &format!("{command:?} at {url}"),
                &format!("{}\n{}", finished.stdout, finished.stderr),
            );
        }
    }
    // A webhook with a login, or with a secret that is none.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    fs::write(&file, format!("whsec_{mistyped}!\n")).unwrap();
    let file = file.display().to_string();
    for hook in [
        &["--webhook", &format!("http://{USER}:{mistyped}@127.0.0.1:1/")][..],
        &["--webhook", "http://127.0.0.1:1/", "--webhook-secret-file", &file],
    ] {
        let finished = Launch::consume(&redis.url(), QUEUE, GROUP).args(hook).run();
        assert_eq!(finished.code, Some(2), "{finished:?}");
        assert_clean("the webhook's error", &finished.stderr);
    }
}

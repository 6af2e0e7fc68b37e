//! A start that can't succeed ends at once: one line that says what to do, and the right exit code.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::thread;
use std::time::{Duration, Instant};

use overdue_tests::redis::Options;
use overdue_tests::{Launch, Redis};

/// Fails unless both services end like this, with one line that holds all of `texts`.
pub(crate) fn assert_refused(url: &str, more: &[&str], code: i32, texts: &[&str]) {
    for launch in [Launch::relay(url), Launch::consume(url, "orders", "billing").args(["--print"])] {
        let begun = Instant::now();
        let finished = launch.args(more).run();
        assert_eq!(finished.code, Some(code), "{finished:?}");
        let line = finished.stderr.trim_end();
        assert!(line.starts_with("overdue: ") && line.lines().count() == 1, "{line}");
        assert!(texts.iter().all(|text| line.contains(text)), "{texts:?} are not all in\n{line}");
        assert!(!line.contains("hunter2"), "{line}");
        assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    }
}

/// A server that answers every command with `answer`.
fn fake(answer: &'static str) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let addr = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(n @ 1..) = stream.read(&mut bytes) {
                    // Several commands may come at once; each begins with its number of words.
                    let text = String::from_utf8_lossy(&bytes[..n]);
                    let commands = text.split("*").filter(|command| !command.is_empty());
                    let answers: String = commands.map(|command| answer_to(command, answer)).collect();
                    if stream.write_all(answers.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    addr
}

fn answer_to<'a>(command: &str, answer: &'a str) -> &'a str {
    // What the library asks while it connects.
    match answer {
        "old" if command.contains("INFO") => "$30\r\n# Server\r\nredis_version:5.0.14\r\n",
        "old" if command.contains("PING") => "+PONG\r\n",
        "old" => "+OK\r\n",
        other => other,
    }
}

#[test]
fn nobody_there() {
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let url = format!("redis://:hunter2@127.0.0.1:{port}/");
    assert_refused(&url, &[], 3, &[&format!("redis://127.0.0.1:{port}/"), "is it running there?"]);
}

#[test]
fn a_host_that_is_not_there() {
    assert_refused("redis://no-such-host.invalid/", &[], 3, &["no-such-host.invalid"]);
}

#[test]
fn a_wrong_password_and_none() {
    let redis = Redis::with(Options { password: Some("right".into()), ..Options::default() });
    let url = format!("redis://:hunter2@127.0.0.1:{}/", redis.port());
    assert_refused(&url, &[], 3, &["check user and password"]);
    assert_refused(&redis.url(), &[], 3, &["it asks for a password"]);
}

#[test]
fn not_a_redis() {
    let addr = fake("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
    assert_refused(&format!("redis://{addr}/"), &[], 3, &["is this the address of a Redis"]);
}

#[test]
fn a_redis_that_is_too_old() {
    let addr = fake("old");
    assert_refused(&format!("redis://{addr}/"), &[], 3, &["5.0.14", "upgrade it to 6.2 or later"]);
}

#[test]
fn a_server_that_takes_connections_and_says_nothing() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("redis://{}/", listener.local_addr().unwrap());
    assert_refused(&url, &[], 3, &["no answer"]);
}

#[test]
fn no_rights() {
    let users = vec![
        "reader on >hunter2 ~* &* +@read +ping +info +client|setname".into(),
        "stranger on >hunter2 ~other:* &* +@all".into(),
    ];
    let redis = Redis::with(Options { users, ..Options::default() });
    for user in ["reader", "stranger"] {
        let url = format!("redis://{user}:hunter2@127.0.0.1:{}/", redis.port());
        assert_refused(&url, &[], 3, &["NOPERM", "give the user the rights"]);
    }
}

#[test]
fn no_right_to_listen_names_the_rule() {
    let users = vec!["quiet on >hunter2 ~* resetchannels &overdue:* +@all".into()];
    let redis = Redis::with(Options { users, ..Options::default() });
    let url = format!("redis://quiet:hunter2@127.0.0.1:{}/2", redis.port());
    let finished = Launch::relay(&url).run();
    assert_eq!(finished.code, Some(3), "{finished:?}");
    let last = finished.stderr.lines().last().unwrap_or_default();
    assert!(last.starts_with("overdue: ") && last.contains("&__keyevent@2__:expired"), "{finished:?}");
}

#[test]
fn wrong_settings() {
    let redis = Redis::start();
    let url = redis.url();
    let busy = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let taken = format!("127.0.0.1:{}", busy.local_addr().unwrap().port());
    let finished = Launch::new(["relay", "--redis", &url, "--listen", &taken]).run();
    assert_eq!(finished.code, Some(2), "{finished:?}");
    assert!(
        finished.stderr.starts_with(&format!("overdue: cannot serve metrics on {taken}: ")),
        "{finished:?}"
    );
    assert_eq!(finished.stderr.lines().count(), 1, "{finished:?}");
    for (more, text) in [
        (["--namespace", "Bad"], "not a namespace"),
        (["--log-filter", "loud"], "not a log filter"),
        (["--ca-file", "/no/such"], "cannot read /no/such"),
    ] {
        let finished = Launch::relay(&url).args(more).run();
        assert_eq!(finished.code, Some(2), "{finished:?}");
        assert!(finished.stderr.contains(text), "{finished:?}");
    }
    assert_refused("http://127.0.0.1/", &[], 2, &["redis://"]);
    let finished = Launch::relay(&url).env("OVERDUE_RELAY_LISTN", "off").run();
    assert_eq!(finished.code, Some(2));
    assert!(finished.stderr.contains("OVERDUE_RELAY_LISTN: there is no such setting"), "{finished:?}");
}

#[test]
fn a_queue_in_a_newer_format() {
    let redis = Redis::start();
    let info =
        overdue_protocol::QueueInfo { partitions: 1, created_ms: 1, format: 99, paused: false, history: 0 }
            .encode();
    redis.call(&[b"HSET".as_slice(), b"overdue:queues", b"orders", &info]);
    assert_refused(&redis.url(), &[], 3, &["orders", "format 99", "upgrade this program"]);
}

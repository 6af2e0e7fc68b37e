//! The contract of `consume --exec`, and of `--print`, with real commands.

mod keys;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use overdue::Raw;
use overdue_protocol::Keyspace;
use overdue_tests::{FiredKey, Launch, Redis, Wire, assert_balanced, eventually};

use crate::scene::{Scene, alive, handled, runs};
use crate::stage::{QUEUE, end, ids, in_hand, partition, running, settled, stop, up};

const RETRY_WAIT: &str = "OVERDUE_CONSUME_RETRY_WAIT";
const PROBE: &str = "OVERDUE_CONSUME_PROBE_MAX";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_gets_the_payload_on_stdin_and_all_the_rest_in_its_environment() {
    let scene = Scene::new().await;
    let out = scene.file("out");
    let script = format!(
        "cat > {out}.tmp; echo >> {out}.tmp; env | grep ^OVERDUE_ | sort >> {out}.tmp; mv {out}.tmp {out}"
    );
    let consumer = up(running(&scene.redis.url(), &script, &[]).env("OVERDUE_LOG_FILTER", "info"));
    let payload = Raw::new("a\tpayload");
    scene.producer.arm_with(["order 1/ü"], Duration::ZERO, false, &payload).await;
    eventually("it has run", async || Path::new(&out).exists()).await;
    let said = fs::read_to_string(&out).unwrap();
    let armed = scene.producer.ledger.judge().lost.remove(0);
    let generation = armed.generation;
    let mut lines = said.lines();
    assert_eq!(lines.next(), Some("a\tpayload"));
    for expected in [
        "OVERDUE_ATTEMPT=1".to_owned(),
        "OVERDUE_GENERATION=".to_owned() + &generation.to_string(),
        "OVERDUE_GROUP=billing".to_owned(),
        "OVERDUE_ID=order 1/ü".to_owned(),
        "OVERDUE_ID_BASE64=b3JkZXIgMS/DvA==".to_owned(),
        format!("OVERDUE_KEY=orders/order%201%2F%C3%BC/{generation}"),
        "OVERDUE_LOG_FILTER=info".to_owned(),
        "OVERDUE_QUEUE=orders".to_owned(),
        "OVERDUE_SOURCE=index".to_owned(),
    ] {
        assert!(said.lines().any(|line| line == expected), "no {expected:?} in\n{said}");
    }
    assert!(said.contains("\nOVERDUE_DUE_MS=17") || said.contains("\nOVERDUE_DUE_MS=18"), "{said}");
    settled(&scene.redis, 1).await;
    scene.finish(&consumer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_id_that_is_no_text_is_there_in_base64_alone() {
    let scene = Scene::new().await;
    let out = scene.file("out");
    let script = format!("env | grep ^OVERDUE_ID > {out}.tmp; mv {out}.tmp {out}");
    let consumer = up(running(&scene.redis.url(), &script, &[]).env("OVERDUE_ID", "inherited"));
    scene.producer.arm([b"\xff\n"], Duration::ZERO, false).await;
    eventually("it has run", async || Path::new(&out).exists()).await;
    assert_eq!(fs::read_to_string(&out).unwrap(), "OVERDUE_ID_BASE64=/wo=\n");
    settled(&scene.redis, 1).await;
    scene.finish(&consumer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_exit_code_does_what_the_contract_says() {
    let scene = Scene::new().await;
    let out = scene.file("out");
    // The id is the exit code at the first attempt; the second is done.
    let script = format!(
        "date +\"$OVERDUE_ID $OVERDUE_ATTEMPT %s%3N\" >> {out}; [ $OVERDUE_ATTEMPT = 2 ] && exit 0; \
         echo \"no seat $OVERDUE_ID\" >&2; echo 'retry-after: 2500ms'; \
         [ $OVERDUE_ID = 9 ] && kill -9 $$; exit $OVERDUE_ID"
    );
    let consumer = up(running(&scene.redis.url(), &script, &[]).env(RETRY_WAIT, "300ms"));
    scene.producer.arm(["0", "1", "9", "65", "75", "126", "127", "255"], Duration::ZERO, false).await;
    settled(&scene.redis, 1).await;
    let text = fs::read_to_string(&out).unwrap();
    let at = |id: &str, attempt: &str| {
        let head = format!("{id} {attempt} ");
        text.lines().find_map(|line| line.strip_prefix(&head)?.parse::<u64>().ok())
    };
    for id in ["1", "9", "126", "127", "255"] {
        let waited = at(id, "2").unwrap() - at(id, "1").unwrap();
        assert!((150..2_000).contains(&waited), "{id}: {waited}\n{text}");
    }
    let waited = at("75", "2").unwrap() - at("75", "1").unwrap();
    assert!((2_500..5_000).contains(&waited), "{waited}");
    assert_eq!((at("0", "2"), at("65", "2")), (None, None));
    let dead = scene.dead();
    assert_eq!(dead.len(), 1, "{dead:?}");
    assert_eq!(dead[0], ["65", "rejected", "no seat 65"]);
    scene.finish(&consumer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_2_kib_of_stderr_are_the_reason_of_a_dead_letter() {
    let scene = Scene::new().await;
    let script = "head -c 1000000 /dev/zero | tr '\\0' x >&2; echo the end >&2; \
                  head -c 1000000 /dev/zero; exit 3";
    let consumer = up(running(&scene.redis.url(), script, &["--attempts", "1"]));
    scene.producer.arm(["loud"], Duration::ZERO, false).await;
    eventually("it is a dead letter", async || scene.dead().len() == 1).await;
    let [id, reason, detail] = scene.dead().remove(0);
    assert_eq!([&id, &reason], ["loud", "attempts"]);
    assert!(detail.len() <= 2048 && detail.len() > 2000 && detail.ends_with("xxthe end"), "{detail}");
    scene.finish(&consumer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_reads_nothing_of_a_large_payload_is_done_all_the_same() {
    let scene = Scene::new().await;
    let consumer = up(running(&scene.redis.url(), "exit 0", &[]));
    scene.producer.arm_with(ids("t", 5), Duration::ZERO, false, &Raw::new(vec![b'x'; 1 << 20])).await;
    settled(&scene.redis, 1).await;
    assert!(scene.dead().is_empty());
    scene.finish(&consumer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_past_its_limit_is_ended_with_its_children_and_tried_again() {
    let scene = Scene::new().await;
    let out = scene.file("out");
    let script = format!("[ $OVERDUE_ATTEMPT = 2 ] && exit 0; sleep 60 & echo $! > {out}; wait");
    let consumer = up(running(&scene.redis.url(), &script, &["--limit", "3s"]).env(RETRY_WAIT, "100ms"));
    scene.producer.arm(["slow"], Duration::ZERO, false).await;
    eventually("its child runs", async || runs(&out)).await;
    settled(&scene.redis, 1).await;
    assert!(!alive(fs::read_to_string(&out).unwrap().trim()));
    scene.finish(&consumer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_ignores_sigterm_is_killed_10_s_later() {
    let scene = Scene::new().await;
    let out = scene.file("out");
    let script = format!("trap '' TERM; echo $$ > {out}; sleep 60 & wait; sleep 60");
    let consumer = up(running(&scene.redis.url(), &script, &["--grace", "0s"]));
    scene.producer.arm(["deaf"], Duration::ZERO, false).await;
    in_hand(&scene.redis, 1).await;
    eventually("it runs", async || runs(&out)).await;
    let told = Instant::now();
    end(&consumer, Duration::from_secs(15));
    let took = told.elapsed();
    assert!((10..14).contains(&took.as_secs()), "{took:?}");
    assert!(!alive(fs::read_to_string(&out).unwrap().trim()));
    let heir = up(running(&scene.redis.url(), "[ $OVERDUE_ATTEMPT = 1 ]", &[]));
    settled(&scene.redis, 1).await;
    assert!(scene.dead().is_empty());
    scene.finish(&heir);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_signal_kills_the_commands_and_ends_at_once() {
    let scene = Scene::new().await;
    let out = scene.file("out");
    let script = format!("trap '' TERM; echo $$ > {out}; sleep 60");
    let consumer = up(running(&scene.redis.url(), &script, &["--lease", "1s"]));
    scene.producer.arm(["deaf"], Duration::ZERO, false).await;
    eventually("it runs", async || runs(&out)).await;
    consumer.sigterm();
    // The first signal is taken when reading has stopped: the consumer is not on the list of readers any more.
    eventually("it has heard the signal", async || {
        !scene.redis.call(&["CLIENT", "LIST"]).text().contains("cmd=xreadgroup")
    })
    .await;
    consumer.sigterm();
    assert_eq!(consumer.wait_exit(Duration::from_secs(2)).code(), Some(130));
    eventually("the command is gone", async || !alive(fs::read_to_string(&out).unwrap().trim())).await;
    let heir = up(running(&scene.redis.url(), "true", &["--lease", "1s"]));
    settled(&scene.redis, 1).await;
    scene.finish(&heir);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_of_a_lost_lease_is_ended() {
    let scene = Scene::new().await;
    let out = scene.file("out");
    let script = format!("echo $$ > {out}; exec sleep 60");
    let consumer = up(running(&scene.redis.url(), &script, &["--lease", "1s"]));
    scene.producer.arm(["stolen"], Duration::ZERO, false).await;
    eventually("it runs", async || runs(&out)).await;
    let stream = partition(0).stream();
    let entry = Wire::connect(&scene.redis).xrange(&stream).unwrap()[0].id.to_string();
    scene.redis.call(&[b"XCLAIM".as_slice(), &stream, b"billing", b"thief", b"0", entry.as_bytes()]);
    eventually("it is ended", async || !alive(fs::read_to_string(&out).unwrap().trim())).await;
    // The thief never handles it: after the lease it comes back.
    eventually("it runs again", async || runs(&out)).await;
    scene.redis.call(&[b"XCLAIM".as_slice(), &stream, b"billing", b"thief", b"0", entry.as_bytes()]);
    scene.redis.call(&[b"XGROUP".as_slice(), b"DELCONSUMER", &stream, b"billing", b"thief"]);
    scene.redis.call(&[b"DEL".as_slice(), &stream]);
    eventually("it is ended too", async || !alive(fs::read_to_string(&out).unwrap().trim())).await;
    stop(&consumer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_may_be_overdue_itself() {
    let scene = Scene::new().await;
    let binary = overdue_tests::binary::find().unwrap();
    let script = format!("{} schedule follow-ups \"$OVERDUE_ID\" --in 1h", binary.display());
    let url = scene.redis.url();
    let consumer = up(running(&url, &script, &[]).env("OVERDUE_REDIS_URL", &url));
    scene.producer.arm(["a"], Duration::ZERO, false).await;
    scene.fire(&[FiredKey::new("b", 7).with("flaw", "no_value").with("cause", "evicted")]);
    settled(&scene.redis, 1).await;
    let index = Keyspace::default().partition(&"follow-ups".parse().unwrap(), 0).index();
    assert_eq!(scene.redis.count(&[b"ZCARD".as_slice(), &index]), 2);
    scene.finish(&consumer);
}

#[test]
fn a_command_that_cannot_be_run_is_a_usage_error() {
    let redis = Redis::start();
    let consume =
        |command: &str| Launch::consume(&redis.url(), QUEUE, "g").args(["--exec", "--", command]).run();
    for (command, text) in [
        ("no-such-command", "overdue: cannot run no-such-command: there is no such command in PATH"),
        ("/no/such", "overdue: cannot run /no/such: there is no such file"),
        ("/etc/passwd", "overdue: cannot run /etc/passwd: /etc/passwd is not executable"),
        ("/etc", "overdue: cannot run /etc: /etc is a folder"),
    ] {
        let finished = consume(command);
        assert_eq!(finished.code, Some(2), "{finished:?}");
        assert!(finished.stderr.starts_with(text) && finished.stderr.lines().count() == 1, "{finished:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_vanishes_later_is_out_of_reach_and_costs_no_attempt() {
    let scene = Scene::new().await;
    let file = scene.write("command", "#!/bin/sh\nexit 0\n");
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let launch = Launch::consume(&scene.redis.url(), QUEUE, "billing").args(["--attempts", "1"]);
    let consumer = up(launch.env(PROBE, "1s").args(["--exec", "--", &file]));
    fs::rename(&file, format!("{file}.away")).unwrap();
    scene.producer.arm(ids("t", 5), Duration::ZERO, false).await;
    handled(&consumer, "unreachable", 1.0).await;
    fs::rename(format!("{file}.away"), &file).unwrap();
    settled(&scene.redis, 1).await;
    assert!(scene.dead().is_empty());
    scene.finish(&consumer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_stdout_stops_printing_and_loses_nothing() {
    let scene = Scene::new().await;
    // `head` takes one line and goes.
    let binary = overdue_tests::binary::find().unwrap();
    let url = scene.redis.url();
    let script = format!(
        "{} consume --redis {url} --queue orders --group billing --print --json --listen off --concurrency 1 \
         2>{} | head -n 1",
        binary.display(),
        scene.file("log")
    );
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &script]).env_remove("OVERDUE_BIN").stdout(std::process::Stdio::piped());
    let shell = shell.spawn().unwrap();
    scene.producer.arm(ids("t", 20), Duration::from_millis(500), false).await;
    let output = tokio::task::spawn_blocking(|| shell.wait_with_output().unwrap()).await.unwrap();
    let log = fs::read_to_string(scene.file("log")).unwrap();
    assert!(log.contains("stdout can't be written to; stopping"), "{log}");
    let heir = up(crate::stage::printing(&url));
    settled(&scene.redis, 1).await;
    stop(&heir);
    // What the pipe took, and nobody read from it, counts as printed.
    let first = String::from_utf8(output.stdout).unwrap();
    let printed = heir.stdout().lines().count();
    assert!(first.lines().count() == 1 && printed >= 15, "{printed}\n{log}");
    assert_balanced(&scene.redis, QUEUE, 1);
    stop(&scene.relay);
}

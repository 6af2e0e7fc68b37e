//! The contract of `consume --pipe`: commands that stay, and what becomes of their timeouts when they do not.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};

use overdue_tests::{Launch, Wire, eventually};

use crate::scene::{Scene, alive, handled, runs};
use crate::stage::{GROUP, QUEUE, ids, in_hand, partition, pending, settled, stop, up};

const RETRY_WAIT: &str = "OVERDUE_CONSUME_RETRY_WAIT";
const PROBE: &str = "OVERDUE_CONSUME_PROBE_MAX";

/// What a team without Rust writes.
const WORKER: &str = r#"
import json, os, sys
done = open(os.environ["DONE"], "a")
for line in sys.stdin:
    timeout = json.loads(line)
    print(os.getpid(), timeout["key"], timeout["attempt"], json.dumps(timeout.get("id")), file=done, flush=True)
    answer = act(timeout) or {}
    print(json.dumps({"key": timeout["key"], "outcome": "done", **answer}), flush=True)
"#;

/// A consumer whose commands do `act`, the body of a Python function of the timeout, and note in `done` what they were
/// handed.
fn piping(scene: &Scene, act: &str, more: &[&str]) -> Launch {
    let act: Vec<_> = act.lines().map(|line| format!("    {line}\n")).collect();
    let head = "import os, time\nserved = []\ndef act(timeout):\n";
    let script = scene.write("worker.py", &format!("{head}{}{WORKER}", act.concat()));
    let launch =
        Launch::consume(&scene.redis.url(), QUEUE, GROUP).args(more).args(["--pipe", "--", "python3"]);
    launch.args([script]).env("DONE", scene.file("done")).env(RETRY_WAIT, "100ms")
}

/// Who was handed what: process, attempt, id.
fn notes(scene: &Scene) -> Vec<(u32, u32, String)> {
    let text = fs::read_to_string(scene.file("done")).unwrap_or_default();
    let note = |line: &str| {
        let words: Vec<_> = line.splitn(4, ' ').collect();
        let id: Option<String> = serde_json::from_str(words[3]).unwrap();
        (words[0].parse().unwrap(), words[2].parse().unwrap(), id.unwrap_or_default())
    };
    text.lines().map(note).collect()
}

/// How often an id was handed to somebody.
fn times(scene: &Scene) -> BTreeMap<String, usize> {
    notes(scene).into_iter().fold(BTreeMap::new(), |mut times, (_, _, id)| {
        *times.entry(id).or_default() += 1;
        times
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_of_ten_lines_handles_all_and_no_more_of_them_run_than_at_once() {
    let scene = Scene::new().await;
    let consumer = up(piping(&scene, "return None", &["--concurrency", "4"]));
    scene.producer.arm(ids("t", 300), Duration::ZERO, false).await;
    scene.producer.arm([b"\xff".as_slice(), "a \u{2028}\n\"ü".as_bytes()], Duration::ZERO, false).await;
    settled(&scene.redis, 1).await;
    let workers: BTreeSet<_> = notes(&scene).iter().map(|(pid, ..)| *pid).collect();
    assert!((1..=4).contains(&workers.len()), "{workers:?}");
    assert!(times(&scene).values().all(|&times| times == 1));
    handled(&consumer, "done", 302.0).await;
    scene.finish(&consumer);
    assert!(!workers.iter().any(|pid| alive(&pid.to_string())));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_outcome_does_what_it_says() {
    let scene = Scene::new().await;
    let act = r#"
answers = {
    "later": {"outcome": "retry", "after_ms": 1500, "reason": "busy"},
    "again": {"outcome": "retry"},
    "never": {"outcome": "reject", "reason": "no such order"},
}
return answers.get(timeout["id"]) if timeout["attempt"] == 1 else None"#;
    let consumer = up(piping(&scene, act, &[]));
    scene.producer.arm(["fine", "later", "again", "never"], Duration::ZERO, false).await;
    let since = Instant::now();
    settled(&scene.redis, 1).await;
    assert!(since.elapsed() > Duration::from_millis(1400), "{:?}", since.elapsed());
    let times = times(&scene);
    assert_eq!(["fine", "later", "again", "never"].map(|id| times[id]), [1, 2, 2, 1]);
    assert_eq!(scene.dead(), [["never", "rejected", "no such order"].map(str::to_owned)]);
    scene.finish(&consumer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_dies_takes_only_its_own_timeout_with_it() {
    let scene = Scene::new().await;
    let act = r#"
if timeout["id"] == "poison":
    print("out of seats", file=sys.stderr, flush=True)
    os._exit(7)
time.sleep(0.02)"#;
    let consumer = up(piping(&scene, act, &["--concurrency", "4", "--attempts", "3"]));
    scene.producer.arm(ids("t", 100), Duration::ZERO, false).await;
    scene.producer.arm(["poison"], Duration::ZERO, false).await;
    scene.producer.arm(ids("u", 100), Duration::ZERO, false).await;
    settled(&scene.redis, 1).await;
    let mut times = times(&scene);
    assert_eq!(times.remove("poison"), Some(3));
    assert!(times.len() == 200 && times.values().all(|&times| times == 1), "{times:?}");
    let detail = "the command ended instead of answering: out of seats".to_owned();
    assert_eq!(scene.dead(), [["poison".to_owned(), "attempts".to_owned(), detail]]);
    scene.finish(&consumer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_may_leave_between_two_timeouts_and_costs_none_an_attempt() {
    let scene = Scene::new().await;
    let act = r#"
served.append(1)
if len(served) == 5:
    print(json.dumps({"key": timeout["key"], "outcome": "done"}), flush=True)
    sys.exit(0)"#;
    let consumer = up(piping(&scene, act, &["--concurrency", "2", "--attempts", "1"]));
    scene.producer.arm(ids("t", 100), Duration::ZERO, false).await;
    settled(&scene.redis, 1).await;
    assert!(scene.dead().is_empty(), "{:?}", scene.dead());
    let workers: BTreeSet<_> = notes(&scene).iter().map(|(pid, ..)| *pid).collect();
    assert!(workers.len() >= 20, "{workers:?}");
    scene.finish(&consumer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_answer_ends_the_command_and_is_the_reason() {
    let scene = Scene::new().await;
    let act = r#"
if timeout["id"] == "garbage":
    print("hello")
if timeout["id"] == "much":
    print("x" * 3_000_000)
return {"other": {"key": "orders/b/1"}, "word": {"outcome": "ok"}}.get(timeout["id"])"#;
    let consumer = up(piping(&scene, act, &["--concurrency", "1", "--attempts", "1"]));
    scene
        .producer
        .arm(["other", "fine-1", "word", "fine-2", "garbage", "fine-3", "much"], Duration::ZERO, false)
        .await;
    settled(&scene.redis, 1).await;
    let mut dead = scene.dead();
    dead.sort();
    let expected = [
        ("garbage", "is no answer (expected value at line 1 column 1; logs belong on stderr): hello"),
        ("much", "answered with a line of more than 1 MiB"),
        ("other", "the command answered for another key, orders/b/1"),
        ("word", "unknown variant `ok`"),
    ];
    assert_eq!(dead.len(), expected.len(), "{dead:?}");
    for ([id, reason, detail], (expected_id, part)) in dead.iter().zip(expected) {
        assert_eq!((id.as_str(), reason.as_str()), (expected_id, "attempts"));
        assert!(detail.contains(part), "{detail}");
    }
    // None of them worked on anything after that.
    let notes = notes(&scene);
    for (n, (pid, _, id)) in notes.iter().enumerate() {
        let later = notes[n + 1..].iter().any(|(other, ..)| other == pid);
        assert!(id.starts_with("fine") || !later, "{id} in {notes:?}");
    }
    scene.finish(&consumer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_hangs_is_ended_at_its_limit_with_all_it_started() {
    let scene = Scene::new().await;
    let child = scene.file("child");
    let act = format!(
        "if timeout['attempt'] == 1: os.system('sleep 60 & echo $! > {child}.tmp; mv {child}.tmp {child}; wait')"
    );
    let consumer = up(piping(&scene, &act, &["--limit", "3s"]));
    scene.producer.arm(["slow"], Duration::ZERO, false).await;
    eventually("its child runs", async || runs(&child)).await;
    settled(&scene.redis, 1).await;
    assert!(!runs(&child));
    assert_eq!(times(&scene)["slow"], 2);
    scene.finish(&consumer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_the_stop_the_busy_get_the_grace_and_the_idle_leave_at_once() {
    let scene = Scene::new().await;
    let act = "time.sleep({'slow': 60, 'soon': 2}.get(timeout['id'], 0.2))";
    let consumer = up(piping(&scene, act, &["--concurrency", "8", "--grace", "4s"]));
    scene.producer.arm(ids("t", 6), Duration::ZERO, false).await;
    settled(&scene.redis, 1).await;
    scene.producer.arm(["slow", "soon"], Duration::ZERO, false).await;
    in_hand(&scene.redis, 2).await;
    let of = |id: &str| notes(&scene).into_iter().find(|(_, _, noted)| noted == id);
    let (slow, soon) = eventually("both are at work", async || of("slow").zip(of("soon"))).await;
    let idle: Vec<_> = notes(&scene)
        .into_iter()
        .map(|(pid, ..)| pid)
        .filter(|pid| ![slow.0, soon.0].contains(pid))
        .collect();
    assert!(!idle.is_empty());
    let told = Instant::now();
    consumer.sigterm();
    eventually("the idle are gone", async || !idle.iter().any(|pid| alive(&pid.to_string()))).await;
    assert!(told.elapsed() < Duration::from_secs(2), "{:?}", told.elapsed());
    assert!(alive(&slow.0.to_string()) && pending(&scene.redis) > 0);
    assert_eq!(consumer.wait_exit(Duration::from_secs(8)).code(), Some(0), "{}", consumer.stderr());
    assert!(told.elapsed() > Duration::from_secs(3), "{:?}", told.elapsed());
    assert!(![slow.0, soon.0].iter().any(|pid| alive(&pid.to_string())));
    // `soon` was done; `slow` was handed back at the same attempt.
    let heir = up(piping(&scene, "return None", &[]));
    settled(&scene.redis, 1).await;
    let again: Vec<_> = notes(&scene).into_iter().map(|(_, attempt, id)| (id, attempt)).skip(8).collect();
    assert_eq!(again, [("slow".to_owned(), 1)]);
    scene.finish(&heir);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_of_a_lost_lease_is_ended() {
    let scene = Scene::new().await;
    let consumer = up(piping(&scene, "if timeout['attempt'] == 1: time.sleep(60)", &["--lease", "1s"]));
    scene.producer.arm(["stolen"], Duration::ZERO, false).await;
    let worker = eventually("it works", async || notes(&scene).pop()).await;
    let stream = partition(0).stream();
    let entry = Wire::connect(&scene.redis).xrange(&stream).unwrap()[0].id.to_string();
    scene.redis.call(&[b"XCLAIM".as_slice(), &stream, b"billing", b"thief", b"0", entry.as_bytes()]);
    eventually("it is ended", async || !alive(&worker.0.to_string())).await;
    stop(&consumer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_is_not_there_ends_the_start_and_one_that_vanishes_later_costs_no_attempt() {
    let scene = Scene::new().await;
    let url = scene.redis.url();
    let launch = |command: &str| {
        Launch::consume(&url, QUEUE, GROUP).args(["--attempts", "1", "--pipe", "--", command])
    };
    let finished = launch("/no/such").run();
    let line = "overdue: cannot run /no/such: there is no such file\n";
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(2), line));
    let answer = r#"read -r l; k=${l#*'"key":"'}; echo "{\"key\":\"${k%%'"'*}\",\"outcome\":\"done\"}""#;
    let file = scene.write("command", &format!("#!/bin/sh\nwhile {answer}; do :; done\n"));
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let consumer = up(launch(&file).env(PROBE, "1s"));
    fs::rename(&file, format!("{file}.away")).unwrap();
    scene.producer.arm(ids("t", 5), Duration::ZERO, false).await;
    handled(&consumer, "unreachable", 1.0).await;
    fs::rename(format!("{file}.away"), &file).unwrap();
    settled(&scene.redis, 1).await;
    assert!(scene.dead().is_empty(), "{:?}", scene.dead());
    scene.finish(&consumer);
}

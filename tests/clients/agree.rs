//! Python, PHP and the command line arm, move and cancel side by side: the client in Rust sees what they say, and the
//! books balance.

use std::collections::BTreeMap;
use std::thread;

use overdue::{Client, Encoding, Queue, Raw};
use overdue_protocol::QueueName;
use overdue_tests::{Launch, Redis, assert_balanced};
use serde_json::{Value, json};

use crate::language::Language;
use crate::speaker::Speaker;

const TIMERS: usize = 1_000;
const PARTITIONS: u32 = 4;
const HOUR: u64 = 3_600_000;

/// Braces, slashes, blanks, UTF-8 and the end of a line, in ids of many lengths.
fn id(hand: &str, n: usize) -> String {
    match n % 5 {
        0 => format!("{hand}/{n}"),
        1 => format!("{{{hand}}}:{n} {{}}"),
        2 => format!("{hand} Größe {n} 🎫"),
        3 => format!("{hand}\n{n}\t%2F"),
        _ => format!("{hand}-{n}-{}", "x".repeat(n % 480)),
    }
}

/// Generation and deadline of each id.
type Timers = BTreeMap<String, (u64, u64)>;

/// What each hand does next: arms all with this mode and deadline; or cancels all.
#[derive(Clone, Copy)]
enum Turn {
    Arm(&'static str, u64),
    Cancel,
}

fn read(answer: &Value) -> (u64, u64) {
    let number = |name: &str| answer[name].as_u64().unwrap_or_else(|| panic!("{answer}"));
    (number("generation"), number("due_ms"))
}

fn by_language(language: Language, redis: &Redis, turn: Turn) -> Timers {
    let mut speaker = Speaker::patient(language, redis.addr(), 20);
    let mut act = |id: &str| {
        let answer = match turn {
            Turn::Cancel => speaker.cancel(id.as_bytes()),
            Turn::Arm(mode, due) => {
                let more = json!({"at": due, "mode": mode, "encoding": "text"});
                speaker.schedule(id.as_bytes(), format!("{mode} {id}").as_bytes(), &more)
            }
        };
        let timer = read(&answer);
        if let Turn::Arm(..) = turn {
            assert_eq!(read(&speaker.get(id.as_bytes())), timer, "{language:?} {id}");
        }
        timer
    };
    (0..TIMERS).map(|n| id(&format!("{language:?}"), n)).map(|id| (id.clone(), act(&id))).collect()
}

fn run(redis: &Redis, args: &[&str]) -> Vec<Value> {
    let finished = Launch::new(["--redis", &redis.url(), "--json"]).args(args).run();
    assert_eq!(finished.code, Some(0), "{args:?}: {finished:?}");
    finished.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn by_command_line(redis: &Redis, turn: Turn) -> Timers {
    let ids: Vec<_> = (0..TIMERS).map(|n| id("command line", n)).collect();
    let work = |ids: &[String]| -> Vec<(String, (u64, u64))> {
        match turn {
            Turn::Cancel => {
                let args: Vec<_> =
                    ["cancel", "orders"].into_iter().chain(ids.iter().map(String::as_str)).collect();
                let told = run(redis, &args);
                told.iter().map(|one| (one["id"].as_str().unwrap().to_owned(), read(one))).collect()
            }
            Turn::Arm(mode, due) => {
                let arm = |id: &String| {
                    let (due, payload) = (due.to_string(), format!("{mode} {id}"));
                    let mut args = vec!["schedule", "orders", id, "--at", &due, "--payload", &payload];
                    args.extend((mode == "later").then_some("--only-later"));
                    (id.clone(), read(&run(redis, &args)[0]))
                };
                ids.iter().map(arm).collect()
            }
        }
    };
    thread::scope(|scope| {
        let hands: Vec<_> = ids.chunks(TIMERS / 4).map(|ids| scope.spawn(|| work(ids))).collect();
        hands.into_iter().flat_map(|hand| hand.join().unwrap()).collect()
    })
}

/// What all hands say.
fn all(redis: &Redis, turn: Turn) -> Timers {
    thread::scope(|scope| {
        let languages = Language::ALL.map(|language| scope.spawn(move || by_language(language, redis, turn)));
        let mut timers = by_command_line(redis, turn);
        for language in languages {
            timers.extend(language.join().unwrap());
        }
        assert_eq!(timers.len(), 3 * TIMERS);
        timers
    })
}

async fn assert_stand(queue: &Queue<Raw>, timers: &Timers, mode: &str, due: u64) {
    for (id, (generation, due_ms)) in timers {
        let found = queue.get(id).await.unwrap().unwrap_or_else(|| panic!("{id} is not armed"));
        assert_eq!((found.generation, found.due_ms, *due_ms), (*generation, due, due), "{id}");
        assert_eq!(found.payload, Raw::text(format!("{mode} {id}")).encoded(Encoding::Text), "{id}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn load_each_arms_moves_and_cancels_1000_timers_that_the_others_see_alike() {
    let redis = Redis::start();
    let client = Client::connect(redis.url()).await.unwrap();
    client.store().create_queue(&QueueName::new("orders").unwrap(), PARTITIONS).await.unwrap();
    let queue = client.queue::<Raw>("orders").await.unwrap();
    let now = redis.now_ms();
    for (mode, due) in [("upsert", now + HOUR), ("later", now + 2 * HOUR)] {
        let timers = tokio::task::block_in_place(|| all(&redis, Turn::Arm(mode, due)));
        assert_stand(&queue, &timers, mode, due).await;
        assert_eq!(queue.count().await.unwrap(), 3 * TIMERS as u64);
    }
    let cancelled = tokio::task::block_in_place(|| all(&redis, Turn::Cancel));
    assert!(cancelled.values().all(|(_, due)| *due == now + 2 * HOUR));
    assert_eq!(queue.count().await.unwrap(), 0);
    assert_balanced(&redis, "orders", PARTITIONS);
    let audit = Launch::new(["--redis", &redis.url(), "audit", "orders"]).run();
    assert_eq!(audit.code, Some(0), "{audit:?}");
}

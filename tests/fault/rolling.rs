//! A rolling restart under load. `OVERDUE_OLD_BIN` names the program of an older version, which is replaced by this one;
//! else this one replaces itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use overdue_tests::{Launch, Program, Redis, assert_balanced, binary, eventually};

use crate::stage::{Producer, QUEUE, end, ids, printing, settled};

/// Relays, consumers of timers, consumers of watched keys.
const PLACES: [usize; 3] = [2, 2, 2];

fn launch(redis: &Redis, kind: usize) -> Launch {
    let url = redis.url();
    match kind {
        0 => Launch::relay(&url).args(["--watch", "session:*=sessions"]),
        1 => printing(&url),
        _ => Launch::consume(&url, "sessions", "mail").args(["--print", "--json"]),
    }
}

fn start(redis: &Redis, kind: usize, program: &Path) -> Program {
    let program = launch(redis, kind).start_as(program);
    program.addr();
    program
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_all_are_replaced_one_by_one_nothing_is_lost_and_nothing_handled_twice() {
    let new = binary::find().unwrap_or_else(|error| panic!("{error}"));
    let old = std::env::var_os("OVERDUE_OLD_BIN").map_or_else(|| new.clone(), PathBuf::from);
    let redis = Redis::start();
    let kinds: Vec<_> = PLACES.iter().enumerate().flat_map(|(kind, n)| vec![kind; *n]).collect();
    let mut places: Vec<_> = kinds.iter().map(|&kind| (kind, start(&redis, kind, &old))).collect();
    let mut gone: Vec<(usize, Program)> = vec![];
    let producer = Producer::new(&redis.url()).await;

    let (mut sessions, mut turn) = (0, 0);
    let mut load = async |span: Duration| {
        let until = Instant::now() + span;
        while Instant::now() < until {
            producer.arm(ids(&format!("t{turn}"), 20), Duration::from_millis(300), turn % 2 == 0).await;
            for _ in 0..20 {
                let key = format!("session:{sessions}");
                redis.call(&["SET", &key, "alice", "PX", "700"]);
                sessions += 1;
            }
            turn += 1;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    load(Duration::from_secs(1)).await;
    for (kind, place) in &mut places {
        end(place, Duration::from_secs(10));
        load(Duration::from_millis(300)).await;
        let before = std::mem::replace(place, start(&redis, *kind, &new));
        gone.push((*kind, before));
        load(Duration::from_millis(700)).await;
    }
    settled(&redis, 1).await;
    let handled = |kind: usize| {
        let all = places.iter().chain(&gone).filter(move |(of, _)| *of == kind);
        all.map(|(_, program)| program.stdout()).collect::<String>()
    };
    eventually("each session is handled", async || {
        let n = handled(2).lines().count();
        if n >= sessions { Ok(()) } else { Err(format!("{n} of {sessions}")) }
    })
    .await;
    places.iter().for_each(|(_, program)| end(program, Duration::from_secs(10)));

    let mut runs = BTreeMap::<String, u32>::new();
    for line in handled(2).lines() {
        let timeout: serde_json::Value = serde_json::from_str(line).unwrap();
        *runs.entry(timeout["id"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    let twice: Vec<_> = runs.iter().filter(|(_, n)| **n != 1).collect();
    assert!(runs.len() == sessions && twice.is_empty(), "{} of {sessions}; {twice:?}", runs.len());
    let timers: Vec<_> = places.iter().chain(&gone).filter(|(kind, _)| *kind == 1).map(|(_, p)| p).collect();
    producer.read(&timers);
    producer.ledger.assert_met();
    assert_balanced(&redis, QUEUE, 1);
    assert_balanced(&redis, "sessions", 1);
}

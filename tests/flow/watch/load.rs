//! 20,000 extensions a second.

use std::time::{Duration, Instant};

use overdue_tests::eventually;

use super::stage::{count, fired, index, metrics, redis, rule, settings, watch};

const KEYS: u64 = 2_000;
const PER_S: u64 = 20_000;
const LASTS: Duration = Duration::from_secs(4);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn extensions_of_the_same_keys_are_looked_at_together() {
    let redis = redis();
    let watcher = watch(&redis.url(), vec![rule("s:*", "q")], settings("one")).await;
    let extend = "for i = 1, ARGV[1] do
        redis.call('SET', 's:' .. (ARGV[2] + i) % ARGV[3], 'v', 'PX', 3600000 + ARGV[2] + i) end";
    let mut connection = redis.connection().unwrap();
    let load = tokio::task::spawn_blocking(move || {
        let begun = Instant::now();
        let (mut done, keys) = (0, KEYS.to_string());
        while begun.elapsed() < LASTS {
            let owed = begun.elapsed().as_millis() as u64 * PER_S / 1_000;
            // By fives, and some milliseconds apart: nobody extends thousands of keys in one command.
            while done < owed {
                connection.call(&["EVAL", extend, "0", "5", &done.to_string(), &keys]).unwrap();
                done += 5;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        done
    });
    let mut short: usize = 0;
    while !load.is_finished() {
        redis.call(&["SET", &format!("s:short:{short}"), "v", "PX", "50"]);
        tokio::time::sleep(Duration::from_millis(20)).await;
        // Nobody nudges here, and by itself the server finds few keys that are due among many that are not.
        for at in short.saturating_sub(5)..short {
            redis.call(&["EXISTS", &format!("s:short:{at}")]);
        }
        short += 1;
    }
    let left: Vec<_> = (0..short).map(|at| format!("s:short:{at}")).collect();
    let ask: Vec<_> = ["EXISTS"].into_iter().chain(left.iter().map(String::as_str)).collect();
    eventually("all have ended", async || redis.count(&ask) == 0).await;
    let done = load.await.unwrap();
    let entries = fired(&redis, "q", short, &[&watcher]).await;
    let late = entries.iter().map(|entry| entry.fired_ms - entry.due_ms).max();
    assert!(late < Some(250), "{late:?} ms late at {done} extensions");
    for (key, due) in index(&redis, "q") {
        assert_eq!(due, redis.count(&[b"PEXPIRETIME", key.key.as_ref()]), "{key:?}");
    }
    assert_eq!(index(&redis, "q").len() as u64, KEYS);
    let looks = count("overdue_watch_batch_size_sum", &[("by", "look")]);
    let batch = looks / count("overdue_watch_batch_size_count", &[("by", "look")]);
    assert!(batch > 16.0, "small batches cost Redis five times as much: {batch} keys in {:?}", metrics());
    watcher.stop().await;
}

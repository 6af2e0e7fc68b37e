//! What is heard of watched keys, and what becomes of it.

use bytes::Bytes;
use overdue_protocol::entry::{EVICTED, Proof, Source};
use overdue_protocol::watch::{Glob, OnEvicted, Payload, Rule, WatchedKey};
use overdue_tests::{Mode, Proxy, Redis, eventually};

use super::stage::{
    assert_unique, count, end, entries, fired, gone, index, keyevent, metrics, redis, rule, scanned,
    server_feed, set, settings, watch,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_two_watchers_every_expiry_is_one_timeout() {
    let redis = redis();
    let rules = || vec![rule("s:*", "q")];
    let one = watch(&redis.url(), rules(), settings("one")).await;
    let two = watch(&redis.url(), rules(), keyevent("two")).await;
    for n in 0..500 {
        set(&redis, format!("s:{n}"), 100 + n);
        set(&redis, format!("other:{n}"), 100 + n);
    }
    let entries = fired(&redis, "q", 500, &[&one, &two]).await;
    assert_unique(&entries);
    let late: Vec<_> = entries.iter().map(|entry| entry.fired_ms.saturating_sub(entry.due_ms)).collect();
    assert!(late.iter().all(|&ms| ms < 1_000), "{late:?}");
    assert!(entries.iter().all(|e| e.source == Source::Notification && e.proof == Some(Proof::Event)));
    assert_eq!(index(&redis, "q").len(), 0);
    one.stop().await;
    two.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expired_written_again_and_expired_within_a_second_are_two_timeouts() {
    let redis = redis();
    let one = watch(&redis.url(), vec![rule("s:*", "q")], settings("one")).await;
    let two = watch(&redis.url(), vec![rule("s:*", "q")], settings("two")).await;
    for _ in 0..5 {
        end(&redis, "s:a").await;
    }
    // Between two markers, most likely.
    for _ in 0..2 {
        set(&redis, "s:b", 1);
        gone(&redis, "s:b").await;
    }
    assert_unique(&fired(&redis, "q", 7, &[&one, &two]).await);
    one.stop().await;
    two.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_done_to_a_key_is_seen() {
    let redis = redis();
    let watcher = watch(&redis.url(), vec![rule("s:*", "q")], settings("one")).await;
    let long = 3_600_000;
    for key in ["s:later", "s:forever", "s:deleted", "s:renamed", "s:copied", "s:dumped", "s:moved"] {
        set(&redis, key, long);
    }
    redis.call(&["PEXPIRE", "s:later", "7200000"]);
    redis.call(&["PERSIST", "s:forever"]);
    redis.call(&["DEL", "s:deleted"]);
    redis.call(&["RENAME", "s:renamed", "s:new name"]);
    redis.call(&["COPY", "s:copied", "s:copy"]);
    redis.call(&["MOVE", "s:moved", "1"]);
    let overdue_tests::redis::Value::Bytes(dump) = redis.call(&["DUMP", "s:dumped"]) else {
        panic!("no dump")
    };
    redis.call(&[b"RESTORE".as_slice(), b"s:restored", b"3600000", &dump]);
    watcher.settle(&redis).await;
    let known = index(&redis, "q");
    let names: Vec<_> = known.keys().map(|key| String::from_utf8_lossy(&key.key).into_owned()).collect();
    assert_eq!(names, ["s:copied", "s:copy", "s:dumped", "s:later", "s:new name", "s:restored"]);
    for (key, &due) in &known {
        let ends = redis.count(&[b"PEXPIRETIME", key.key.as_ref()]);
        assert_eq!(due, ends, "{key:?}");
    }
    assert_eq!(entries(&redis, "q"), []);
    watcher.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_bytes_are_a_name_in_both_modes() {
    let long = Bytes::from(vec![b'x'; 64 * 1024]);
    let mut keys: Vec<Bytes> = vec![long];
    keys.extend(
        [&b"\xff\xfe\x00"[..], b"a\r\nb", b"{}", b":", b"*", b"[a", b"\\", b" ", b"3:a"]
            .map(Bytes::from_static),
    );
    for settings in [settings("one"), keyevent("one")] {
        let redis = redis();
        let mode = settings.mode;
        let watcher = watch(&redis.url(), vec![rule("*", "q")], settings).await;
        for key in &keys {
            set(&redis, key, 50);
        }
        let entries = fired(&redis, "q", keys.len(), &[&watcher]).await;
        let mut names: Vec<Bytes> = entries.iter().map(|entry| entry.id.as_bytes().clone()).collect();
        let mut keys = keys.clone();
        names.sort();
        keys.sort();
        assert!(names == keys, "{mode:?}: {} names", names.len());
        watcher.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_name_in_two_databases_is_two_keys() {
    let redis = redis();
    let in_db_3 = Rule { db: 3, ..rule("s:*", "q") };
    let watcher = watch(&redis.url(), vec![rule("s:*", "q"), in_db_3], settings("one")).await;
    let mut connection = redis.connection().unwrap();
    set(&redis, "s:a", 200);
    for line in ["SELECT 3", "SET s:a v PX 200", "SET s:long v PX 3600000", "SELECT 5", "SET s:a v PX 100"] {
        connection.call(&line.split(' ').collect::<Vec<_>>()).unwrap();
    }
    let entries = fired(&redis, "q", 2, &[&watcher]).await;
    let mut dbs: Vec<_> = entries.iter().map(|entry| entry.db).collect();
    dbs.sort();
    assert_eq!(dbs, [Some(0), Some(3)]);
    let known: Vec<_> = index(&redis, "q").into_keys().collect();
    assert_eq!(known, [WatchedKey { db: 3, key: "s:long".into() }]);
    watcher.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_rule_that_matches_wins() {
    for settings in [settings("one"), keyevent("one")] {
        let redis = redis();
        let fine = Rule { exclude: vec![Glob::new("s:1:not*")], ..rule("s:1:*", "fine") };
        let rules = vec![fine, rule("s:*", "coarse"), rule("s:1:*", "never"), rule("overdue:*", "own")];
        let watcher = watch(&redis.url(), rules, settings).await;
        for key in ["s:1:a", "s:1:not", "s:2:a", "overdue:a"] {
            set(&redis, key, 50);
        }
        for (queue, keys) in
            [("fine", &["s:1:a"][..]), ("coarse", &["s:1:not", "s:2:a"]), ("never", &[]), ("own", &[])]
        {
            let mut names: Vec<_> = fired(&redis, queue, keys.len(), &[&watcher]).await;
            names.sort_by(|a, b| a.id.as_bytes().cmp(b.id.as_bytes()));
            assert!(
                names
                    .iter()
                    .map(|entry| entry.id.as_bytes().as_ref())
                    .eq(keys.iter().map(|key| key.as_bytes()))
            );
        }
        watcher.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_evicted_key_is_what_its_rule_says() {
    let redis = redis();
    let fire = Rule { on_evicted: OnEvicted::Fire, ..rule("f:*", "fire") };
    let watcher = watch(&redis.url(), vec![fire, rule("i:*", "ignore")], settings("one")).await;
    for key in ["f:a", "i:a"] {
        set(&redis, key, 3_600_000);
    }
    watcher.settle(&redis).await;
    assert_eq!((index(&redis, "fire").len(), index(&redis, "ignore").len()), (1, 1));
    redis.call(&["CONFIG", "SET", "maxmemory-policy", "volatile-ttl"]);
    redis.call(&["CONFIG", "SET", "maxmemory", "1"]);
    eventually("both are evicted", async || {
        // Any command that may need memory evicts first; it is refused when that is not enough.
        let _ = redis.command(&["SET", "other", "v"]);
        redis.count(&["EXISTS", "f:a", "i:a"]) == 0
    })
    .await;
    let entries = fired(&redis, "fire", 1, &[&watcher]).await;
    assert_eq!(entries[0].cause, Some(EVICTED.into()));
    eventually("both are out of the index", async || {
        index(&redis, "fire").len() + index(&redis, "ignore").len() == 0
    })
    .await;
    assert_eq!(super::stage::entries(&redis, "ignore"), []);
    watcher.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_happens_while_the_subscription_is_cut_is_found_and_named_anew() {
    let redis = redis();
    let proxy = Proxy::start(redis.addr());
    proxy.only("PSUBSCRIBE");
    let watcher = watch(&proxy.url(), vec![rule("s:*", "q")], settings("one")).await;
    set(&redis, "s:known", 3_600_000);
    set(&redis, "s:deleted", 3_600_000);
    watcher.settle(&redis).await;
    proxy.down(Mode::Cut);
    eventually("nothing is met in a gap", async || {
        redis.call(&["SET", "s:noise", "v"]);
        watcher.mets.borrow().is_empty()
    })
    .await;
    redis.call(&["PEXPIRE", "s:known", "7200000"]);
    redis.call(&["DEL", "s:deleted"]);
    set(&redis, "s:new", 3_600_000);
    end(&redis, "s:short").await;
    proxy.heal();
    watcher.settle(&redis).await;
    eventually("SCAN has found what changed", async || {
        let known = index(&redis, "q");
        let due = |key: &'static str| known.get(&WatchedKey { db: 0, key: key.into() }).copied();
        let ends = |key: &str| Some(redis.count(&["PEXPIRETIME", key]));
        if due("s:known") == ends("s:known") && due("s:new") == ends("s:new") { Ok(()) } else { Err(known) }
    })
    .await;
    assert!(count("overdue_gaps_total", &[("reason", "reconnect")]) >= 1.0);
    scanned("gap", 1.0).await;
    end(&redis, "s:after").await;
    let entries = fired(&redis, "q", 1, &[&watcher]).await;
    assert_eq!(entries[0].id.as_bytes(), "s:after");
    watcher.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_finds_no_room_is_counted_and_found_by_scan() {
    let redis = redis();
    let small = overdue_relay::WatchSettings { capacity: 64, ..settings("one") };
    let watcher = watch(&redis.url(), vec![rule("s:*", "q")], small).await;
    let many = "for i = 1, 20000 do redis.call('SET', 's:' .. i, 'v', 'PX', 3600000) end";
    redis.call(&["EVAL", many, "0"]);
    eventually("all are in the index", async || {
        let known = index(&redis, "q").len();
        if known == 20_000 { Ok(()) } else { Err(known) }
    })
    .await;
    // Both are reported once in a while.
    let shed = |reason| count("overdue_gaps_total", &[("reason", reason)]);
    eventually("both are counted", async || {
        let dropped = count("overdue_notifications_dropped_total", &[]);
        if dropped > 0.0 && shed("overflow") + shed("lag") >= 1.0 { Ok(()) } else { Err(metrics()) }
    })
    .await;
    watcher.settle(&redis).await;
    end(&redis, "s:after").await;
    fired(&redis, "q", 1, &[&watcher]).await;
    watcher.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_restarts_is_watched_again_and_batches_under_way_are_not_lost() {
    let redis = Redis::with(overdue_tests::redis::Options {
        aof: true,
        notify: "KEgxe".into(),
        ..overdue_tests::redis::Options::default()
    });
    let watcher = watch(&redis.url(), vec![rule("s:*", "q")], settings("one")).await;
    for n in 0..300 {
        set(&redis, format!("s:{n}"), 3_600_000 + n);
    }
    redis.kill9();
    redis.restart().unwrap();
    eventually("all are in the index", async || {
        let known = index(&redis, "q").len();
        if known == 300 { Ok(()) } else { Err(known) }
    })
    .await;
    watcher.settle(&redis).await;
    end(&redis, "s:after").await;
    fired(&redis, "q", 1, &[&watcher]).await;
    let report = watcher.health.ready();
    assert!(report.text.contains("settle 0") && report.text.contains("mark server/0"), "{}", report.text);
    watcher.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_whose_keys_are_somebody_elses_costs_no_other_queue_anything() {
    let redis = redis();
    let rules = vec![rule("bad:*", "bad"), rule("good:*", "good")];
    let watcher = watch(&redis.url(), rules, settings("one")).await;
    redis.call(&[b"SET".as_slice(), &super::stage::partition("bad").looked(), b"not ours"]);
    for n in 0..100 {
        set(&redis, format!("bad:{n}"), 20);
        set(&redis, format!("good:{n}"), 20);
        set(&redis, format!("good:long:{n}"), 3_600_000);
    }
    fired(&redis, "good", 100, &[&watcher]).await;
    assert_eq!(index(&redis, "good").len(), 100);
    eventually("the gap is counted", async || count("overdue_gaps_total", &[("reason", "failed")]) >= 1.0)
        .await;
    watcher.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_near_its_end_travels_with_the_timeout() {
    let redis = redis();
    let rule = Rule { payload: Payload::Value, ..rule("s:*", "q") };
    let watcher = watch(&redis.url(), vec![rule], settings("one")).await;
    set(&redis, "s:a", 60);
    let entries = fired(&redis, "q", 1, &[&watcher]).await;
    assert_eq!((entries[0].payload.as_ref(), &entries[0].flaw), (&b"value"[..], &None));
    watcher.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_feed_is_given_a_marker_again_and_again() {
    let redis = redis();
    let rules = vec![rule("s:*", "q"), Rule { db: 3, ..rule("s:*", "q") }];
    let watcher = watch(&redis.url(), rules, settings("one")).await;
    for _ in 0..3 {
        watcher.settle(&redis).await;
    }
    assert_eq!(watcher.mets.borrow().keys().collect::<Vec<_>>(), [&server_feed(0), &server_feed(3)]);
    let age = metrics().get("overdue_met_age_seconds", &[]).unwrap_or(0.0);
    assert!(age < 5.0, "{age}");
    watcher.stop().await;
}

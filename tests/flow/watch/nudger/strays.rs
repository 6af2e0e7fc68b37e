//! Members of the index that are no keys of a rule.

use overdue_tests::eventually;

use super::super::stage::{count, counted, partition, rule};
use super::{fired, lazy, nudge, set, set_one_after_the_other};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_of_no_rule_are_removed_when_gone_for_long_and_never_fire() {
    let redis = lazy();
    let watched = partition("q").watched();
    let old = (redis.now_ms() - 61_000).to_string();
    let young = (redis.now_ms() - 20_000).to_string();
    let track = |member: &[u8], due: &str| redis.call(&[b"ZADD", &watched[..], due.as_bytes(), member]);
    redis.call(&["SET", "alive", "v"]);
    set(&redis, "expired", 1);
    for member in ["no key", "03:s:1", "0:gone", "0:expired", "0:alive", "9:elsewhere"] {
        track(member.as_bytes(), &old);
    }
    track(b"0:young", &young);
    let nudging = nudge(&redis, vec![rule("s:*", "q")]).await;
    set(&redis, "s:1", 300);
    nudging.track(0, ["s:1"]).await;
    fired(&redis, "q", 1).await;
    eventually("those that are gone are removed", async || {
        let left = redis.call(&[b"ZRANGE", &watched[..], b"0", b"-1", b"WITHSCORES"]);
        let left: Vec<_> = left.items().iter().map(overdue_sandbox::Value::text).collect();
        if left == ["0:alive", &old, "9:elsewhere", &old, "0:young", &young] { Ok(()) } else { Err(left) }
    })
    .await;
    counted("overdue_strays_removed_total", &[("queue", "q")], 4.0).await;
    eventually("the others are counted", async || count("overdue_strays", &[("queue", "q")]) == 3.0).await;
    fired(&redis, "q", 1).await;
    nudging.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_of_strays_at_the_front_does_not_hold_up_our_own() {
    let redis = lazy();
    let nudging = nudge(&redis, vec![rule("s:*", "q")]).await;
    let fill = "for i = 1, 5000 do redis.call('ZADD', KEYS[1], ARGV[1] + i, '0:other:' .. i) end";
    let from = (redis.now_ms() - 30_000).to_string();
    redis.call(&[b"EVAL", fill.as_bytes(), b"1", &partition("q").watched(), from.as_bytes()]);
    set_one_after_the_other(&redis, 100, 10);
    nudging.track(0, (0..100).map(|n| format!("s:{n}"))).await;
    let entries = fired(&redis, "q", 100).await;
    let mut late: Vec<_> = entries.iter().map(|entry| entry.fired_ms - entry.due_ms).collect();
    late.sort_unstable();
    assert!(late[50] < 100 && late[95] < 500, "{late:?}");
    nudging.stop().await;
}

use super::*;

const SECOND: u64 = 1_000;

fn sweep(health: &Health, bound_s: u64) -> Progress {
    health.register(Loop::Sweep, "orders:0", Duration::from_secs(bound_s))
}

#[test]
fn a_stalled_loop_is_live_while_redis_does_not_answer() {
    let health = Health::default();
    let _sweep = sweep(&health, 5);
    assert!(health.live_at(3_600 * SECOND).ok, "not asked yet");
    health.redis_answered_at(true, 0);
    health.redis_answered_at(false, 10 * SECOND);
    assert!(health.live_at(3_600 * SECOND).ok, "redis does not answer");
}

#[test]
fn a_loop_that_stalls_for_60_s_while_redis_answers_is_not_live() {
    let health = Health::default();
    let sweep = sweep(&health, 5);
    health.redis_answered_at(true, 0);
    health.redis_answered_at(true, 50 * SECOND);
    assert!(health.live_at(59 * SECOND).ok);
    let report = health.live_at(62 * SECOND);
    assert!(!report.ok);
    assert!(
        report.text.starts_with("not live: redis answers\nSTALLED   sweep orders:0: last turn 6"),
        "{}",
        report.text
    );
    sweep.state.beat.store(61 * SECOND, Ordering::Relaxed);
    assert!(health.live_at(62 * SECOND).ok);
}

#[test]
fn the_60_s_count_from_the_return_of_redis() {
    let health = Health::default();
    let _sweep = sweep(&health, 5);
    health.redis_answered_at(false, 0);
    health.redis_answered_at(true, 600 * SECOND);
    assert!(health.live_at(659 * SECOND).ok);
    assert!(!health.live_at(661 * SECOND).ok);
}

#[test]
fn a_turn_without_success_keeps_it_live_but_not_ready() {
    let health = Health::default();
    let sweep = sweep(&health, 5);
    health.redis_answered(true);
    sweep.fail("unreachable");
    assert!(health.live().ok);
    let report = health.ready();
    assert!(!report.ok);
    let expected =
        "not ready\nLATE      sweep orders:0: no success yet (bound 5.0 s), last error: unreachable\n";
    assert_eq!(report.text, expected);
}

#[test]
fn ready_means_each_loop_succeeded_within_its_own_bound() {
    let health = Health::default();
    assert_eq!(health.ready().text, "not ready: no loop has started yet\n");
    let sweep = sweep(&health, 5);
    let read = health.register(Loop::Read, "orders/billing", Duration::from_secs(10));
    sweep.succeed();
    assert!(!health.ready().ok, "one loop has no success yet");
    read.succeed();
    assert!(health.ready().ok);
    assert!(!health.ready_at(health.now() + 6 * SECOND).ok, "the sweep is late");
    sweep.state.success.store(health.now() + 6 * SECOND, Ordering::Relaxed);
    let report = health.ready_at(health.now() + 6 * SECOND);
    assert!(report.ok, "{}", report.text);
    assert!(
        report.text.contains("ok        read orders/billing: last success 6.0 s ago (bound 10.0 s)\n"),
        "{}",
        report.text
    );
}

#[test]
fn a_degraded_part_is_shown_and_fails_nothing() {
    let health = Health::default();
    sweep(&health, 5).succeed();
    health.set_degraded("notifications", Some("flags x and E are missing".to_owned()));
    let report = health.ready();
    assert!(report.ok);
    assert!(report.text.ends_with("degraded  notifications: flags x and E are missing\n"), "{}", report.text);
    health.set_degraded("notifications", None);
    assert!(!health.ready().text.contains("degraded"));
}

#[test]
fn a_broken_part_is_shown_and_fails_although_the_loops_succeed() {
    let health = Health::default();
    sweep(&health, 5).succeed();
    health.set_broken("canary server", Some("notifications do not come".to_owned()));
    let report = health.ready();
    assert!(!report.ok && report.text.starts_with("not ready\n"), "{}", report.text);
    assert!(report.text.ends_with("BROKEN    canary server: notifications do not come\n"), "{}", report.text);
    health.set_broken("canary server", None);
    assert!(health.ready().ok);
}

#[test]
fn a_dropped_loop_goes_stale_and_a_retired_one_is_gone() {
    let health = Health::default();
    sweep(&health, 5).succeed();
    assert!(!health.ready_at(health.now() + 6 * SECOND).ok, "dropped without retire: seen");
    let again = sweep(&health, 5);
    again.succeed();
    assert!(health.ready().ok, "a successor takes its place");
    health.register(Loop::Queues, "", Duration::from_secs(20)).succeed();
    again.retire();
    assert!(health.ready_at(health.now() + 6 * SECOND).ok);
}

#[test]
fn the_metric_shows_the_loop_that_has_waited_longest() {
    let registry = crate::Registry::install("test", "relay", "overdue").unwrap();
    let health = Health::default();
    let first = health.register(Loop::Claim, "orders:0", Duration::from_secs(5));
    let _second = health.register(Loop::Claim, "orders:1", Duration::from_secs(5));
    first.succeed();
    health.publish();
    assert!(
        registry.render().contains(
            "overdue_loop_last_success_timestamp_seconds{namespace=\"overdue\",loop=\"claim\"} 0\n"
        )
    );
}

#[tokio::test]
async fn the_start_is_over_when_the_first_loop_is_entered() {
    let health = Health::default();
    let waiting = tokio::spawn({
        let health = health.clone();
        async move { health.started().await }
    });
    let _progress = health.register(Loop::Read, "orders:0", Duration::from_secs(1));
    waiting.await.unwrap();
    health.started().await;
}

#[test]
fn nobody_is_ready_while_redis_does_not_answer() {
    let health = Health::default();
    health.register(Loop::Read, "orders/billing", Duration::from_secs(10)).succeed();
    assert!(health.ready().ok, "it was not asked yet");
    health.redis_answered_at(false, 1_000);
    health.redis_answered_at(false, 3_000);
    let report = health.ready_at(4_000);
    assert!(!report.ok && report.text.contains("BROKEN    redis: no answer for 3.0 s\n"), "{}", report.text);
    health.redis_answered_at(true, 4_000);
    assert!(health.ready_at(4_000).ok);
}

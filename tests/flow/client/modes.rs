//! Every way to arm and to cancel.

use overdue::{Armed, Change, Encoding, ErrorKind, Mode, Raw, When};
use overdue_tests::Redis;

use super::{HOUR, Hold, armed, hold, open, orders, raw, tally};

/// The rows of PROTOCOL.md section 4 as a producer sees them; the script itself has its own contract test.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_mode_answers_what_became_of_the_timer() {
    let redis = Redis::start();
    let (_client, queue) = open::<Raw>(&redis, 1).await;
    let far = redis.now_ms() + 7_200_000;
    let arm = async |id: &str, mode, due| {
        let armed = queue.timer(id).at(When::UnixMs(due)).mode(mode).schedule().await.unwrap();
        (armed.change, armed.due_ms)
    };
    for (mode, absent, later, earlier, due) in [
        (Mode::Upsert, Change::Armed, Change::Replaced, Change::Replaced, None),
        (Mode::IfAbsent, Change::Armed, Change::Present, Change::Present, None),
        (Mode::IfPresent, Change::Absent, Change::Replaced, Change::Replaced, Some(Change::Due)),
        (Mode::OnlyLater, Change::Armed, Change::Replaced, Change::Kept, Some(Change::Due)),
        (Mode::OnlyEarlier, Change::Armed, Change::Kept, Change::Replaced, Some(Change::Due)),
    ] {
        let id = format!("{mode:?}");
        assert_eq!(arm(&id, mode, far).await.0, absent, "{mode:?}");
        arm(&id, Mode::Upsert, far).await;
        assert_eq!(arm(&id, mode, far + 5).await.0, later, "{mode:?}");
        arm(&id, Mode::Upsert, far).await;
        assert_eq!(arm(&id, mode, far - 5).await.0, earlier, "{mode:?}");
        let old = queue.timer(&id).at(When::UnixMs(1)).schedule().await.unwrap();
        let expected = due.unwrap_or(Change::FiredOld(old.generation));
        let (change, due_ms) = arm(&id, mode, far).await;
        assert_eq!((change, due_ms == far), (expected, change.is_armed()), "{mode:?}");
    }
    let absent = queue.timer("nothing").at(HOUR).if_present().schedule().await.unwrap();
    assert_eq!((absent.generation, absent.due_ms), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_typed_payload_comes_back_as_it_was() {
    let redis = Redis::start();
    let (client, queue) = open::<Hold>(&redis, 1).await;
    let before = redis.now_ms();
    let armed = queue.timer("a").at(HOUR).payload(&hold(7)).trace("00-ab-cd-01").schedule().await.unwrap();
    assert!((before..=redis.now_ms()).contains(&(armed.due_ms - 3_600_000)), "the server's clock counts");
    let found = queue.get("a").await.unwrap().unwrap();
    assert_eq!((found.generation, found.due_ms, &found.payload), (armed.generation, armed.due_ms, &hold(7)));
    assert_eq!(found.trace.as_deref(), Some(&b"00-ab-cd-01"[..]));
    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    queue.timer("a").at(HOUR).payload(&hold(7)).trace("mine").traceparent(PARENT).schedule().await.unwrap();
    assert_eq!(queue.get("a").await.unwrap().unwrap().trace.as_deref(), Some(PARENT.as_bytes()));
    assert_eq!(queue.get("b").await.unwrap(), None);

    let bytes = client.queue::<Raw>("orders").await.unwrap();
    assert_eq!(bytes.get("a").await.unwrap().unwrap().payload.encoding(), Encoding::MessagePack);
    bytes.schedule("t", HOUR, &Raw::text("now")).await.unwrap();
    assert_eq!(bytes.get("t").await.unwrap().unwrap().payload, Raw::text("now"));
    let error = queue.get("t").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreadable);
    assert_eq!(
        error.to_string(),
        "cannot look up timer \"t\" in queue orders: the payload is text, not MessagePack; use queue::<Raw>"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancel_answers_what_was_armed_and_cancel_if_spares_other_generations() {
    let redis = Redis::start();
    let (_client, queue) = open::<Raw>(&redis, 3).await;
    let first = queue.schedule("a", HOUR, &raw("1")).await.unwrap();
    let second = queue.schedule("a", HOUR, &raw("2")).await.unwrap();
    assert_eq!(queue.cancel_if("a", first.generation).await.unwrap(), None);
    let gone = Armed { generation: second.generation, due_ms: second.due_ms };
    assert_eq!(queue.cancel_if("a", second.generation).await.unwrap(), Some(gone));
    assert_eq!(queue.cancel("a").await.unwrap(), None);

    queue.schedule_many((0..600).map(|i| queue.timer(format!("many-{i}")).at(HOUR))).await;
    let ids = (0..601).map(|i| format!("many-{i}")).chain([String::new()]);
    let answers = queue.cancel_many(ids).await;
    assert!(answers[..600].iter().all(|answer| matches!(answer, Ok(Some(_)))));
    assert_eq!(answers[600], Ok(None));
    assert_eq!(answers[601].as_ref().unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(queue.count().await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_keyed_timer_can_be_looked_at_with_get_and_pttl() {
    let redis = Redis::start();
    let (_client, queue) = open::<Raw>(&redis, 1).await;
    let key = b"overdue:{orders:0}:key:a";
    let ask = |command: &str| redis.call(&[command.as_bytes(), &key[..]]);
    let armed = queue.timer("a").at(HOUR).keyed().schedule().await.unwrap();
    assert_eq!(ask("GET").text(), armed.generation.to_string());
    let left = ask("PTTL").int().unwrap();
    assert!((3_590_000..=3_600_000).contains(&left), "{left}");
    queue.schedule("a", HOUR, &Raw::default()).await.unwrap();
    assert_eq!(ask("EXISTS").int(), Some(0), "armed anew without keyed()");
    queue.timer("a").at(HOUR).keyed().schedule().await.unwrap();
    queue.cancel("a").await.unwrap();
    assert_eq!(ask("EXISTS").int(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_for_replicas_that_are_not_there_says_so_and_the_timer_is_armed() {
    let redis = Redis::start();
    let (_client, queue) = open::<Raw>(&redis, 1).await;
    let wait = std::time::Duration::from_millis(20);
    let error = queue.timer("a").at(HOUR).wait_replicas(1, wait).schedule().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotReplicated);
    let scheduled = error.scheduled().unwrap();
    assert_eq!(scheduled.change, Change::Armed);
    assert_eq!(queue.get("a").await.unwrap().unwrap().generation, scheduled.generation);
    assert_eq!(
        error.to_string(),
        format!(
            "cannot arm timer \"a\" in queue orders: generation {} stands on the primary, but 0 of 1 replicas \
             confirmed it within 20ms: a failover now may lose it",
            scheduled.generation
        )
    );
    let many = queue.schedule_many([queue.timer("b").at(HOUR).wait_replicas(1, wait)]).await;
    assert_eq!(many[0].as_ref().unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!((armed(&redis, 0), tally(&redis, "scheduled")), (1, 1));
    assert_eq!(redis.count(&[&b"XLEN"[..], &orders(0).stream()]), 0);
}

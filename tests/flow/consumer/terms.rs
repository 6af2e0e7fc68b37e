//! Each handler on its own terms.

use std::time::Duration;

use overdue_consumer::{Outcome, Raw, Terms, Timeout};
use overdue_store::ErrorKind;
use overdue_tests::eventually;

use super::stage::{Seen, Stage, start};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attempts_limit_and_waits_are_those_of_the_handler_then_those_of_the_consumer() {
    let (stage, seen) = (Stage::new(), Seen::default());
    let fails = |_: Timeout<Raw>| async { Outcome::retry("no") };
    let hangs = |_: Timeout<Raw>| std::future::pending::<()>();
    let noting = seen.clone();
    let consumer = stage
        .consumer()
        .attempts(2)
        .route("t1", Terms::new().attempts(1).on(fails))
        .route("t2", Terms::new().attempts(1).limit(Duration::from_millis(50)).on(hangs));
    let work = start(consumer, move |t: Timeout<Raw>| {
        noting.note(&t);
        async { Outcome::retry("no") }
    });
    let _relay = stage.relay();
    stage.arm(1..4);
    eventually("all are dead letters", async || stage.dead().len() == 3).await;
    stage.assert_settled().await;
    let details: Vec<_> = stage
        .dead()
        .iter()
        .map(|dead| String::from_utf8_lossy(dead.field("detail").unwrap()).into_owned())
        .collect();
    assert!(details.iter().any(|detail| detail.contains("longer than its limit of 50ms")), "{details:?}");
    let report = work.end().await;
    assert_eq!((report.exhausted, report.retried, seen.len()), (3, 1, 2), "{report:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn terms_that_cannot_be_end_it_before_anything_is_sent() {
    let stage = Stage::new();
    let handler = |_: Timeout<Raw>| async {};
    let consumer = stage.consumer().route("order:*", Terms::new().attempts(0).on(handler));
    let error = consumer.run(|_| async {}, std::future::pending()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Settings);
    assert!(error.to_string().contains("attempts of the handler of \"order:*\" is 0"), "{error}");
    assert_eq!(stage.redis.count(&[b"EXISTS".as_slice(), &stage.partition.stream()]), 0);
}

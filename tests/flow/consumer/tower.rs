//! Layers of tower limit what a consumer does at once, and how fast.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use overdue_consumer::{Done, HandlerError, Raw, Timeout, Tower};
use tokio_util::sync::CancellationToken;
use tower::ServiceBuilder;

use super::stage::{Seen, Stage};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_concurrency_limit_and_a_rate_limit_hold() {
    const PERIOD: Duration = Duration::from_millis(200);
    let (stage, seen) = (Stage::new(), Seen::default());
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (noting, highest) = (seen.clone(), most.clone());
    let service = ServiceBuilder::new().buffer(64).rate_limit(10, PERIOD).concurrency_limit(3).service_fn(
        move |t: Timeout<Raw>| {
            noting.note(&t);
            let (running, highest) = (running.clone(), highest.clone());
            async move {
                highest.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(10)).await;
                running.fetch_sub(1, Ordering::SeqCst);
                // The first of them fails once: an error of the service is a retry.
                if t.id().as_bytes() == "t0" && t.attempt() == 1 {
                    return Err("once".into());
                }
                Ok::<_, HandlerError>(Done)
            }
        },
    );
    stage.arm(0..40);
    stage.fire();
    let (stop, began) = (CancellationToken::new(), Instant::now());
    let stopped = stop.clone().cancelled_owned();
    let work = tokio::spawn(stage.consumer().serve(Tower::new(service), stopped));
    let _relay = stage.relay();
    seen.wait_for(41).await;
    let took = began.elapsed();
    stage.assert_settled().await;
    stop.cancel();
    let report = work.await.unwrap().unwrap();
    assert_eq!((report.done, report.retried, report.lost), (40, 1, 0), "{report:?}");
    assert_eq!(most.load(Ordering::SeqCst), 3);
    // 41 runs at 10 in each period: the fifth period has begun.
    assert!(took >= PERIOD * 4, "{took:?}");
}

//! What is refused before it is sent, with the exact text.

use std::time::{Duration, UNIX_EPOCH};

use overdue::{Client, ErrorKind, Raw, Timer, When};
use overdue_tests::Redis;

use super::{HOUR, Hold, armed, connect, open};

async fn refused<T: overdue::Encode>(timer: Timer<'_, T>) -> String {
    let error = timer.schedule().await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Invalid, false));
    error.to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_breaks_a_limit_is_refused_with_the_limit() {
    let redis = Redis::start();
    let (client, queue) = open::<Raw>(&redis, 1).await;
    let timer = |when: When| queue.timer("a").at(when);
    let bounds = "a deadline lies between 1970-01-01T00:00:00.001Z and 2200-01-01T00:00:00Z";
    let arm = "cannot arm timer \"a\" in queue orders:";

    assert_eq!(
        refused(queue.timer("").at(HOUR)).await,
        "cannot arm a timer in queue orders: the timer id \"\" is not valid: 1 to 512 bytes"
    );
    assert_eq!(
        refused(queue.timer(vec![b'x'; 513]).at(HOUR)).await,
        "cannot arm a timer in queue orders: the timer id \"xxxxxxxxxxxxxxxxxxxx... (513 bytes)\" is not valid: 1 to 512 bytes"
    );
    assert_eq!(refused(timer(When::UnixMs(0))).await, format!("{arm} due 0 ms is out of range: {bounds}"));
    assert_eq!(
        refused(timer(When::UnixMs(1 << 53))).await,
        format!("{arm} due 9007199254740992 ms is out of range: {bounds}")
    );
    assert_eq!(
        refused(timer((UNIX_EPOCH - HOUR).into())).await,
        format!("{arm} due -3600000 ms is out of range: {bounds}")
    );
    assert_eq!(
        refused(timer(Duration::from_secs(86_400_000_000).into())).await,
        format!(
            "{arm} a wait of 86400000000000 ms is out of range: the deadline would lie after 2200-01-01T00:00:00Z"
        )
    );
    assert_eq!(
        refused(timer(Duration::from_millis(7_258_118_400_000).into())).await,
        format!(
            "{arm} the deadline is out of range on the server's clock: it would lie after 2200-01-01T00:00:00Z"
        )
    );
    let big = Raw::new(vec![0; 1024 * 1024 + 1]);
    assert_eq!(
        refused(timer(HOUR.into()).payload(&big)).await,
        format!("{arm} its payload has 1048577 bytes; at most 1048576 are sent (max_payload)")
    );
    assert_eq!(refused(queue.timer("a")).await, format!("{arm} it has no deadline; give one with at()"));
    assert_eq!(
        refused(timer(HOUR.into()).trace(vec![b'x'; 513])).await,
        format!("{arm} its trace context has 513 bytes; at most 512")
    );
    assert_eq!(
        refused(timer(HOUR.into()).traceparent("00-ab-cd-01")).await,
        format!(
            "{arm} the traceparent \"00-ab-cd-01\" is not valid: \
             W3C writes it like 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        )
    );
    let typed = client.queue::<Hold>("orders").await.unwrap();
    assert_eq!(
        refused(typed.timer("a").at(HOUR)).await,
        format!("{arm} it has no payload; give one with payload()")
    );
    assert_eq!(armed(&redis, 0), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_lies_on_a_limit_is_taken() {
    let redis = Redis::start();
    let client = Client::builder(redis.url()).max_payload(2 * 1024 * 1024).connect().await.unwrap();
    let queue = client.queue::<Raw>("orders").await.unwrap();
    let big = Raw::new(vec![0; 2 * 1024 * 1024]);
    queue.timer(vec![0xff; 512]).at(When::UnixMs(7_258_118_400_000)).payload(&big).schedule().await.unwrap();
    queue.timer("past").at(When::UnixMs(1)).schedule().await.unwrap();
    queue.timer("now").at(Duration::ZERO).schedule().await.unwrap();
    assert_eq!(armed(&redis, 0), 3);
    assert_eq!(queue.get([0xff; 512].as_slice()).await.unwrap().unwrap().payload, big);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_settings_and_names_say_what_is_wrong() {
    let redis = Redis::start();
    let error = |result: overdue::Result<Client>| match result {
        Ok(_) => panic!("it connected"),
        Err(error) => (error.kind(), error.to_string()),
    };
    let namespaced = Client::builder(redis.url()).namespace("{x}").connect().await;
    assert_eq!(
        error(namespaced),
        (
            ErrorKind::Settings,
            "cannot set up the client: the namespace \"{x}\" is not valid: 1 to 64 of a-z 0-9 . _ : -, beginning with a letter or digit".into()
        )
    );
    let huge = Client::builder(redis.url()).max_payload(1 << 30).connect().await;
    assert_eq!(
        error(huge),
        (
            ErrorKind::Settings,
            "cannot set up the client: max_payload is 1073741824 bytes; at most 67108864 (64 MiB)".into()
        )
    );
    let (kind, text) = error(Client::connect("redis://127.0.0.1:1/").await);
    assert_eq!(kind, ErrorKind::Unavailable);
    assert!(text.starts_with("cannot connect to Redis at redis://127.0.0.1:1/: "), "{text}");
    let (kind, text) = error(Client::connect("http://u:hunter2@h/").await);
    assert_eq!(kind, ErrorKind::Settings);
    assert!(!text.contains("hunter2"), "{text}");
    let name = connect(&redis).await.queue::<Raw>("Orders").await.err().unwrap();
    assert_eq!(
        name.to_string(),
        "cannot open a queue: the queue name \"Orders\" is not valid: 1 to 64 of a-z 0-9 . _ -, beginning with a letter or digit"
    );
}

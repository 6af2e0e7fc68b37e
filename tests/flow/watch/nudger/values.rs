//! Values, captured by a look just before the end.

use bytes::Bytes;
use overdue_protocol::Entry;
use overdue_protocol::watch::{Payload, Rule};

use super::super::stage::rule;
use super::{fired, lazy, nudge, set};

fn valued() -> Rule {
    Rule { payload: Payload::Value, ..rule("s:*", "q") }
}

fn of<'a>(entries: &'a [Entry], id: &str) -> &'a Entry {
    entries.iter().find(|entry| entry.id.as_bytes() == id.as_bytes()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_value_of_strings_and_hashes_is_delivered_and_others_have_a_flaw() {
    let redis = lazy();
    let nudging = nudge(&redis, vec![valued()]).await;
    let keys = ["s:string", "s:binary", "s:hash", "s:large", "s:list"];
    set(&redis, "s:string", 900);
    redis.call(&[b"SET".as_slice(), b"s:binary", b"\xff\x00", b"PX", b"900"]);
    redis.call(&["HSET", "s:hash", "name", "ann", "seat", "12A"]);
    redis.call(&[b"SET".as_slice(), b"s:large", &vec![b'x'; 5 << 20], b"PX", b"900"]);
    redis.call(&["RPUSH", "s:list", "a"]);
    redis.call(&["PEXPIRE", "s:hash", "900"]);
    redis.call(&["PEXPIRE", "s:list", "900"]);
    nudging.track(0, keys).await;
    redis.call(&["SET", "s:string", "the last one", "KEEPTTL"]);
    let entries = fired(&redis, "q", keys.len()).await;
    let seen = |id| {
        let entry = of(&entries, id);
        let text = |bytes: &Option<Bytes>| bytes.as_ref().map(|b| String::from_utf8_lossy(b).into_owned());
        (entry.payload.to_vec(), text(&entry.encoding), text(&entry.flaw))
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(seen("s:string"), (b"the last one".to_vec(), some("raw"), None));
    assert_eq!(seen("s:binary"), (b"\xff\x00".to_vec(), some("raw"), None));
    assert_eq!(seen("s:hash"), (br#"{"name":"ann","seat":"12A"}"#.to_vec(), some("json"), None));
    assert_eq!(seen("s:large"), (vec![], None, some("value_too_large")));
    assert_eq!(seen("s:list"), (vec![], None, some("value_type")));
    for id in ["s:string", "s:binary", "s:hash"] {
        let before = of(&entries, id).due_ms - of(&entries, id).captured_ms.unwrap();
        assert!(before <= 100, "{id}: {before} ms before its end");
    }
    nudging.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn load_values_of_many_pages_at_one_instant_are_captured_as_far_as_time_allows() {
    let redis = lazy();
    let nudging = nudge(&redis, vec![valued()]).await;
    let due = redis.now_ms() + 1_000;
    let write = "for i = 1, 1000 do redis.call('SET', 's:' .. i, 'v' .. i, 'PXAT', ARGV[1]) end";
    redis.call(&["EVAL", write, "0", &due.to_string()]);
    nudging.track(0, (1..=1_000).map(|n| format!("s:{n}"))).await;
    let entries = fired(&redis, "q", 1_000).await;
    let (whole, without): (Vec<_>, Vec<_>) = entries.iter().partition(|entry| entry.flaw.is_none());
    assert!(whole.len() > 256, "{}: more than a page", whole.len());
    assert!(whole.iter().all(|entry| entry.id.as_bytes()[2..] == entry.payload[1..]));
    assert!(
        without.iter().all(|entry| entry.flaw.as_deref() == Some(b"no_value") && entry.payload.is_empty())
    );
    nudging.stop().await;
}

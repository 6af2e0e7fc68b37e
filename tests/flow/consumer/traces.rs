//! The trace of whoever armed a timer goes on in its handler.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use overdue_consumer::{Raw, Timeout};
use overdue_protocol::call::{Mode, Schedule, ScheduleItem, When};
use overdue_protocol::{TimerId, record};
use overdue_tests::eventually;

use super::stage::{Stage, start};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn arm(stage: &Stage, id: &str, extras: &[(&str, &[u8])]) {
    let item = ScheduleItem {
        id: TimerId::new(id.to_owned()).unwrap(),
        when: When::In(0),
        mode: Mode::Upsert,
        payload: Bytes::new(),
        call: Bytes::new(),
        extras: record::pack_extras(extras),
        keyed: false,
    };
    stage
        .wire()
        .run(&Schedule { partition: stage.partition.clone(), partitions: 1, items: vec![item] })
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_hands_on_the_trace_with_a_span_of_its_own_at_each_attempt() {
    let (stage, seen) = (Stage::new(), Arc::new(Mutex::new(vec![])));
    let noting = seen.clone();
    let work = start(stage.consumer(), move |t: Timeout<Raw>| {
        let given = t.trace().map(str::to_owned);
        noting.lock().unwrap().push((t.id().to_string(), given, t.traceparent().map(str::to_owned)));
        async move { if t.attempt() == 1 { Err("once more")? } else { Ok(()) } }
    });
    arm(&stage, "traced", &[("trace", PARENT.as_bytes())]);
    arm(&stage, "strange", &[("trace", b"yesterday")]);
    arm(&stage, "plain", &[]);
    let _relay = stage.relay();
    eventually("two attempts each", async || seen.lock().unwrap().len() == 6).await;
    work.end().await;
    let of = |id: &str| {
        let seen = seen.lock().unwrap();
        seen.iter()
            .filter(|(of, ..)| of == id)
            .map(|(_, given, own)| (given.clone(), own.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(of("plain"), [(None, None), (None, None)]);
    assert_eq!(of("strange"), [(Some("yesterday".to_owned()), None), (Some("yesterday".to_owned()), None)]);
    let traced = of("traced");
    let own: Vec<_> = traced.iter().map(|(_, own)| own.clone().unwrap()).collect();
    assert!(traced.iter().all(|(given, _)| given.as_deref() == Some(PARENT)), "{traced:?}");
    assert!(
        own.iter().all(|own| own[..36] == PARENT[..36] && own != PARENT && own.ends_with("-01")),
        "{own:?}"
    );
    assert_ne!(own[0], own[1], "each attempt is a span of its own");
}

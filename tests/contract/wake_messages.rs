//! The reconciler is woken for what is first and due within 2 s, and for nothing else.

use bytes::Bytes;
use overdue_protocol::call::ScheduleItem;
use overdue_tests::stage::{at, past, timer};
use overdue_tests::{Stage, Wire};

/// Publishes an end mark, and gives all messages before it.
pub(crate) struct Ear {
    wire: Wire,
    channel: Bytes,
}

impl Ear {
    pub(crate) fn open(stage: &Stage) -> Self {
        Self::on(stage, stage.partition.wake())
    }

    pub(crate) fn on(stage: &Stage, channel: Bytes) -> Self {
        let mut wire = Wire::connect(&stage.redis);
        wire.call(&[b"SUBSCRIBE".as_slice(), &channel]).unwrap();
        Self { wire, channel }
    }

    pub(crate) fn heard(&mut self, stage: &mut Stage) -> Vec<Bytes> {
        stage.wire.call(&[b"PUBLISH".as_slice(), &self.channel, b"end"]).unwrap();
        let mut heard = vec![];
        // PING is answered behind what was pushed: each call reads one message.
        loop {
            let message = self.wire.call(&["PING"]).unwrap().into_array().unwrap();
            match message.into_iter().nth(2).and_then(overdue_protocol::Reply::into_bytes) {
                Some(end) if end == "end" => return heard,
                Some(payload) => heard.push(payload),
                None => {}
            }
        }
    }
}

#[test]
fn only_what_is_first_and_within_two_seconds_wakes_and_at_most_once_a_call() {
    let mut stage = Stage::new();
    let mut ear = Ear::open(&stage);
    let now = stage.wire.now_ms();
    let due = |name: &str, ms: u64| ScheduleItem { when: at(now + ms), ..timer(name) };
    stage.arm(vec![due("far", 60_000)]);
    assert!(ear.heard(&mut stage).is_empty());
    stage.arm(vec![due("near", 1500), due("nearer", 1200), due("far 2", 90_000)]);
    assert_eq!(ear.heard(&mut stage), [(now + 1200).to_string()]);
    stage.arm(vec![due("behind", 1900)]);
    assert!(ear.heard(&mut stage).is_empty());
    stage.arm(vec![due("first", 1000)]);
    assert_eq!(ear.heard(&mut stage), [(now + 1000).to_string()]);
    stage.arm(vec![past("past")]);
    assert_eq!(ear.heard(&mut stage), ["1000"]);
    // What changes nothing wakes nobody.
    stage.arm(vec![ScheduleItem { mode: overdue_protocol::call::Mode::IfAbsent, ..due("first", 900) }]);
    stage.cancel(&["past", "far"]);
    stage.sweep();
    assert!(ear.heard(&mut stage).is_empty());
}

#[test]
fn a_retry_wakes_too() {
    let mut stage = Stage::new();
    stage.join("billing");
    let entries = stage.deliver("billing", "c", &["a", "b", "c"]);
    let mut ear = Ear::open(&stage);
    let by = stage.by("billing", "c");
    stage.retry(by.clone(), &entries[..1], 60_000);
    assert!(ear.heard(&mut stage).is_empty());
    let before = stage.wire.now_ms();
    stage.retry(by.clone(), &entries[1..2], 500);
    let heard = ear.heard(&mut stage);
    let due: u64 = std::str::from_utf8(&heard[0]).unwrap().parse().unwrap();
    assert!(heard.len() == 1 && (before + 500..=stage.wire.now_ms() + 500).contains(&due));
    assert_eq!(due, stage.retries()[0].1);
    stage.release(by, &entries[2..]);
    assert_eq!(ear.heard(&mut stage), [stage.retries()[0].1.to_string()]);
}

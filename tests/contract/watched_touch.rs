//! A touch marks its position among the notifications, reads when keys end, and proves whom it made expire (section 5).

use bytes::Bytes;
use overdue_protocol::Reply;
use overdue_protocol::watch::{Capture, Seen, Touched, mark_channel, values_args};
use overdue_sandbox::Options;
use overdue_tests::{Stage, Wire, eventually_blocking};

use crate::watched::{Watched, run};

fn stage() -> Watched {
    Watched::on(Stage::with(Options { notify: "KEA".to_owned(), ..Options::default() }))
}

/// Lets these keys end, and touches `keys` before Redis expires one of them by itself: now and then it is faster.
fn touch_ended(w: &mut Watched, ended: &[&[u8]], keys: &[&[u8]]) -> Touched {
    eventually_blocking("a touch comes before Redis' own expiry", || {
        ended.iter().for_each(|name| set(w, name, 1));
        let now = w.stage.wire.now_ms();
        w.stage.pass(now + 2);
        let expired = |w: &Watched| w.stage.redis.info("stats")["expired_keys"].parse::<usize>().unwrap();
        let before = expired(w);
        let left = w.stage.redis.count(&["DBSIZE"]);
        let touched = w.touch(keys, Capture::NONE);
        let ours = left - touched.dbsize == ended.len() as u64 && expired(w) - before == ended.len();
        ours.then_some(touched)
    })
}

fn set(w: &mut Watched, name: &[u8], ttl_ms: u64) {
    w.stage.wire.call(&[b"SET".as_slice(), name, b"v", b"PX", ttl_ms.to_string().as_bytes()]).unwrap();
}

/// Channels and payloads of all that was published since the last call.
fn heard(ear: &mut Wire, w: &mut Watched) -> Vec<(String, String)> {
    w.stage.wire.call(&["PUBLISH", "__keyevent@0__:end", "end"]).unwrap();
    let mut heard = vec![];
    loop {
        let message = ear.call(&["PING"]).unwrap().into_array().unwrap();
        let words: Vec<_> = message.iter().filter_map(Reply::as_str).map(str::to_owned).collect();
        match words.as_slice() {
            [_, _, channel, _] if channel.ends_with(":end") => return heard,
            [kind, _, channel, payload] if kind == "pmessage" => {
                heard.push((channel.clone(), payload.clone()));
            }
            _ => {}
        }
    }
}

#[test]
fn it_tells_the_ends_of_keys_and_proves_those_that_it_made_expire() {
    let mut w = stage();
    let odd = b"\xff\r\n\0{}*".as_slice();
    w.stage.wire.call(&["SET", "forever", "v"]).unwrap();
    w.stage.wire.call(&["SET", "in a minute", "v", "PX", "60000"]).unwrap();
    let before = w.stage.wire.now_ms();
    let keys: [&[u8]; 6] = [b"in a minute", b"expired", b"expired", b"never", odd, b"forever"];
    let touched = touch_ended(&mut w, &[b"expired", odd], &keys);
    let Seen::Due(due) = touched.seen[0] else { panic!("{touched:?}") };
    assert!(due.abs_diff(before + 60_000) < 2_000, "{due} {before}");
    assert_eq!(touched.seen[1..], [Seen::Proven, Seen::Gone, Seen::Gone, Seen::Proven, Seen::Forever]);
    assert_eq!(touched.dbsize, 2, "neither a guard nor a marker stays");
    assert!(touched.position.abs_diff(w.stage.wire.now_ms() * 1_000) < 5_000_000);
    assert!(w.touch(&[], Capture::NONE).position > touched.position);
}

#[test]
fn a_due_is_exact_where_the_server_tells_it_and_never_late() {
    let mut w = stage();
    let exact = w.later();
    w.stage.wire.call(&["SET", "a", "v"]).unwrap();
    w.stage.wire.call(&["PEXPIREAT", "a", &exact.to_string()]).unwrap();
    let Seen::Due(due) = w.touch(&[b"a"], Capture::NONE).seen[0] else { panic!("it has a TTL") };
    let old = w.stage.redis.info("server")["redis_version"].starts_with("6.");
    assert!(due <= exact && due + if old { 500 } else { 0 } >= exact, "{due} {exact}");
}

#[test]
fn listeners_get_the_marker_before_whatever_the_touch_expires() {
    let mut w = stage();
    let mut ear = Wire::connect(&w.stage.redis);
    ear.call(&["PSUBSCRIBE", "__keyevent@0__:*"]).unwrap();
    let names: Vec<_> = (0..20).map(|n: u32| n.to_string()).collect();
    let keys: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
    let touched = touch_ended(&mut w, &keys, &keys);
    assert!(touched.seen.iter().all(|seen| *seen == Seen::Proven));
    let mut heard = heard(&mut ear, &mut w);
    let mark = (String::from_utf8(mark_channel(0).to_vec()).unwrap(), format!("server {}", touched.position));
    let at = heard.iter().position(|one| *one == mark).unwrap();
    heard.drain(..at);
    let events: Vec<_> =
        names.iter().map(|name| ("__keyevent@0__:expired".to_owned(), name.clone())).collect();
    assert_eq!(heard[1..], events);
}

#[test]
fn a_touch_tells_nothing_on_a_replica_and_a_key_in_another_database_is_another() {
    let mut w = stage();
    set(&mut w, b"a", 60_000);
    w.stage.wire.call(&["SELECT", "3"]).unwrap();
    assert_eq!(w.touch(&[b"a"], Capture::NONE).seen, [Seen::Gone]);
    w.stage.wire.call(&["SELECT", "0"]).unwrap();
    let primary = overdue_tests::Redis::start();
    w.stage.wire.call(&["REPLICAOF", "127.0.0.1", &primary.port().to_string()]).unwrap();
    let refused = w.try_touch(&[Bytes::from("a")], Capture::NONE).unwrap_err();
    assert!(refused.contains("READONLY"), "{refused}");
}

#[test]
fn a_key_that_the_user_may_not_read_is_an_error_and_not_elsewhere() {
    let users = vec!["part on nopass ~overdue:* ~mine:* &* +@all".to_owned()];
    let mut w = Watched::on(Stage::with(Options { users, ..Options::default() }));
    w.stage.wire = w.stage.wire_of("part");
    assert!(w.try_touch(&[Bytes::from("mine:a")], Capture::NONE).is_ok());
    let refused = w.try_touch(&[Bytes::from("mine:a"), Bytes::from("other")], Capture::NONE).unwrap_err();
    assert!(refused.contains("ermission") || refused.contains("can't access"), "{refused}");
    let values = values_args(9, &[Bytes::from("other")]);
    assert!(run(&mut w.stage.wire, &overdue_protocol::script::VALUES, values).is_err());
}

#[test]
fn every_expiry_has_one_event_whether_a_touch_proves_it_or_not() {
    let mut w = stage();
    let mut ear = Wire::connect(&w.stage.redis);
    ear.call(&["PSUBSCRIBE", "__keyevent@0__:*"]).unwrap();
    let names: Vec<_> = (0..1_000).map(|n: u32| format!("k{n:03}")).collect();
    for name in &names {
        set(&mut w, name.as_bytes(), 20);
    }
    let mut left = names.clone();
    eventually_blocking("every key is gone", || {
        let asked = std::mem::take(&mut left);
        for page in asked.chunks(256) {
            let keys: Vec<&[u8]> = page.iter().map(|name| name.as_bytes()).collect();
            let seen = w.touch(&keys, Capture::NONE).seen;
            let alive = page.iter().zip(seen).filter(|(_, seen)| matches!(seen, Seen::Due(_)));
            left.extend(alive.map(|(name, _)| name.clone()));
        }
        left.is_empty()
    });
    let events = heard(&mut ear, &mut w).into_iter().filter(|(channel, _)| channel.ends_with(":expired"));
    let mut events: Vec<_> = events.map(|(_, name)| name).collect();
    events.sort();
    assert_eq!(events, names);
}

use super::*;

fn node(id: &str) -> (Node, Part) {
    let node = Node::of_cluster(id);
    (node.clone(), Part::Node(node))
}

fn message(n: usize, length: usize) -> Signal {
    Signal::Message { channel: n.to_string().into(), payload: vec![b'x'; length].into() }
}

fn outlet(capacity: usize) -> (Outlet, mpsc::Receiver<Signal>) {
    let (signals, heard) = mpsc::channel(capacity);
    (Outlet::new(signals), heard)
}

fn all(heard: &mut mpsc::Receiver<Signal>) -> Vec<Signal> {
    std::iter::from_fn(|| heard.try_recv().ok()).collect()
}

#[test]
fn up_is_said_when_all_are_and_down_with_the_first() {
    let (outlet, mut heard) = outlet(16);
    let ((a, part_a), (b, part_b)) = (node("a"), node("b"));
    outlet.expect([&part_a, &part_b]);
    let (of_a, of_b) = (outlet.voice(&part_a, &a), outlet.voice(&part_b, &b));
    of_a.opened();
    assert_eq!(all(&mut heard), [Signal::Opened(a.clone())]);
    of_b.opened();
    assert_eq!(all(&mut heard), [Signal::Opened(b.clone()), Signal::Up]);
    of_a.closed();
    of_b.closed();
    assert_eq!(all(&mut heard), [Signal::Closed(a.clone()), Signal::Down, Signal::Closed(b.clone())]);
    of_b.opened();
    outlet.expect([&part_b, &Part::Messages]);
    assert_eq!(all(&mut heard), [Signal::Opened(b.clone())]);
    let of_all = outlet.voice(&Part::Messages, &b);
    of_all.opened();
    assert_eq!(all(&mut heard), [Signal::Up], "the missing node is gone");
    of_all.closed();
    assert_eq!(all(&mut heard), [Signal::Down], "the node itself is open as before");
    outlet.expect([]);
    assert_eq!(all(&mut heard), [Signal::Closed(b)]);
    of_a.opened();
    assert_eq!(all(&mut heard), [], "nobody expects it");
}

#[test]
fn a_link_that_was_ended_is_not_heard() {
    let (outlet, mut heard) = outlet(16);
    let (a, part) = node("a");
    outlet.expect([&part]);
    let old = outlet.voice(&part, &a);
    old.opened();
    old.end();
    let new = outlet.voice(&part, &a);
    old.opened();
    old.tell(&mut vec![message(1, 0)]);
    new.opened();
    let (open, closed) = (|| Signal::Opened(a.clone()), Signal::Closed(a.clone()));
    assert_eq!(all(&mut heard), [open(), Signal::Up, closed, Signal::Down, open(), Signal::Up]);
}

#[tokio::test]
async fn what_waits_is_told_as_soon_as_there_is_room_though_nothing_more_is_heard() {
    let (outlet, mut heard) = outlet(2);
    let (a, part) = node("a");
    outlet.expect([&part]);
    let voice = outlet.voice(&part, &a);
    voice.tell(&mut (0..5).map(|n| message(n, 0)).collect());
    voice.opened();
    let told = async {
        let mut told = vec![];
        while told.len() < 5 {
            told.extend(heard.recv().await);
        }
        told
    };
    tokio::select! {
        told = told => assert_eq!(told, [
            message(0, 0),
            message(1, 0),
            Signal::Lost { node: a.clone(), count: 3 },
            Signal::Opened(a.clone()),
            Signal::Up,
        ]),
        () = outlet.carry() => panic!("the holder is there"),
    }
}

#[tokio::test]
async fn long_keys_are_bounded_by_their_bytes_and_the_loss_is_one() {
    const LONG: usize = 1024 * 1024;
    let (outlet, mut heard) = outlet(1_000);
    let (a, part) = node("a");
    outlet.expect([&part]);
    let voice = outlet.voice(&part, &a);
    for n in 0..100 {
        voice.tell(&mut vec![message(n, LONG)]);
    }
    let carrier = outlet.clone();
    let carrying = tokio::spawn(async move { carrier.carry().await });
    let mut told = vec![];
    while told.len() < 64 {
        told.extend(heard.recv().await);
    }
    assert_eq!(told.pop(), Some(Signal::Lost { node: a, count: 37 }));
    assert_eq!(told.len(), 63);
    voice.tell(&mut vec![message(100, BYTES + 1)]);
    assert!(heard.recv().await.is_some(), "one is always taken");
    carrying.abort();
}

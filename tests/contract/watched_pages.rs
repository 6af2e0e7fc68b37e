//! Pages of watched keys that are due (section 5).

use overdue_protocol::call::DueKeys;
use overdue_protocol::call::Sight::Due;

use crate::watched::{Watched, key, look};

#[test]
fn they_come_in_the_order_of_their_deadlines_and_say_what_is_behind() {
    let mut w = Watched::new();
    let (past, later) = (w.past(), w.later());
    let empty = w.due(10, 0, 0);
    assert_eq!((empty.members.len(), empty.next_due_ms), (0, None));
    let items = (0..250).map(|n| w.item(key(format!("{n:03}")), 1, look(Due(past - n)))).collect();
    w.settle(items);
    w.track("later", 1, later);
    let names = |page: &DueKeys| -> Vec<String> {
        page.members.iter().map(|(member, _)| String::from_utf8(member.to_vec()).unwrap()).collect()
    };
    let first = w.due(3, 0, 0);
    assert_eq!(names(&first), ["0:249", "0:248", "0:247"]);
    assert_eq!((first.members[0].1, first.next_due_ms), (past - 249, Some(past - 246)));
    assert!(first.now_ms.abs_diff(w.stage.wire.now_ms()) < 5_000);
    let rest = w.due(256, 248, 0);
    assert_eq!((names(&rest), rest.next_due_ms), (vec!["0:001".into(), "0:000".into()], Some(later)));
    let all = w.due(256, 0, 0);
    assert_eq!((all.members.len(), all.next_due_ms), (250, Some(later)));
    let full = w.due(250, 0, 0);
    assert_eq!((full.members.len(), full.next_due_ms), (250, Some(later)));
    let behind = w.due(10, 250, 0);
    assert_eq!((behind.members.len(), behind.next_due_ms), (0, Some(later)));
    assert_eq!(w.due(10, 999, 0).next_due_ms, None);
    let ahead = w.due(256, 0, 4_000_000);
    assert_eq!((ahead.members.len(), ahead.next_due_ms), (251, None));
}

#[test]
fn the_millisecond_of_the_due_has_to_be_over() {
    let mut w = Watched::new();
    let now = w.stage.wire.now_ms();
    for n in 0..60 {
        w.track(&n.to_string(), 1, now + n);
    }
    for _ in 0..20 {
        let page = w.due(256, 0, 5);
        assert!(page.members.iter().all(|(_, due)| *due < page.now_ms + 5));
        assert_eq!(page.next_due_ms, (page.now_ms + 5 < now + 60).then_some(page.now_ms + 5));
    }
}

#[test]
fn long_names_come_in_pages_of_1_mib_but_one_always() {
    let mut w = Watched::new();
    let past = w.past();
    for (n, size) in [1_500_000, 700_000, 300_000, 300_000, 1].into_iter().enumerate() {
        let name = [format!("{n}").into_bytes(), vec![b'x'; size]].concat();
        let item = w.item(key(name), 1, look(Due(past + n as u64)));
        w.settle(vec![item]);
    }
    let mut sizes = vec![];
    let mut offset = 0;
    loop {
        let page = w.due(256, offset, 0);
        sizes.push(page.members.len());
        offset += page.members.len() as u32;
        if page.next_due_ms.is_none() {
            break;
        }
    }
    assert_eq!(sizes, [1, 2, 2]);
}

#[test]
fn a_foreign_score_is_a_deadline_in_our_bounds() {
    let mut w = Watched::new();
    let watched = w.stage.partition.watched();
    for (score, member) in [("-inf", "a"), ("1.5", "b"), ("inf", "c")] {
        w.stage.wire.call(&[b"ZADD".as_slice(), &watched, score.as_bytes(), member.as_bytes()]).unwrap();
    }
    let page = w.due(10, 0, 0);
    assert_eq!(page.members, [("a".into(), 1), ("b".into(), 1)]);
    assert_eq!(page.next_due_ms, Some(7_258_118_400_000));
}

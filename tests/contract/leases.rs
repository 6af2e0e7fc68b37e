//! Renew and claim: a lease that ran out changes hands once, and the payload comes along.

use overdue_protocol::call::{Claim, Claimed, Holder, PAGE, Renew, ScheduleItem, Standing};
use overdue_protocol::entry::EntryId;
use overdue_tests::Stage;
use overdue_tests::stage::past;

fn claim(stage: &mut Stage, by: Standing, holder: Holder, after: EntryId, limit: u32) -> Claimed {
    stage.wire.run(&Claim { by, holder, after, limit }).unwrap()
}

fn pending(stage: &mut Stage) -> Vec<(String, u64)> {
    let stream = stage.partition.stream();
    let rows = stage.wire.call(&[b"XPENDING".as_slice(), &stream, b"billing", b"-", b"+", b"9999"]).unwrap();
    let read = |row: overdue_protocol::Reply| {
        let row = row.into_array().unwrap();
        (row[1].as_str().unwrap().to_owned(), row[3].as_u64().unwrap())
    };
    rows.into_array().unwrap().into_iter().map(read).collect()
}

#[test]
fn a_renewed_lease_is_not_claimed_and_a_lost_one_is_told() {
    let mut stage = Stage::new();
    stage.join("billing");
    let entries = stage.deliver("billing", "a", &["one", "two", "three"]);
    let read_at = stage.wire.now_ms();
    stage.pass(read_at + 60);
    let (a, b) = (stage.by("billing", "a"), stage.by("billing", "b"));
    let renew = Renew { by: a.clone(), entries: vec![entries[0], entries[2]] };
    assert!(stage.wire.run(&renew).unwrap().is_empty());
    let renewed = stage.wire.now_ms();
    let claimed =
        claim(&mut stage, b.clone(), Holder::Others { lease_ms: 50, alone: false }, EntryId::ZERO, PAGE);
    if stage.wire.now_ms() < renewed + 45 {
        assert_eq!(claimed.entries.len(), 1);
        assert_eq!((claimed.entries[0].entry.id, claimed.entries[0].deliveries), (entries[1], 1));
    }
    claim(&mut stage, b, Holder::Others { lease_ms: 0, alone: false }, EntryId::ZERO, PAGE);
    let lost = stage.wire.run(&Renew { by: a, entries: entries.clone() }).unwrap();
    assert_eq!(lost, [0, 1, 2]);
    assert_eq!(pending(&mut stage).iter().map(|(who, _)| who.as_str()).collect::<Vec<_>>(), ["b"; 3]);
    stage.assert_balanced();
}

#[test]
fn renewing_counts_no_delivery_and_a_thousand_fit() {
    let mut stage = Stage::new();
    stage.join("billing");
    let names: Vec<_> = (0..1000).map(|n| n.to_string()).collect();
    let entries = stage.deliver("billing", "a", &names.iter().map(String::as_str).collect::<Vec<_>>());
    let renew = Renew { by: stage.by("billing", "a"), entries };
    for _ in 0..3 {
        assert!(stage.wire.run(&renew).unwrap().is_empty());
    }
    assert!(pending(&mut stage).iter().all(|row| *row == ("a".to_owned(), 1)));
}

#[test]
fn others_are_claimed_in_pages_with_holder_deliveries_and_fields() {
    let mut stage = Stage::new();
    stage.join("billing");
    let entries = stage.deliver("billing", "a", &["one", "two", "three", "four", "five"]);
    let (b, others) = (stage.by("billing", "b"), Holder::Others { lease_ms: 0, alone: false });
    let first = claim(&mut stage, b.clone(), others.clone(), EntryId::ZERO, 2);
    assert_eq!(first.next, Some(entries[1]));
    let one = &first.entries[0];
    assert_eq!((one.entry.id, one.holder.as_ref(), one.deliveries), (entries[0], &b"a"[..], 1));
    assert_eq!(one.entry, stage.entries()[0]);
    let second = claim(&mut stage, b.clone(), others.clone(), entries[1], 2);
    let third = claim(&mut stage, b.clone(), others.clone(), entries[3], 2);
    assert_eq!((second.entries.len(), third.entries.len(), third.next), (2, 1, None));
    // What is its own it does not claim from others, and nothing was begun alone: Redis' counter stays.
    assert!(claim(&mut stage, b, others.clone(), EntryId::ZERO, PAGE).entries.is_empty());
    let c = stage.by("billing", "c");
    let all = claim(&mut stage, c, others, EntryId::ZERO, PAGE);
    assert!(all.entries.iter().all(|one| one.deliveries == 1 && one.holder == "b"));
    assert_eq!(pending(&mut stage), vec![("c".to_owned(), 1); 5]);
    stage.assert_balanced();
}

#[test]
fn only_what_is_claimed_to_run_alone_is_counted_and_a_retry_begins_anew() {
    let mut stage = Stage::new();
    stage.join("billing");
    stage.deliver("billing", "a", &["one", "two"]);
    let alone = Holder::Others { lease_ms: 0, alone: true };
    for (n, who) in ["b", "c", "d"].into_iter().enumerate() {
        let by = stage.by("billing", who);
        let claimed = claim(&mut stage, by.clone(), alone.clone(), EntryId::ZERO, 1);
        assert_eq!(claimed.entries[0].deliveries, n as u64 + 2);
        // Own entries that were out of hand, a renewal, and a claim among others count nothing.
        let own = Holder::Own { in_hand: vec![] };
        assert_eq!(claim(&mut stage, by.clone(), own, EntryId::ZERO, 1).entries[0].deliveries, n as u64 + 2);
        stage.wire.run(&Renew { by, entries: vec![claimed.entries[0].entry.id] }).unwrap();
    }
    assert_eq!(pending(&mut stage), [("d".to_owned(), 4), ("a".to_owned(), 1)]);
    let e = stage.by("billing", "e");
    let both =
        claim(&mut stage, e.clone(), Holder::Others { lease_ms: 0, alone: false }, EntryId::ZERO, PAGE);
    assert_eq!(both.entries.iter().map(|one| one.deliveries).collect::<Vec<_>>(), [4, 1]);
    // It came back alive: as a new entry, and no suspect.
    stage.release(e, &[both.entries[0].entry.id]);
    stage.sweep_retries();
    assert_eq!(stage.read("billing", "a").len(), 1);
    assert!(pending(&mut stage).iter().all(|(_, deliveries)| *deliveries == 1));
    stage.assert_balanced();
}

#[test]
fn what_goes_on_among_others_is_not_counted_and_only_by_its_holder() {
    let mut stage = Stage::new();
    stage.join("billing");
    let entries = stage.deliver("billing", "a", &["one", "two"]);
    let (b, c) = (stage.by("billing", "b"), stage.by("billing", "c"));
    claim(&mut stage, b.clone(), Holder::Others { lease_ms: 0, alone: true }, EntryId::ZERO, PAGE);
    assert_eq!(pending(&mut stage), vec![("b".to_owned(), 2); 2]);
    let among = |stage: &mut Stage, by: &Standing, entry| {
        let answer = claim(stage, by.clone(), Holder::Among { entries: vec![entry] }, EntryId::ZERO, PAGE);
        assert_eq!((answer.entries.len(), answer.gone, answer.next), (0, 0, None));
    };
    among(&mut stage, &c, entries[0]);
    assert_eq!(pending(&mut stage), vec![("b".to_owned(), 2); 2]);
    // Never below what a delivery leaves.
    for _ in 0..2 {
        among(&mut stage, &b, entries[0]);
        assert_eq!(pending(&mut stage), [("b".to_owned(), 1), ("b".to_owned(), 2)]);
    }
    among(&mut stage, &b, EntryId { ms: 1, seq: 1 });
    stage.assert_balanced();
}

#[test]
fn a_look_names_the_first_of_others_and_changes_nothing() {
    let mut stage = Stage::new();
    stage.join("billing");
    let names: Vec<_> = (0..300).map(|n| n.to_string()).collect();
    let entries = stage.deliver("billing", "a", &names.iter().map(String::as_str).collect::<Vec<_>>());
    let (a, b) = (stage.by("billing", "a"), stage.by("billing", "b"));
    let others = |lease_ms, alone| Holder::Others { lease_ms, alone };
    // The first 200 are b's: they hide nothing from it.
    for _ in 0..2 {
        claim(&mut stage, b.clone(), others(0, false), EntryId::ZERO, 100);
    }
    let before = stage.snapshot();
    for alone in [false, true] {
        let mut look = |by: &Standing, lease| {
            let found = claim(&mut stage, by.clone(), others(lease, alone), EntryId::ZERO, 0);
            assert_eq!((found.entries.len(), found.gone), (0, 0));
            found.next
        };
        assert_eq!(
            (look(&a, 0), look(&b, 0), look(&b, 3_600_000)),
            (Some(entries[0]), Some(entries[200]), None)
        );
    }
    assert_eq!(stage.snapshot(), before);
    assert_eq!(pending(&mut stage)[..200], vec![("b".to_owned(), 1); 200]);
    let one = claim(&mut stage, b.clone(), others(0, true), EntryId::ZERO, 1);
    assert_eq!((one.entries.len(), one.entries[0].entry.id, one.next), (1, entries[200], Some(entries[200])));
    // Of what somebody deleted the look says so too: a claim acknowledges it.
    let stream = stage.partition.stream();
    stage.wire.call(&[b"XDEL".as_slice(), &stream, &entries[0].to_bytes()]).unwrap();
    assert_eq!(claim(&mut stage, a.clone(), others(0, true), EntryId::ZERO, 0).next, Some(entries[0]));
    let gone = claim(&mut stage, a, others(0, true), EntryId::ZERO, 1);
    assert_eq!((gone.entries.len(), gone.gone, gone.next), (0, 1, Some(entries[0])));
}

#[test]
fn ones_own_come_back_but_those_in_hand_and_no_delivery_is_counted() {
    let mut stage = Stage::new();
    stage.join("billing");
    let entries = stage.deliver("billing", "a", &["one", "two", "three"]);
    stage.deliver("billing", "b", &["another's"]);
    let own = Holder::Own { in_hand: vec![entries[1]] };
    let by = stage.by("billing", "a");
    let claimed = claim(&mut stage, by.clone(), own.clone(), EntryId::ZERO, PAGE);
    let ids: Vec<_> = claimed.entries.iter().map(|one| (one.entry.id, one.deliveries)).collect();
    assert_eq!((ids, claimed.next), (vec![(entries[0], 1), (entries[2], 1)], None));
    assert!(pending(&mut stage).iter().all(|(_, deliveries)| *deliveries == 1));
    let mut after = EntryId::ZERO;
    let mut pages = vec![];
    loop {
        let page = claim(&mut stage, by.clone(), own.clone(), after, 1);
        pages.push(page.entries.len());
        match page.next {
            Some(next) => after = next,
            None => break,
        }
    }
    assert_eq!(pages, [1, 0, 1, 0]);
    stage.assert_balanced();
}

#[test]
fn what_somebody_deleted_is_acknowledged_and_counted_as_gone() {
    let mut stage = Stage::new();
    stage.join("billing");
    let entries = stage.deliver("billing", "a", &["one", "two", "three"]);
    let stream = stage.partition.stream();
    for entry in [entries[0], entries[2]] {
        stage.wire.call(&[b"XDEL".as_slice(), &stream, &entry.to_bytes()]).unwrap();
    }
    let a = stage.by("billing", "a");
    let own = Holder::Own { in_hand: vec![entries[2]] };
    let claimed = claim(&mut stage, a, own, EntryId::ZERO, PAGE);
    assert_eq!((claimed.entries.len(), claimed.gone), (1, 1));
    let b = stage.by("billing", "b");
    let claimed = claim(&mut stage, b, Holder::Others { lease_ms: 0, alone: false }, EntryId::ZERO, PAGE);
    assert_eq!((claimed.entries.len(), claimed.gone), (1, 1));
    assert_eq!(pending(&mut stage).len(), 1);
}

#[test]
fn a_page_of_large_payloads_ends_at_one_mebibyte_and_goes_on_behind() {
    let mut stage = Stage::new();
    stage.join("billing");
    for n in 0..5 {
        stage.arm_one(ScheduleItem { payload: vec![0; 700_000].into(), ..past(n.to_string()) });
    }
    while stage.sweep().more {}
    stage.read("billing", "a");
    let b = stage.by("billing", "b");
    let (mut after, mut pages) = (EntryId::ZERO, vec![]);
    loop {
        let page = claim(&mut stage, b.clone(), Holder::Others { lease_ms: 0, alone: false }, after, PAGE);
        pages.push(page.entries.len());
        match page.next {
            Some(next) => after = next,
            None => break,
        }
    }
    assert_eq!(pages, [2, 2, 1]);
}

#[test]
fn of_a_group_that_is_gone_the_error_says_so() {
    let mut stage = Stage::new();
    let by = stage.by("billing", "a");
    let call =
        Claim { by, holder: Holder::Others { lease_ms: 0, alone: false }, after: EntryId::ZERO, limit: PAGE };
    assert!(stage.wire.eval(&call).unwrap_err().contains("NOGROUP"));
    let call = Renew { by: stage.by("billing", "a"), entries: vec![EntryId { ms: 1, seq: 1 }] };
    assert!(stage.wire.eval(&call).unwrap_err().contains("NOGROUP"));
}

use std::time::Duration;

use super::*;

fn id(ms: u64) -> EntryId {
    EntryId { ms, seq: 0 }
}

fn admit(hands: &Hands, ids: &[u64]) -> Vec<Option<Ticket>> {
    let until = Instant::now() + Duration::from_secs(60);
    hands.admit(ids.iter().map(|&ms| (id(ms), State::Running)), until)
}

#[test]
fn what_is_in_hand_is_not_admitted_again() {
    let hands = Hands::default();
    let first = admit(&hands, &[1, 2]);
    assert!(first.iter().all(Option::is_some));
    assert!(matches!(admit(&hands, &[2, 3])[..], [None, Some(_)]));
    hands.settle(first.into_iter().flatten());
    assert!(matches!(admit(&hands, &[1, 2, 3])[..], [Some(_), Some(_), None]));
}

#[test]
fn an_old_ticket_touches_nothing_new() {
    let hands = Hands::default();
    let old = admit(&hands, &[1])[0].expect("it is free");
    hands.settle([old].into_iter());
    admit(&hands, &[1]);
    assert_eq!(hands.lose([old].into_iter()), 0);
    hands.settle([old].into_iter());
    assert_eq!(hands.len(), 1);
}

#[test]
fn a_lease_lost_while_the_outcome_is_on_its_way_is_the_answer_to_judge() {
    let hands = Hands::default();
    let ticket = admit(&hands, &[1])[0].expect("it is free");
    let mut outcomes = vec![ticket];
    assert!(!hands.decide(&mut outcomes, |&ticket| ticket));
    assert_eq!((outcomes.len(), hands.lose([ticket].into_iter())), (1, 0));
}

#[test]
fn an_outcome_after_the_lease_was_lost_counts_for_nothing() {
    let hands = Hands::default();
    let ticket = admit(&hands, &[1])[0].expect("it is free");
    let token = hands.lost(ticket);
    assert!(!token.is_cancelled());
    assert_eq!(hands.lose([ticket].into_iter()), 1);
    assert!(token.is_cancelled());
    // Still in hand until the task has ended one way or the other.
    assert_eq!(admit(&hands, &[1]), [None]);
    let mut outcomes = vec![ticket];
    assert!(hands.decide(&mut outcomes, |&ticket| ticket));
    assert_eq!((outcomes.len(), hands.len()), (0, 0));
    assert!(hands.lost(ticket).is_cancelled());
}

#[test]
fn only_a_lease_that_ran_out_is_given_up() {
    let hands = Hands::default();
    let now = Instant::now();
    let soon = now + Duration::from_secs(1);
    let tickets = hands.admit([(id(1), State::Running), (id(2), State::Deciding)].into_iter(), soon);
    admit(&hands, &[3]);
    assert_eq!(hands.lose_expired(now), 0);
    assert_eq!(hands.lose_expired(soon), 1);
    assert_eq!(hands.task_gone(tickets[0].expect("it is free")), Some(State::Dropped));
    assert_eq!(hands.len(), 2);
}

#[test]
fn what_is_stopped_stays_in_hand_for_its_release() {
    let hands = Hands::default();
    let ticket = admit(&hands, &[1])[0].expect("it is free");
    hands.stop_all();
    assert_eq!(hands.task_gone(ticket), Some(State::Stopping));
    let mut outcomes = vec![ticket];
    assert!(!hands.decide(&mut outcomes, |&ticket| ticket));
    assert_eq!((outcomes.len(), hands.leased().len()), (1, 1));
}

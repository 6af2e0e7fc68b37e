//! Consumers that left are removed; never one that holds something.

use std::collections::BTreeSet;
use std::time::Duration;

use overdue_tests::stage::group;
use overdue_tests::{Stage, eventually};

use super::stage::{consumers, emptied, reconcile, rule, store, take};

#[tokio::test]
async fn names_of_consumers_that_left_do_not_pile_up() {
    let mut stage = Stage::new();
    let working = reconcile(&stage.redis, vec![rule("mail")]).await;
    // Each under a name of its own: one in two dies with its timeout in hand.
    for n in 0..20 {
        stage.deliver_none(&[&format!("t{n}")]);
        for (_, entry, _) in take(&mut stage, "mail", &format!("c{n}")) {
            if n % 2 == 0 {
                stage.xack("mail", &[entry]);
            }
        }
    }
    assert!(consumers(&mut stage.wire, "mail").len() >= 20);
    // One goes on, and is not taken for one that left.
    let mut more = 0;
    eventually("only who is at work is left", async || {
        more += 1;
        stage.deliver_none(&[&format!("more{more}")]);
        for (_, entry, _) in take(&mut stage, "mail", "stays") {
            stage.xack("mail", &[entry]);
        }
        let names = consumers(&mut stage.wire, "mail");
        if names == ["stays"] { Ok(()) } else { Err(names) }
    })
    .await;
    emptied(&mut stage).await;
    assert_eq!(stage.dead().len(), 0, "who died with a timeout in hand cost one attempt");
    stage.assert_balanced();
    working.end().await;
}

#[tokio::test]
async fn a_consumer_with_something_pending_is_never_removed() {
    let mut stage = Stage::new();
    stage.join("mail");
    let store = store(&stage.redis).await;
    stage.deliver("mail", "holds", &["a"]);
    for name in ["idle", "me"] {
        let (stream, name) = (stage.partition.stream(), name.as_bytes());
        stage.redis.call(&[b"XGROUP".as_slice(), b"CREATECONSUMER", &stream, b"mail", name]);
    }
    let mut removed = vec![];
    eventually("the idle one is removed", async || {
        let gone = store.retire_idle(&stage.partition, &group("mail"), Duration::from_millis(50), "me").await;
        removed.extend(gone.unwrap());
        !removed.is_empty()
    })
    .await;
    assert_eq!(removed, ["idle"]);
    let left: BTreeSet<_> = consumers(&mut stage.wire, "mail").into_iter().collect();
    assert_eq!(left, ["holds", "me"].map(str::to_owned).into());
    assert_eq!(stage.claim(stage.by("mail", "me")).entries.len(), 1, "what it holds is still there");
}

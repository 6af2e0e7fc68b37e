//! What the reconciler does for consumers that only read and acknowledge.

use std::collections::BTreeMap;

use overdue_tests::{Stage, eventually};

use super::stage::{emptied, reconcile, rule, take};

#[tokio::test]
async fn what_is_not_acknowledged_comes_back_with_its_next_attempt_and_dies_after_the_last() {
    let mut stage = Stage::new();
    let working = reconcile(&stage.redis, vec![rule("mail"), rule("other")]).await;
    stage.deliver_none(&["good", "bad"]);
    let mut attempts = BTreeMap::<String, Vec<u64>>::new();
    eventually("the bad one is dead", async || {
        for (id, entry, attempt) in take(&mut stage, "mail", "c") {
            attempts.entry(id.clone()).or_default().push(attempt);
            if id == "good" {
                stage.xack("mail", &[entry]);
            }
        }
        stage.dead().len() == 1
    })
    .await;
    let expected = [("bad", vec![1, 2, 3]), ("good", vec![1])];
    assert_eq!(attempts, expected.map(|(id, tries)| (id.to_owned(), tries)).into());
    let letter = stage.dead().remove(0);
    let field = |name: &str| letter.field(name).map(|text| String::from_utf8_lossy(text).into_owned());
    assert_eq!(field("reason").as_deref(), Some("attempts"));
    assert_eq!((field("group").as_deref(), field("by").as_deref()), (Some("mail"), Some("c")));
    stage.assert_balanced();

    // The other group has not moved all the while, and is given each once.
    let mut ids: Vec<_> = take(&mut stage, "other", "c")
        .into_iter()
        .map(|(id, entry, attempt)| {
            stage.xack("other", &[entry]);
            (id, attempt)
        })
        .collect();
    ids.sort();
    assert_eq!(ids, [("bad".to_owned(), 1), ("good".to_owned(), 1)]);
    emptied(&mut stage).await;
    stage.assert_balanced();
    working.end().await;
}

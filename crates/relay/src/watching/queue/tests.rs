use overdue_protocol::QueueName;
use overdue_protocol::watch::{Glob, WatchedKey};
use overdue_store::Node;
use overdue_watch::Cause;

use super::*;

fn rule() -> Arc<Rule> {
    let queue = QueueName::new("q").unwrap();
    Arc::new(Rule::new(queue.clone(), Glob::new("*"), queue))
}

fn feed(db: u8) -> Feed {
    Feed { node: Node::server(), db }
}

fn fire(key: &'static str, position: u64) -> Fire {
    Fire { key: WatchedKey { db: 0, key: Bytes::from(key) }, rule: rule(), position, cause: Cause::Expired }
}

fn ask(key: impl Into<Bytes>, removal: bool) -> Ask {
    Ask { key: key.into(), rule: rule(), removal }
}

fn looks(batch: &Batch) -> Vec<(u8, &[u8], bool)> {
    let each = |(feed, asks)| {
        let (feed, asks): (&Feed, &Vec<Ask>) = (feed, asks);
        asks.iter().map(move |ask| (feed.db, ask.key.as_ref(), ask.removal))
    };
    batch.looks.iter().flat_map(each).collect()
}

#[tokio::test(start_paused = true)]
async fn a_key_that_changes_again_and_again_is_looked_at_once_in_its_old_place() {
    let queue = Queue::new(10, 10);
    assert_eq!(queue.put_look(1, &feed(0), ask("a", true)), Put::Waits);
    assert_eq!(queue.put_look(2, &feed(0), ask("b", false)), Put::Waits);
    assert_eq!(queue.put_look(3, &feed(0), ask("a", false)), Put::Merged);
    assert_eq!(queue.put_look(4, &feed(3), ask("a", false)), Put::Waits);
    assert_eq!(queue.put_look(5, &feed(0), ask("b", true)), Put::Merged);
    let batch = queue.take().await.unwrap();
    // Removed and written again: what was written may have ended too, and then nothing else takes it from the index.
    assert_eq!(looks(&batch), [(0, &b"a"[..], true), (0, b"b", true), (3, b"a", false)]);
    assert_eq!(
        queue.put_look(6, &feed(0), ask("a", true)),
        Put::Waits,
        "what is under way is not merged with"
    );
}

#[tokio::test(start_paused = true)]
async fn the_oldest_is_unanswered_until_its_batch_is() {
    let queue = Queue::new(10, 10);
    assert_eq!(queue.oldest(), None);
    queue.put_look(4, &feed(0), ask("a", false));
    queue.put_fire(5, fire("b", 1_001));
    let batch = queue.take().await.unwrap();
    assert_eq!((batch.fires.len(), looks(&batch).len()), (1, 1));
    queue.put_fire(6, fire("c", 1_001));
    assert_eq!(queue.oldest(), Some(4));
    queue.answered();
    assert_eq!(queue.oldest(), Some(6));
}

#[tokio::test(start_paused = true)]
async fn fires_keep_their_order_and_wait_a_millisecond_and_looks_five() {
    let queue = Queue::new(10, 10);
    let begun = Instant::now();
    queue.put_fire(1, fire("a", 1_001));
    queue.put_fire(2, fire("a", 1_002));
    let batch = queue.take().await.unwrap();
    assert_eq!(batch.fires.iter().map(|fire| fire.position).collect::<Vec<_>>(), [1_001, 1_002]);
    assert!(begun.elapsed() < GATHER_LOOKS, "{:?}", begun.elapsed());

    let begun = Instant::now();
    queue.put_look(3, &feed(0), ask("a", false));
    queue.take().await.unwrap();
    assert!(begun.elapsed() >= GATHER_LOOKS, "{:?}", begun.elapsed());

    let begun = Instant::now();
    queue.put_look(4, &feed(0), ask("a", false));
    let (batch, ()) =
        tokio::join!(queue.take(), async { assert_eq!(queue.put_fire(5, fire("b", 1)), Put::Waits) });
    assert_eq!(batch.unwrap().fires.len(), 1);
    assert!(begun.elapsed() < GATHER_LOOKS, "a fire hastens the batch: {:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_full_page_does_not_wait_and_the_rest_follows() {
    let queue = Queue::new(1_000, 1_000);
    for n in 0..300 {
        queue.put_look(n, &feed(0), ask(n.to_string(), false));
    }
    let begun = Instant::now();
    assert_eq!(looks(&queue.take().await.unwrap()).len(), PAGE);
    assert!(begun.elapsed().is_zero());
    assert_eq!((queue.oldest(), queue.len()), (Some(0), 44));
    assert_eq!(looks(&queue.take().await.unwrap()).len(), 44);
}

#[tokio::test(start_paused = true)]
async fn what_has_no_room_is_dropped_and_looks_take_no_room_from_fires() {
    let queue = Queue::new(2, 1);
    assert_eq!(queue.put_look(1, &feed(0), ask("a", false)), Put::Waits);
    assert_eq!(queue.put_look(2, &feed(0), ask("b", false)), Put::Full);
    assert_eq!(queue.put_look(3, &feed(0), ask("a", false)), Put::Merged);
    let puts: Vec<_> = (4..7).map(|n| queue.put_fire(n, fire("a", n))).collect();
    assert_eq!(puts, [Put::Waits, Put::Waits, Put::Full]);
}

#[tokio::test(start_paused = true)]
async fn long_names_are_bounded_by_their_bytes() {
    let queue = Queue::new(1_000, 1_000);
    let long = |n: u8| ask(vec![n; 5 * 1024 * 1024], false);
    let puts: Vec<_> = (0..4).map(|n| queue.put_look(n.into(), &feed(0), long(n))).collect();
    assert_eq!(puts, [Put::Waits, Put::Waits, Put::Waits, Put::Full]);
    queue.take().await.unwrap();
    assert_eq!(queue.put_look(9, &feed(0), long(9)), Put::Waits);
}

#[tokio::test(start_paused = true)]
async fn a_closed_queue_gives_what_it_has_and_then_ends() {
    let queue = Queue::new(10, 10);
    queue.put_fire(1, fire("a", 1));
    queue.close();
    assert_eq!(queue.take().await.unwrap().fires.len(), 1);
    assert!(queue.take().await.is_none());
}

//! What a look needs: the rules, the nodes of the keys, the partitions of the queues.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use overdue_protocol::call::{PAGE_BYTES, Settle, SettleItem, Settled, SettledWord};
use overdue_protocol::watch::{Rule, Rules};
use overdue_protocol::{Partition, QueueName, partition};
use overdue_store::{Backoff, Error, ErrorKind, Feed, Nodes, Result, Store};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::proofs::Proofs;

/// The most keys in one call of a script.
pub(crate) const PAGE: usize = 256;
/// How long the same settle is repeated. It holds proofs that no second touch can give.
const PATIENCE: Duration = Duration::from_secs(30);

/// Looks at watched keys, and fires them. Clones share everything.
#[derive(Clone)]
pub struct Looker {
    shared: Arc<Shared>,
}

struct Shared {
    store: Store,
    nodes: Nodes,
    rules: Rules,
    /// Of each queue. Built once: a key of ours costs as much to write as the rest of a look.
    partitions: BTreeMap<QueueName, Vec<Partition>>,
    value_max: u32,
    proofs: Arc<Proofs>,
}

/// What is still to be settled at a partition, with its place among the answers.
type Waiting = VecDeque<(usize, SettleItem)>;
/// The word and the deadline of an item, and the server's now in unix milliseconds.
type Word = (SettledWord, u64, u64);
pub(crate) type Words = Vec<Word>;

impl Looker {
    /// Creates the queues of the rules that are not there yet. Values of more than `value_max` bytes are not captured.
    ///
    /// # Errors
    /// Redis does not answer or refuses; a queue is in a newer format.
    pub async fn open(store: Store, nodes: Nodes, rules: Rules, value_max: u32) -> Result<Self> {
        let mut partitions = BTreeMap::new();
        for queue in rules.queues() {
            let (info, created) = store.create_queue(&queue, store.default_partitions()).await?;
            if created {
                tracing::info!(%queue, "created the queue of a watch rule");
            }
            let of_queue = |number| store.keyspace().partition(&queue, number);
            partitions.insert(queue.clone(), (0..info.partitions.max(1)).map(of_queue).collect());
        }
        let proofs = Arc::default();
        Ok(Self { shared: Arc::new(Shared { store, nodes, rules, partitions, value_max, proofs }) })
    }

    /// The rules.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.shared.rules
    }

    /// The connection to the indexes.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.shared.store
    }

    /// The nodes of the keys.
    #[must_use]
    pub fn nodes(&self) -> &Nodes {
        &self.shared.nodes
    }

    /// Whether any rule is of the feed's database. The nodes may be connected to others too.
    #[must_use]
    pub fn watches(&self, feed: &Feed) -> bool {
        self.shared.rules.all().iter().any(|rule| rule.db == feed.db)
    }

    /// Every partition that keys of the rules may be in.
    #[must_use]
    pub fn partitions(&self) -> Vec<Partition> {
        self.shared.partitions.values().flatten().cloned().collect()
    }

    /// Where a key of a rule is.
    ///
    /// # Panics
    /// The rule is none of these rules.
    #[must_use]
    pub fn partition_of(&self, rule: &Rule, key: &[u8]) -> &Partition {
        let of_queue = self.shared.partitions.get(&rule.queue).expect("the rule is one of ours");
        match &of_queue[..] {
            [only] => only,
            several => &several[partition::of(key, several.len() as u32) as usize],
        }
    }

    pub(crate) fn proofs(&self) -> &Arc<Proofs> {
        &self.shared.proofs
    }

    pub(crate) fn value_max(&self) -> u32 {
        self.shared.value_max
    }

    /// Settles items, each at its partition, in their order; answers in the same order. What is not executed, or not
    /// known to be, is repeated: a settle may be applied any number of times.
    pub(crate) async fn settle(&self, items: Vec<(&Partition, SettleItem)>) -> Result<Words> {
        let mut words: Words = vec![(SettledWord::Gone, 0, 0); items.len()];
        let mut queues: BTreeMap<(&QueueName, u32), (&Partition, Waiting)> = BTreeMap::new();
        for (at, (partition, item)) in items.into_iter().enumerate() {
            let place = (partition.queue(), partition.number());
            queues.entry(place).or_insert_with(|| (partition, Waiting::new())).1.push_back((at, item));
        }
        // All at once: on a cluster they are at different nodes, and one that is down must not hold up the others.
        let mut settling = JoinSet::new();
        let mut queues = queues.into_values();
        let last = queues.next_back();
        for (partition, items) in queues {
            let (looker, partition) = (self.clone(), partition.clone());
            settling.spawn(async move { looker.settle_partition(&partition, items).await });
        }
        let mut failed = None;
        let mut put = |settled: Result<Vec<(usize, Word)>>| match settled {
            Ok(settled) => settled.into_iter().for_each(|(at, word)| words[at] = word),
            Err(error) => failed = Some(error),
        };
        if let Some((partition, items)) = last {
            put(self.settle_partition(partition, items).await);
        }
        while let Some(settled) = settling.join_next().await {
            let ended = |_| Error::new(ErrorKind::Closed, "settle watched keys", "this process is ending");
            put(settled.map_err(ended).and_then(|settled| settled));
        }
        failed.map_or(Ok(words), Err)
    }

    async fn settle_partition(
        &self,
        partition: &Partition,
        mut left: VecDeque<(usize, SettleItem)>,
    ) -> Result<Vec<(usize, Word)>> {
        let mut words = Vec::with_capacity(left.len());
        while !left.is_empty() {
            let (places, items): (Vec<_>, Vec<_>) = left.drain(..page(&left)).unzip();
            let call = Settle { partition: partition.clone(), items };
            let settled = self.settle_page(&call).await?;
            let mut again = vec![];
            for (((word, due_ms), at), item) in settled.words.into_iter().zip(places).zip(call.items) {
                if word == SettledWord::More {
                    again.push((at, item));
                } else {
                    words.push((at, (word, due_ms, settled.now_ms)));
                }
            }
            again.into_iter().rev().for_each(|item| left.push_front(item));
        }
        Ok(words)
    }

    async fn settle_page(&self, call: &Settle) -> Result<Settled> {
        persist(PATIENCE, || self.shared.store.run(call)).await
    }
}

/// Does something that may be repeated until it works, for so long.
pub(crate) async fn persist<T, F>(patience: Duration, mut work: impl FnMut() -> F) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let until = Instant::now() + patience;
    let mut backoff = Backoff::default();
    loop {
        let error = match work().await {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        let wait = backoff.next_wait();
        if !error.is_retryable() || Instant::now() + wait >= until {
            return Err(error);
        }
        sleep(wait).await;
    }
}

/// How many of these fit into one call: one at least.
fn page(items: &Waiting) -> usize {
    let mut bytes = 0;
    let fits = |(_, item): &&(usize, SettleItem)| {
        bytes += item.weight();
        bytes <= PAGE_BYTES as usize
    };
    items.iter().take(PAGE).take_while(fits).count().max(1)
}

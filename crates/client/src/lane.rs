//! One lane of a partition: what arrives while a call is under way goes into the next one.
//!
//! A lane has at most one call of each kind in flight, and an id always takes the same lane: so two calls for one
//! id never overtake each other, whatever is sent again meanwhile. Nothing waits for company: only those who are ready
//! to run are let run before a call goes out.

use overdue_protocol::TimerId;
use overdue_protocol::call::{CancelItem, ScheduleItem};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::ErrorKind;
use crate::answer::{Armed, Scheduled};
use crate::carrier::Carrier;
use crate::departure::Departure;
use crate::page::{Failure, Outcome};

/// Callers beyond so many jobs wait in line before the lane.
pub(crate) const CAPACITY: usize = 256;

/// How often others are let run before a call goes out, while each time more of them come.
const YIELDS: usize = 8;

/// One item of a job: a timer to arm, or to disarm.
pub(crate) trait Item: Clone + Send + Sized {
    /// What became of it.
    type Answer: Send;

    fn id(&self) -> &TimerId;
    /// The bytes of its payload.
    fn bytes(&self) -> usize;
    fn job(load: Load<Self>) -> Job;
}

impl Item for ScheduleItem {
    type Answer = Scheduled;

    fn id(&self) -> &TimerId {
        &self.id
    }

    fn bytes(&self) -> usize {
        self.payload.len()
    }

    fn job(load: Load<Self>) -> Job {
        Job::Arm(load)
    }
}

impl Item for CancelItem {
    type Answer = Option<Armed>;

    fn id(&self) -> &TimerId {
        &self.id
    }

    fn bytes(&self) -> usize {
        0
    }

    fn job(load: Load<Self>) -> Job {
        Job::Disarm(load)
    }
}

/// Gives each caller the answers for the items of its load.
pub(crate) type Answers<O> = oneshot::Sender<Vec<Outcome<O>>>;

/// Items of one caller, at most a page, in the caller's order.
pub(crate) struct Load<I: Item> {
    pub(crate) items: Vec<I>,
    pub(crate) until: Instant,
    pub(crate) answer: Answers<I::Answer>,
}

pub(crate) enum Job {
    Arm(Load<ScheduleItem>),
    Disarm(Load<CancelItem>),
}

impl Job {
    /// Whether nobody waits for the answer any more: what was not sent is not sent then.
    fn is_abandoned(&self) -> bool {
        match self {
            Job::Arm(load) => load.answer.is_closed(),
            Job::Disarm(load) => load.answer.is_closed(),
        }
    }

    /// Gives the job back, unless its time went by in line: then that is the answer.
    fn in_time(self) -> Option<Self> {
        let now = Instant::now();
        match self {
            Job::Arm(load) => load.in_time(now).map(Job::Arm),
            Job::Disarm(load) => load.in_time(now).map(Job::Disarm),
        }
    }
}

impl<I: Item> Load<I> {
    fn in_time(self, now: Instant) -> Option<Self> {
        if now < self.until {
            return Some(self);
        }
        let late = || {
            Failure::new(
                ErrorKind::Unavailable,
                "Redis did not answer the calls before it in time: it was not sent",
            )
        };
        let _ = self.answer.send(self.items.iter().map(|_| Err(late())).collect());
        None
    }
}

/// Works until every sender is gone and everything is answered.
pub(crate) async fn run(carrier: Carrier, mut jobs: mpsc::Receiver<Job>) {
    let mut left = None;
    loop {
        let first = match left.take() {
            Some(job) => job,
            None => match jobs.recv().await {
                Some(job) => job,
                None => return,
            },
        };
        gather(&jobs).await;
        let mut departure = Departure::new();
        let mut next = Some(first);
        while let Some(job) = next {
            if !job.is_abandoned()
                && let Some(job) = job.in_time()
                && let Err(job) = departure.add(job)
            {
                left = Some(job);
                break;
            }
            next = jobs.try_recv().ok();
        }
        departure.go(&carrier).await;
    }
}

/// Those who were just answered come back before the next call goes out, if they are quick: a small call costs Redis
/// several times as much for each timer.
async fn gather(jobs: &mpsc::Receiver<Job>) {
    let mut waiting = jobs.len();
    for _ in 0..YIELDS {
        tokio::task::yield_now().await;
        if jobs.len() <= waiting {
            break;
        }
        waiting = jobs.len();
    }
}

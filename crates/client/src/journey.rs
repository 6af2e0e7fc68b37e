//! Items on their way through the lanes, and anew when their queue turns out to have another number of partitions.

use std::sync::Arc;

use overdue_protocol::call::ScheduleItem;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::ErrorKind;
use crate::answer::Scheduled;
use crate::carrier::Wait;
use crate::lane::{Item, Load};
use crate::page::{Failure, Outcome};
use crate::route::Route;

/// How often items are sent anew because the number of partitions is another one.
const MOVES: usize = 3;

impl Route {
    /// Brings items to their lanes; answers in their order.
    pub(crate) async fn carry<I: Item>(self: &Arc<Self>, items: &[I]) -> Vec<Outcome<I::Answer>> {
        let until = Instant::now() + self.deadline;
        let mut outcomes: Vec<Outcome<I::Answer>> = items.iter().map(|_| Err(moving())).collect();
        let mut open: Vec<usize> = (0..items.len()).collect();
        for _ in 0..=MOVES {
            let answers = self.carry_once(items, &open, until).await;
            let mut theirs = None;
            let mut moved = Vec::new();
            for (at, answer) in answers {
                if let Err(Failure::Partitions(number)) = answer {
                    theirs = Some(number);
                    moved.push(at);
                } else {
                    outcomes[at] = answer;
                }
            }
            let Some(theirs) = theirs else { break };
            open = moved;
            if let Err(failure) = self.agree(theirs).await {
                open.drain(..).for_each(|at| outcomes[at] = Err(failure.clone()));
                break;
            }
        }
        outcomes
    }

    /// Answers for each of the open items, with its place.
    async fn carry_once<I: Item>(
        self: &Arc<Self>,
        items: &[I],
        open: &[usize],
        until: Instant,
    ) -> Vec<(usize, Outcome<I::Answer>)> {
        let lanes = match self.lanes() {
            Ok(lanes) => lanes,
            Err(failure) => return open.iter().map(|&at| (at, Err(failure.clone()))).collect(),
        };
        let mut waiting = Vec::new();
        for (lane, places) in lanes.split(items, open) {
            let (answer, answered) = oneshot::channel();
            let items = places.iter().map(|&at| items[at].clone()).collect();
            lanes.send(lane, I::job(Load { items, until, answer })).await;
            waiting.push((places, answered));
        }
        let mut all = Vec::with_capacity(open.len());
        for (places, answered) in waiting {
            match answered.await {
                Ok(answers) => all.extend(places.into_iter().zip(answers)),
                Err(_) => all.extend(places.into_iter().map(|at| (at, Err(ended())))),
            }
        }
        all
    }

    /// Arms one timer past the lanes, and waits for replicas.
    pub(crate) async fn carry_alone(self: &Arc<Self>, item: &ScheduleItem, wait: Wait) -> Outcome<Scheduled> {
        let until = Instant::now() + self.deadline;
        for _ in 0..=MOVES {
            let lanes = self.lanes()?;
            let carrier = lanes.carrier(lanes.partition(&item.id));
            match carrier.arm(vec![item.clone()], vec![until], Some(wait)).await.pop() {
                Some(Err(Failure::Partitions(theirs))) => self.agree(theirs).await?,
                Some(outcome) => return outcome,
                None => break,
            }
        }
        Err(moving())
    }
}

fn moving() -> Failure {
    Failure::new(
        ErrorKind::PartitionsDisagree,
        "its number of partitions keeps changing: nothing was written",
    )
}

fn ended() -> Failure {
    Failure::new(ErrorKind::OutcomeUnknown, "the task that sends has ended: was its runtime shut down?")
}

//! Hands timeouts to commands that stay: each takes a line of JSON on stdin, works, and answers with a line on stdout.
//!
//! A command runs one timeout at a time; there are as many of them as timeouts are handled at once, and each is started
//! when it is first needed. One that dies takes only the timeout with it that it was working on; one that says what can't
//! be understood is ended, because the next answer may belong to anything. They are ended as those of [`crate::Exec`].

mod answer;
mod crew;
mod worker;

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use overdue_consumer::{Handler, Outcome, Raw, Timeout};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::child::Groups;
use crate::ending::Ending;
use crate::find;
use crate::message::Message;
use crew::Crew;
use worker::Said;

/// The handler.
#[derive(Debug)]
pub struct Pipe {
    crew: Arc<Crew>,
    ending: Ending,
}

/// What a command reads.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    message: Message<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<&'a str>,
}

impl Pipe {
    /// Takes the command and its arguments, at least one word. One timeout may take `limit` (`None` = any time), and go on
    /// for `grace` after `stop`: give the consumer no limit, and [`crate::PATIENCE`] more grace than that.
    ///
    /// # Errors
    /// There is no such command, or it can't be run; a sentence for people.
    pub fn new(
        command: Vec<OsString>,
        limit: Option<Duration>,
        stop: CancellationToken,
        grace: Duration,
        groups: &Groups,
    ) -> Result<Self, String> {
        find::check(&command)?;
        let crew = Arc::new(Crew::new(command, groups.clone()));
        let (idle, stopped) = (Arc::clone(&crew), stop.clone());
        groups.beside(async move {
            stopped.cancelled().await;
            idle.close().await;
        });
        Ok(Self { crew, ending: Ending { limit, stop, grace } })
    }

    /// Hands it to one command. `None`: that one left before it took it.
    async fn hand(&self, line: &[u8], key: &str) -> Option<Outcome> {
        let taken = tokio::select! {
            taken = self.crew.take() => taken,
            () = self.ending.grace_is_over() => return Some(Outcome::Release),
        };
        let mut worker = match taken {
            Ok(worker) => worker,
            Err(error) => return Some(Outcome::unreachable(error)),
        };
        let said = tokio::select! {
            said = worker.exchange(line) => said,
            over = self.ending.over() => {
                worker.end().await;
                return Some(over);
            }
        };
        let problem = match said {
            Said::Line(said) => match answer::read(&said, key) {
                Ok(outcome) => {
                    self.crew.give_back(worker);
                    return Some(outcome);
                }
                Err(problem) => problem,
            },
            Said::TooMuch => answer::TOO_LONG.to_owned(),
            Said::Ended => {
                let (left, reason) = worker.ended().await;
                if left {
                    return None;
                }
                self.crew.lost(&reason);
                return Some(Outcome::retry(reason));
            }
        };
        worker.end().await;
        self.crew.lost(&problem);
        Some(Outcome::retry(problem))
    }
}

impl Handler<Raw> for Pipe {
    async fn handle(&self, timeout: Timeout<Raw>) -> Outcome {
        let message = Message::from(&timeout);
        let key = message.key.clone();
        let mut line = serde_json::to_vec(&Line { message, traceparent: timeout.traceparent() })
            .expect("an object of texts and numbers can be written");
        line.push(b'\n');
        // A command that has served may leave when it likes; once is a coincidence.
        for _ in 0..2 {
            if let Some(outcome) = self.hand(&line, &key).await {
                return outcome;
            }
        }
        Outcome::retry("two commands in a row ended with exit code 0 instead of an answer")
    }
}

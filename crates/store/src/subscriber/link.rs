//! The subscription of one node: connected, confirmed pattern by pattern, heard, and made anew when it breaks.

use std::time::Duration;

use bytes::Bytes;
use overdue_telemetry::label::ConnectionRole;
use redis_protocol::resp2::types::RangeFrame;
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, yield_now};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{debug, warn};

use super::ear::Ear;
use super::line::{Line, refusal, text};
use super::login::Login;
use super::outlet::Voice;
use crate::fault::Fault;
use crate::meter::Presence;
use crate::{Backoff, Error, ErrorKind};

/// How often a node that says nothing is asked whether it is there, and how long the next byte may take then.
const HEARTBEAT: (Duration, Duration) = (Duration::from_secs(1), Duration::from_millis(500));
/// How long a later attempt may take; the first one has the connect deadline.
const ATTEMPT: Duration = Duration::from_secs(2);
/// The shortest time between two log lines about a refusal.
const SILENCE: Duration = Duration::from_secs(30);

/// A subscription that is kept up until it is dropped.
pub(super) struct Link {
    voice: Voice,
    first: Option<oneshot::Receiver<crate::Result<()>>>,
    task: AbortHandle,
}

impl Link {
    /// Begins to subscribe to `patterns` (each once), for ever; the first attempt may take so long.
    pub(super) fn start(login: Login, voice: Voice, patterns: Vec<Bytes>, deadline: Duration) -> Self {
        let (told, first) = oneshot::channel();
        let keeper = Keeper { login, voice: voice.clone(), patterns };
        let task = tokio::spawn(keeper.run(deadline, told)).abort_handle();
        Self { voice, first: Some(first), task }
    }

    /// How the first attempt ended; it goes on trying either way.
    pub(super) async fn first_attempt(&mut self) -> crate::Result<()> {
        let ended = || Error::new(ErrorKind::Closed, "subscribe", "it was closed by this process");
        match self.first.take() {
            Some(first) => first.await.map_err(|_| ended())?,
            None => Ok(()),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
        self.voice.end();
    }
}

struct Keeper {
    login: Login,
    voice: Voice,
    patterns: Vec<Bytes>,
}

impl Keeper {
    async fn run(mut self, mut deadline: Duration, told: oneshot::Sender<crate::Result<()>>) {
        let (mut told, mut backoff) = (Some(told), Backoff::default());
        let mut warned: Option<Instant> = None;
        let mut presence = Presence::new(ConnectionRole::Subscription);
        loop {
            let attempt = timeout(deadline, self.subscribe()).await;
            let attempt = attempt
                .unwrap_or_else(|_| Err(Fault::new(ErrorKind::Unreachable, "no answer within the deadline")));
            let mut lived = false;
            let why = match attempt {
                Ok(mut line) => {
                    let since = Instant::now();
                    self.voice.opened();
                    presence.set(true);
                    debug!(node = %self.voice.node(), "subscribed");
                    told.take().map(|told| told.send(Ok(())));
                    let why = self.listen(&mut line).await;
                    self.voice.closed();
                    presence.set(false);
                    lived = since.elapsed() > HEARTBEAT.0;
                    why
                }
                Err(fault) => {
                    let place = self.login.place();
                    match told.take() {
                        Some(told) => drop(told.send(Err(fault.clone().during("subscribe", &place)))),
                        // A server that is away is the holder's news; a refusal is somebody's mistake.
                        None if fault.kind == ErrorKind::Refused
                            && warned.is_none_or(|at| at.elapsed() > SILENCE) =>
                        {
                            warned = Some(Instant::now());
                            warn!(place, why = fault.text, "the subscription is refused; trying again");
                        }
                        None => {}
                    }
                    fault
                }
            };
            deadline = deadline.min(ATTEMPT);
            let wait = if lived {
                backoff.reset();
                None
            } else {
                Some(backoff.next_wait())
            };
            debug!(node = %self.voice.node(), why = why.text, ?wait, "no subscription; trying again");
            // The first attempt is made at once, without even a sleep of nothing, which takes a millisecond: what
            // expires meanwhile is told to nobody.
            if let Some(wait) = wait {
                sleep(wait).await;
            }
        }
    }

    /// Connects, and waits until every pattern is confirmed. What is heard before that is part of the gap.
    async fn subscribe(&mut self) -> Result<Line, Fault> {
        // One command each: so an answer is of one pattern.
        let commands: Vec<[&[u8]; 2]> =
            self.patterns.iter().map(|pattern| [b"PSUBSCRIBE".as_slice(), pattern]).collect();
        let commands: Vec<_> = commands.iter().map(<[_; 2]>::as_slice).collect();
        let mut line = self.login.connect_with(&commands).await?;
        let mut open = self.patterns.iter().peekable();
        while let Some(pattern) = open.peek() {
            match line.next()? {
                None => line.fill().await?,
                Some((frame, bytes)) => {
                    if is_confirmation(&frame, bytes, pattern).map_err(|fault| naming(fault, pattern))? {
                        open.next();
                    }
                }
            }
        }
        Ok(line)
    }

    /// Hears until it breaks; answers why.
    async fn listen(&mut self, line: &mut Line) -> Fault {
        let mut ear = Ear::new(self.voice.node().clone(), self.patterns.len());
        let mut heard = vec![];
        let (mut asked, mut next) = (false, Instant::now() + HEARTBEAT.0);
        let mut moved = std::pin::pin!(self.login.moved(line.peer));
        loop {
            let broken = drain(line, &mut ear, &mut heard);
            self.voice.tell(&mut heard);
            if let Err(fault) = broken {
                return fault;
            }
            if self.voice.is_pressed() {
                yield_now().await;
            }
            tokio::select! {
                // What is here proves that the node lives, however late we look.
                biased;
                filled = line.fill() => match filled {
                    Ok(()) => (asked, next) = (false, Instant::now() + HEARTBEAT.0),
                    Err(fault) => return fault,
                },
                () = sleep_until(next) => {
                    if asked {
                        return Fault::new(ErrorKind::Unreachable, "it does not answer a PING");
                    }
                    match timeout(HEARTBEAT.1, line.send(&[&[b"PING"]])).await {
                        Ok(Ok(())) => (asked, next) = (true, Instant::now() + HEARTBEAT.1),
                        Ok(Err(fault)) => return fault,
                        Err(_) => return Fault::new(ErrorKind::Unreachable, "it does not take a PING"),
                    }
                }
                () = &mut moved => return Fault::new(ErrorKind::Unavailable, "another server is the primary now"),
            }
        }
    }
}

/// Hears every frame that is here in full.
fn drain(line: &mut Line, ear: &mut Ear, heard: &mut Vec<crate::Signal>) -> Result<(), Fault> {
    while let Some((frame, bytes)) = line.next()? {
        heard.extend(ear.hear(&frame, bytes)?);
    }
    Ok(())
}

/// Whether the server confirms this pattern here; another pattern's message may come first.
fn is_confirmation(frame: &RangeFrame, bytes: &[u8], pattern: &[u8]) -> Result<bool, Fault> {
    if let Some(fault) = refusal(frame, bytes) {
        return Err(fault);
    }
    let strange = || Fault::new(ErrorKind::Malformed, "it answers PSUBSCRIBE with something else");
    let RangeFrame::Array(parts) = frame else { return Err(strange()) };
    let part = |i: usize| parts.get(i).and_then(|part| text(part, bytes)).unwrap_or_default();
    match part(0) {
        b"pmessage" => Ok(false),
        b"psubscribe" if part(1) == pattern => Ok(true),
        _ => Err(strange()),
    }
}

/// A refusal with the channel rule that the user lacks: Redis does not say which.
fn naming(fault: Fault, pattern: &[u8]) -> Fault {
    if fault.kind != ErrorKind::Refused || !fault.text.contains("channel") {
        return fault;
    }
    let rule = pattern.escape_ascii();
    Fault { text: format!("{}; its channel rule &{rule} is missing", fault.text), ..fault }
}

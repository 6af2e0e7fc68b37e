//! A reader's connection to one server, spoken to without the library: made when it is first needed, and again after
//! whatever leaves it in doubt.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::time::Duration;

use overdue_protocol::{RawEntry, Reply};
use overdue_telemetry::label::ConnectionRole;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_rustls::TlsConnector;

use super::page::Page;
use crate::endpoint::Endpoint;
use crate::fault::Fault;
use crate::meter::{Meter, Presence};
use crate::order::{Order, Route};
use crate::subscriber::line::Line;
use crate::subscriber::login::Login;
use crate::{Backoff, ErrorKind, Settings};

/// How long a later attempt to connect may take; the first one has the connect deadline.
const ATTEMPT: Duration = Duration::from_secs(2);

/// The longest entry: as Redis' own limit of a string, and some more.
const LONGEST: usize = 1024 * 1024 * 1024;

/// At most one read at a time.
pub(super) struct Direct {
    place: String,
    reading: Mutex<Reading>,
    /// The connection that asks to end a read.
    ending: Mutex<(Login, Option<Line>)>,
    /// What the server calls the connection that reads; 0 = it does not tell.
    id: AtomicI64,
    /// An answer is waited for.
    waits: AtomicBool,
    closed: AtomicBool,
    meter: Meter,
}

struct Reading {
    login: Login,
    line: Option<Line>,
    presence: Presence,
}

impl Direct {
    /// Connects; fails fast and says why.
    pub(super) async fn open(
        settings: &Settings,
        at: Endpoint,
        tls: Option<TlsConnector>,
        role: &str,
    ) -> Result<Self, Fault> {
        let presence = Presence::new(ConnectionRole::Reader);
        let login = |name: &str| Login::new(at.clone(), tls.clone(), name);
        let direct = Self {
            place: at.to_string(),
            reading: Mutex::new(Reading { login: login(role), line: None, presence }),
            ending: Mutex::new((login(role), None)),
            id: AtomicI64::new(0),
            waits: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            meter: Meter::default(),
        };
        let mut reading = direct.reading.lock().await;
        let line = direct.connect(&mut reading, settings.connect_deadline).await?;
        reading.line = Some(line);
        drop(reading);
        Ok(direct)
    }

    /// The address for errors, without password.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// Sends a read, and waits for its answer until the deadline. Dropped in between, its connection is given up.
    pub(super) async fn read(
        &self,
        name: &'static str,
        words: &[&[u8]],
        deadline: Duration,
    ) -> Result<Vec<RawEntry>, Fault> {
        let begun = Instant::now();
        let answer = self.exchange(words, begun + deadline).await;
        let order = Order::new(name, vec![], Route::Blocking(0), deadline);
        self.meter.count(&order, begun.elapsed(), &answer);
        answer
    }

    async fn exchange(&self, words: &[&[u8]], until: Instant) -> Result<Vec<RawEntry>, Fault> {
        let mut reading = self.reading.lock().await;
        let mut line = match reading.line.take() {
            Some(line) => line,
            None => self.reach(&mut reading, until).await?,
        };
        // A connection that is not put back is closed: what comes on it later would be taken for the next answer.
        let waiting = Waiting::begin(&self.waits);
        let answer = timeout_at(until, ask(&mut line, words)).await;
        drop(waiting);
        let answer = answer.unwrap_or_else(|_| Err(Broken::Silent));
        let in_doubt = match &answer {
            Ok(Ok(_)) => false,
            // A replica that was the primary goes on saying so.
            Ok(Err(fault)) => fault.text.contains("READONLY") || fault.kind == ErrorKind::Malformed,
            Err(_) => true,
        };
        if in_doubt || self.closed.load(Relaxed) {
            reading.presence.set(false);
        } else {
            reading.line = Some(line);
        }
        match answer {
            Ok(answer) => answer,
            Err(Broken::Silent) => Err(Fault {
                silent: true,
                ..Fault::new(ErrorKind::OutcomeUnknown, "no answer within the deadline")
            }),
            Err(Broken::Io(text)) => {
                Err(Fault::new(ErrorKind::OutcomeUnknown, format!("the connection broke ({text})")))
            }
        }
    }

    /// Connects, again and again until the deadline.
    async fn reach(&self, reading: &mut Reading, until: Instant) -> Result<Line, Fault> {
        let mut backoff = Backoff::default();
        loop {
            let fault = match self
                .connect(reading, ATTEMPT.min(until.saturating_duration_since(Instant::now())))
                .await
            {
                Ok(line) => return Ok(line),
                Err(fault) => fault,
            };
            let wait = backoff.next_wait();
            if fault.kind == ErrorKind::Refused
                || fault.kind == ErrorKind::Closed
                || Instant::now() + wait >= until
            {
                return Err(fault);
            }
            sleep(wait).await;
        }
    }

    async fn connect(&self, reading: &mut Reading, deadline: Duration) -> Result<Line, Fault> {
        if self.closed.load(Relaxed) {
            return Err(Fault::new(ErrorKind::Closed, "the connection is closed"));
        }
        let connected = timeout(deadline, async {
            let mut line = reading.login.connect().await?;
            reading.login.select(&mut line).await?;
            line.allow(LONGEST);
            let id = match line.ask(&[b"CLIENT", b"ID"]).await {
                Ok(Reply::Int(id)) => id,
                // A read that can't be ended early ends at the end of its block.
                _ => 0,
            };
            Ok((line, id))
        });
        let silent = |_| Err(Fault::new(ErrorKind::Unreachable, "no answer within the connect deadline"));
        let (line, id) = connected.await.unwrap_or_else(silent)?;
        self.id.store(id, Relaxed);
        reading.presence.set(true);
        Ok(line)
    }

    /// Ends the read that is blocked now, if any.
    pub(super) async fn unblock(&self) {
        let id = self.id.load(Relaxed);
        if !self.waits.load(Relaxed) || id == 0 {
            return;
        }
        let mut ending = self.ending.lock().await;
        let (login, line) = &mut *ending;
        let line = match line.take() {
            Some(line) => Ok(line),
            None => login.connect().await,
        };
        let Ok(mut line) = line else { return };
        if line.ask(&[b"CLIENT", b"UNBLOCK", id.to_string().as_bytes(), b"TIMEOUT"]).await.is_ok() {
            ending.1 = Some(line);
        }
    }

    /// Closes the connections. A read that is under way closes its own at its end.
    pub(super) async fn close(&self) {
        self.closed.store(true, Relaxed);
        if let Ok(mut reading) = self.reading.try_lock() {
            reading.line = None;
            reading.presence.set(false);
        }
        self.ending.lock().await.1 = None;
    }
}

/// What happened to the connection.
enum Broken {
    Silent,
    Io(String),
}

/// The answer of the server, be it an error; or what broke.
async fn ask(line: &mut Line, words: &[&[u8]]) -> Result<Result<Vec<RawEntry>, Fault>, Broken> {
    let broken = |fault: Fault| Broken::Io(fault.text);
    line.send(&[words]).await.map_err(broken)?;
    let mut page = Page::default();
    loop {
        line.fill().await.map_err(broken)?;
        match page.take(line.rest()) {
            Ok((taken, None)) => line.take(taken),
            Ok((taken, Some(entries))) => {
                line.take(taken);
                return Ok(Ok(entries));
            }
            Err(fault) => {
                let all = line.rest().len();
                line.take(all);
                return Ok(Err(fault));
            }
        }
    }
}

/// As long as it lives, an answer is waited for.
struct Waiting<'a>(&'a AtomicBool);

impl<'a> Waiting<'a> {
    fn begin(waits: &'a AtomicBool) -> Self {
        waits.store(true, Relaxed);
        Self(waits)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.store(false, Relaxed);
    }
}

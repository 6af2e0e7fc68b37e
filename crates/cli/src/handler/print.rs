//! Prints each timeout as a line on stdout. A line that is not out is not done: the timeout is tried again.
//!
//! A thread of its own writes, because stdout may be a pipe that nobody reads for a while: a handler that
//! waits must not hold up the renewal of its lease.

use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use overdue_consumer::{Handler, Outcome, Raw, Timeout};
use overdue_handlers::Message;
use serde::Serialize;
use tokio::sync::{mpsc, oneshot};

use crate::output::text::{self, printable, time};
use crate::output::watched::Watched;

/// Lines that wait for the writer. No more than the handlers that run at once.
const WAITING: usize = 1024;
/// The most lines in one write.
const BATCH: usize = 256;

/// The handler.
pub(crate) struct Print {
    json: bool,
    lines: mpsc::Sender<Line>,
}

struct Line {
    text: Vec<u8>,
    /// Told once the line has left this process.
    out: oneshot::Sender<()>,
}

impl Print {
    /// Starts the writer. The second value is why stdout could not be written to, when it comes to that: from
    /// then on every line fails.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn start(
        json: bool,
        out: impl Write + Send + 'static,
    ) -> io::Result<(Self, oneshot::Receiver<io::Error>)> {
        let (lines, waiting) = mpsc::channel(WAITING);
        let (broken, why) = oneshot::channel();
        std::thread::Builder::new().name("print".to_owned()).spawn(move || write(waiting, out, broken))?;
        Ok((Self { json, lines }, why))
    }
}

impl Handler<Raw> for Print {
    async fn handle(&self, timeout: Timeout<Raw>) -> Outcome {
        let at_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let at_ms = u64::try_from(at_ms).unwrap_or(u64::MAX);
        let text = if self.json { object(&timeout, at_ms) } else { line(&timeout, at_ms) };
        let (out, is_out) = oneshot::channel();
        match self.lines.send(Line { text, out }).await {
            Ok(()) if is_out.await.is_ok() => Outcome::Done,
            _ => Outcome::retry("stdout could not be written to"),
        }
    }
}

/// Writes until nobody sends any more, or stdout fails.
fn write(mut waiting: mpsc::Receiver<Line>, mut out: impl Write, broken: oneshot::Sender<io::Error>) {
    let mut batch = Vec::with_capacity(BATCH);
    while waiting.blocking_recv_many(&mut batch, BATCH) > 0 {
        // Whose handler was dropped meanwhile is another consumer's: not printed.
        batch.retain(|line| !line.out.is_closed());
        let text = batch.iter().map(|line| line.text.as_slice()).collect::<Vec<_>>().concat();
        if let Err(error) = out.write_all(&text).and_then(|()| out.flush()) {
            // Dropping the lines tells their handlers.
            let _ = broken.send(error);
            return;
        }
        for line in batch.drain(..) {
            let _ = line.out.send(());
        }
    }
}

/// For people: queue, id, due, lateness, attempt, what is known of a watched key, payload.
fn line(timeout: &Timeout<Raw>, at_ms: u64) -> Vec<u8> {
    let (queue, id) = (timeout.queue(), text::id(timeout.id().as_bytes()));
    let (due, late) = (time(timeout.due_ms()), at_ms.saturating_sub(timeout.due_ms()));
    let (attempt, payload) = (timeout.attempt(), printable(timeout.payload()));
    let watched = Watched::from(timeout).brief().map(|key| format!("  [{key}]")).unwrap_or_default();
    format!("{queue}  {id}  {due}  +{late}ms  {attempt}{watched}  {payload}\n").into_bytes()
}

/// For machines.
#[derive(Serialize)]
struct Object<'a> {
    #[serde(flatten)]
    message: Message<'a>,
    /// When this attempt entered the stream.
    fired_ms: u64,
    /// When the handler began, unix milliseconds on the clock of this machine.
    at_ms: u64,
}

fn object(timeout: &Timeout<Raw>, at_ms: u64) -> Vec<u8> {
    let object = Object { message: timeout.into(), fired_ms: timeout.fired_ms(), at_ms };
    let mut line = serde_json::to_vec(&object).expect("an object of texts and numbers can be written");
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Pipe(Arc<Mutex<Vec<u8>>>);

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut read = self.0.lock().unwrap();
            if bytes.starts_with(b"closed") {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            read.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    async fn print(print: &Print, text: &str) -> Result<(), oneshot::error::RecvError> {
        let (out, is_out) = oneshot::channel();
        let _ = print.lines.send(Line { text: text.into(), out }).await;
        is_out.await
    }

    #[tokio::test]
    async fn a_line_is_done_when_it_is_out_and_fails_when_stdout_is_closed() {
        let pipe = Pipe::default();
        let (handler, why) = Print::start(false, pipe.clone()).unwrap();
        print(&handler, "a\n").await.unwrap();
        assert_eq!(*pipe.0.lock().unwrap(), b"a\n");
        assert!(print(&handler, "closed\n").await.is_err());
        assert_eq!(why.await.unwrap().kind(), io::ErrorKind::BrokenPipe);
        assert!(print(&handler, "b\n").await.is_err());
        assert_eq!(*pipe.0.lock().unwrap(), b"a\n");
    }
}

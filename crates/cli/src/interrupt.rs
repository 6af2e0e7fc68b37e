//! Ctrl-C and SIGTERM.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::exit::{Exit, Failure};

/// How a service is told to drain and end.
#[derive(Clone, Debug)]
pub(crate) struct Stop {
    /// Cancelled by the first Ctrl-C or SIGTERM. The second one ends the process at once, with code 130.
    pub(crate) token: CancellationToken,
    interrupted: Arc<AtomicBool>,
}

impl Stop {
    /// Listens for the signals from now on.
    ///
    /// # Errors
    /// The system refuses to install a signal handler.
    pub(crate) fn on_signals() -> Result<Self, Failure> {
        Self::on_signals_then(|| {})
    }

    /// The same; the second signal calls `at_once` before it ends the process.
    ///
    /// # Errors
    /// As [`Stop::on_signals`].
    pub(crate) fn on_signals_then(at_once: impl FnOnce() + Send + 'static) -> Result<Self, Failure> {
        let stop = Self { token: CancellationToken::new(), interrupted: Arc::default() };
        let (mut interrupt, mut terminate) = listen()?;
        let (token, interrupted) = (stop.token.clone(), Arc::clone(&stop.interrupted));
        tokio::spawn(async move {
            let by_user = tokio::select! {
                _ = interrupt.recv() => true,
                _ = terminate.recv() => false,
            };
            interrupted.store(by_user, Ordering::Relaxed);
            token.cancel();
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            at_once();
            std::process::exit(Exit::Interrupted as i32);
        });
        Ok(stop)
    }

    /// What a service returns after it drained: 0 after SIGTERM, 130 after Ctrl-C.
    ///
    /// # Errors
    /// It was Ctrl-C.
    pub(crate) fn outcome(&self) -> Result<(), Failure> {
        if self.interrupted.load(Ordering::Relaxed) {
            Err(Failure::silent(Exit::Interrupted))
        } else {
            Ok(())
        }
    }
}

/// Ends with a failure on the first Ctrl-C or SIGTERM: for commands that have nothing to drain. Dropping
/// them ends what they started.
pub(crate) async fn interrupted() -> Failure {
    match listen() {
        Ok((mut interrupt, mut terminate)) => {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            Failure::silent(Exit::Interrupted)
        }
        Err(failure) => failure,
    }
}

fn listen() -> Result<(Signal, Signal), Failure> {
    let listen =
        |kind| signal(kind).map_err(|e| Failure::new(Exit::Usage, format!("cannot listen for signals: {e}")));
    Ok((listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?))
}

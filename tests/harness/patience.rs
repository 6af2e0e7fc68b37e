//! Waiting for a condition: the one place in which tests are patient.

use std::env;
use std::fmt::Debug;
use std::thread;
use std::time::{Duration, Instant};

/// How often a condition is looked at.
const POLL: Duration = Duration::from_millis(5);

/// How long a condition may take to come true: 30 s, or `OVERDUE_TEST_PATIENCE` in seconds.
#[must_use]
pub fn patience() -> Duration {
    let seconds = env::var("OVERDUE_TEST_PATIENCE").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(30))
}

/// What one look at a condition says: `Some`, `Ok` or `true` is the end; `Err` holds the state meanwhile.
pub trait Look {
    /// What the condition gives when it holds.
    type Done;

    /// The result, or the state as text.
    ///
    /// # Errors
    /// The condition does not hold yet.
    fn done(self) -> Result<Self::Done, String>;
}

impl<T> Look for Option<T> {
    type Done = T;

    fn done(self) -> Result<T, String> {
        self.ok_or_else(|| "not yet".to_owned())
    }
}

impl Look for bool {
    type Done = ();

    fn done(self) -> Result<(), String> {
        self.then_some(()).ok_or_else(|| "not yet".to_owned())
    }
}

impl<T, S: Debug> Look for Result<T, S> {
    type Done = T;

    fn done(self) -> Result<T, String> {
        self.map_err(|state| format!("{state:?}"))
    }
}

/// Looks until the condition holds, and gives what it gives.
///
/// ```ignore
/// eventually("100 entries", async || { let n = client.count().await; if n == 100 { Ok(()) } else { Err(n) } }).await;
/// ```
///
/// # Panics
/// [`patience`] is over: the text says what was awaited, and the last state. One look that hangs counts too.
pub async fn eventually<L: Look>(awaited: &str, mut look: impl AsyncFnMut() -> L) -> L::Done {
    let end = tokio::time::Instant::now() + patience();
    let mut last = "never looked at".to_owned();
    loop {
        match tokio::time::timeout_at(end, look()).await.map(Look::done) {
            Ok(Ok(done)) => return done,
            Ok(Err(state)) => last = state,
            Err(_) => panic!("awaited in vain: {awaited}; the last look hangs; before it: {last}"),
        }
        assert!(tokio::time::Instant::now() < end, "awaited in vain: {awaited}; the last state: {last}");
        tokio::time::sleep(POLL).await;
    }
}

/// [`eventually`] without a runtime. It blocks the thread: tasks on a current-thread runtime stand still.
///
/// # Panics
/// As [`eventually`].
pub fn eventually_blocking<L: Look>(awaited: &str, mut look: impl FnMut() -> L) -> L::Done {
    let end = Instant::now() + patience();
    loop {
        match look().done() {
            Ok(done) => return done,
            Err(last) => assert!(Instant::now() < end, "awaited in vain: {awaited}; the last state: {last}"),
        }
        thread::sleep(POLL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "awaited in vain: a miracle; the last state: 7")]
    async fn impatience_says_what_was_awaited_and_the_last_state() {
        eventually("a miracle", async || Err::<(), _>(7)).await;
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "awaited in vain: an end; the last look hangs")]
    async fn a_look_that_hangs_is_bounded() {
        eventually("an end", async || std::future::pending::<bool>().await).await;
    }

    #[tokio::test]
    async fn what_the_condition_gives_is_given_back() {
        let mut looks = 0;
        let third = eventually("the third look", async || {
            looks += 1;
            (looks == 3).then_some(looks)
        });
        assert_eq!(third.await, 3);
    }
}

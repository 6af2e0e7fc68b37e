//! A command's output: it is passed on line by line, so that many commands can write at once, and its end is kept.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};

/// The most that is kept, bytes.
const KEPT: usize = 2048;
/// Passed on at a time, bytes: longer lines are cut.
const LINE: u64 = 8192;

/// The last 2 KiB of what was read so far. Clones are the same tail.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tail(Arc<Mutex<Vec<u8>>>);

impl Tail {
    /// Reads until the end, or until it fails. Nobody may be there to be told: that does not hold up the command.
    pub(crate) async fn read(self, from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) {
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        while let Ok(1..) = (&mut from).take(LINE).read_until(b'\n', &mut line).await {
            self.push(&line);
            let _ = to.write_all(&line).await;
            let _ = to.flush().await;
            line.clear();
        }
    }

    fn push(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = &bytes[bytes.len().saturating_sub(KEPT)..];
        let over = (kept.len() + bytes.len()).saturating_sub(KEPT);
        kept.drain(..over);
        kept.extend_from_slice(bytes);
    }

    /// Forgets what was kept.
    pub(crate) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// What was kept so far.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_is_kept() {
        let tail = Tail::default();
        tail.push(b"ab");
        tail.push(&[b'x'; KEPT - 1]);
        assert_eq!(tail.bytes()[..2], *b"bx");
        tail.push(&[b'y'; 3 * KEPT]);
        assert_eq!(tail.bytes(), [b'y'; KEPT]);
    }
}

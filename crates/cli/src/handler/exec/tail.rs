//! The end of a command's output: all is read, so that the command never waits, and little is kept.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The most that is kept, bytes.
const KEPT: usize = 2048;
/// Read at a time, bytes.
const CHUNK: usize = 8192;

/// The last 2 KiB of what was read so far. Clones are the same tail.
#[derive(Clone, Debug, Default)]
pub(super) struct Tail(Arc<Mutex<Vec<u8>>>);

impl Tail {
    /// Reads until the end, or until it fails.
    pub(super) async fn read(self, mut from: impl AsyncRead + Unpin) {
        let mut chunk = vec![0; CHUNK];
        while let Ok(n @ 1..) = from.read(&mut chunk).await {
            self.push(&chunk[..n]);
        }
    }

    fn push(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = &bytes[bytes.len().saturating_sub(KEPT)..];
        let over = (kept.len() + bytes.len()).saturating_sub(KEPT);
        kept.drain(..over);
        kept.extend_from_slice(bytes);
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
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

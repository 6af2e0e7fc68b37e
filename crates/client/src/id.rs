//! What can be given as a timer's id.

use bytes::Bytes;
use overdue_protocol::{InvalidName, TimerId};

/// Anything that holds the bytes of an id: text, bytes, a [`TimerId`]. 1 to 512 bytes, binary-safe.
pub trait IntoTimerId {
    /// Checks the length.
    ///
    /// # Errors
    /// An empty id, or one of more than 512 bytes.
    fn into_timer_id(self) -> Result<TimerId, InvalidName>;
}

macro_rules! from {
    ($($from:ty: $id:ident => $bytes:expr;)*) => {
        $(impl IntoTimerId for $from {
            fn into_timer_id(self) -> Result<TimerId, InvalidName> {
                let $id = self;
                TimerId::new($bytes)
            }
        })*
    };
}

from! {
    &str: id => Bytes::copy_from_slice(id.as_bytes());
    String: id => id;
    &String: id => Bytes::copy_from_slice(id.as_bytes());
    &[u8]: id => Bytes::copy_from_slice(id);
    Vec<u8>: id => id;
    &Vec<u8>: id => Bytes::copy_from_slice(id);
    Bytes: id => id;
    &Bytes: id => id.clone();
    TimerId: id => id.into_bytes();
    &TimerId: id => id.as_bytes().clone();
}

impl<const N: usize> IntoTimerId for &[u8; N] {
    fn into_timer_id(self) -> Result<TimerId, InvalidName> {
        self.as_slice().into_timer_id()
    }
}

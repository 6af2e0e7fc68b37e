//! The way from a client to the consumer library.

use bytes::Bytes;
use overdue_consumer::{Consumer, Payload};

use crate::client::Client;
use crate::payload::{Encoding, Raw};

impl Client {
    /// A consumer of a queue for a group, with the settings of this client and connections of its own. `T` is what
    /// payloads are decoded as, or [`Raw`]. Names are checked when it is run.
    pub fn consumer<T: Payload>(&self, queue: &str, group: &str) -> Consumer<T> {
        Consumer::builder(self.store().settings().clone(), queue, group)
    }
}

impl Payload for Raw {
    fn decode(raw: &Bytes, encoding: Option<&[u8]>) -> Result<Self, String> {
        Ok(Raw::new(raw.clone()).encoded(encoding.map(Encoding::from_word).unwrap_or_default()))
    }
}

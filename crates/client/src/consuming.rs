//! The way from a client to the consumer library.

use bytes::Bytes;
use overdue_consumer::{Consumer, Payload};

use crate::client::Client;
use crate::payload::{Encoding, Raw};

impl Client {
    /// A consumer of a queue for a group, with the settings of this client and connections of its own. `T` is what
    /// payloads are decoded as, or [`Raw`]. Names are checked when it is run.
    ///
    /// ```no_run
    /// use overdue::Raw;
    /// use overdue::consumer::{Done, Outcome};
    ///
    /// # async fn end_session(_: &str) {}
    /// # async fn example(stop: impl Future<Output = ()>) -> Result<(), Box<dyn std::error::Error>> {
    /// let client = overdue::Client::connect("redis://127.0.0.1/").await?;
    /// client
    ///     .consumer::<Raw>("keys", "mail")
    ///     .on("session:*", |t| async move { end_session(&t.id().to_string()).await })
    ///     .on("order:*", |_| async { Ok(Done) })
    ///     .run(|t| async move { Outcome::reject(format!("nobody handles {}", t.id())) }, stop)
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn consumer<T: Payload>(&self, queue: &str, group: &str) -> Consumer<T> {
        Consumer::builder(self.store().settings().clone(), queue, group)
    }
}

impl Payload for Raw {
    fn decode(raw: &Bytes, encoding: Option<&[u8]>) -> Result<Self, String> {
        Ok(Raw::new(raw.clone()).encoded(encoding.map(Encoding::from_word).unwrap_or_default()))
    }
}

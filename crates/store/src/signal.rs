//! What a subscription tells its holder.

use bytes::Bytes;

/// One thing heard, or a word about the subscription itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The server confirmed every pattern. Whatever was published before this is a gap.
    Up,
    /// The subscription is broken: nothing is heard until the next [`Signal::Up`].
    Down,
    /// That many things were heard and dropped: the channel was full, or the process too slow.
    Lost(u64),
    /// A key of database `db` expired.
    Expired {
        /// The database number.
        db: u8,
        /// The key, exactly as the server named it.
        key: Bytes,
    },
    /// Something was published on a channel that one of the patterns matches.
    Message {
        /// The channel.
        channel: Bytes,
        /// What was published.
        payload: Bytes,
    },
}

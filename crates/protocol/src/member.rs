//! Who is alive: what `overdue:members` holds for each process (PROTOCOL.md section 1).

use serde::{Deserialize, Serialize};

use crate::answer::Malformed;

/// How often a process writes itself down, in milliseconds.
pub const HEARTBEAT_MS: u64 = 5_000;

/// A process as it wrote itself down, as a MessagePack map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// `relay` or `consumer`.
    pub role: String,
    /// The version of the program.
    #[serde(default)]
    pub version: String,
    /// The host it runs on.
    #[serde(default)]
    pub host: String,
    /// Its process id there.
    #[serde(default)]
    pub pid: u32,
    /// When it started, unix milliseconds on the server's clock.
    #[serde(default)]
    pub started: u64,
    /// When it last wrote itself down, unix milliseconds on the server's clock.
    #[serde(default)]
    pub seen: u64,
    /// The queues it works on; a consumer writes `queue/group`.
    #[serde(default)]
    pub queues: Vec<String>,
    /// A hash of its watch rules; empty for none.
    #[serde(default)]
    pub rules: String,
    /// What keeps it from its work, in words for a person; empty for nothing.
    #[serde(default)]
    pub trouble: String,
}

impl Member {
    /// Writes the entry.
    ///
    /// # Panics
    /// Never: a map of plain values can be written.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        rmp_serde::to_vec_named(self).expect("a map of plain values can be written")
    }

    /// Reads an entry; unknown fields are left alone.
    ///
    /// # Errors
    /// Not such a map.
    pub fn decode(raw: &[u8]) -> Result<Self, Malformed> {
        rmp_serde::from_slice(raw).map_err(|_| Malformed("a member entry is not a MessagePack map"))
    }
}

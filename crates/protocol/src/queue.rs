//! What `overdue:queues` holds for each queue (PROTOCOL.md section 1).

use serde::{Deserialize, Serialize};

use crate::answer::Malformed;
use crate::partition::MAX_PARTITIONS;

/// A queue's entry in `overdue:queues`, as a MessagePack map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueInfo {
    /// Into how many hash slots the queue is shared.
    pub partitions: u32,
    /// When it was created, unix milliseconds.
    #[serde(default)]
    pub created_ms: u64,
    /// The format its keys are in; a process that knows only lower ones refuses the queue.
    #[serde(default = "first_format")]
    pub format: u32,
    /// Consumers read and claim nothing new; relays go on firing.
    #[serde(default)]
    pub paused: bool,
    /// The most finished timeouts that each partition's history keeps; 0 for none.
    #[serde(default)]
    pub history: u32,
}

fn first_format() -> u32 {
    1
}

impl QueueInfo {
    /// Writes the entry.
    ///
    /// # Panics
    /// Never: a map of plain numbers can be written.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        rmp_serde::to_vec_named(self).expect("a map of plain numbers can be written")
    }

    /// Reads an entry; unknown fields are left alone.
    ///
    /// # Errors
    /// Not such a map, or a number of partitions outside 1 to 1024.
    pub fn decode(raw: &[u8]) -> Result<Self, Malformed> {
        let info: Self =
            rmp_serde::from_slice(raw).map_err(|_| Malformed("a queue entry is not a MessagePack map"))?;
        if !(1..=MAX_PARTITIONS).contains(&info.partitions) {
            return Err(Malformed("a queue entry has a number of partitions outside 1 to 1024"));
        }
        Ok(info)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_tomorrow_are_left_alone() {
        #[derive(Serialize)]
        struct Tomorrow {
            partitions: u32,
            colour: &'static str,
        }
        let raw = rmp_serde::to_vec_named(&Tomorrow { partitions: 4, colour: "red" }).unwrap();
        let info = QueueInfo::decode(&raw).unwrap();
        assert_eq!(info, QueueInfo { partitions: 4, created_ms: 0, format: 1, paused: false, history: 0 });
        assert_eq!(QueueInfo::decode(&info.encode()).unwrap(), info);
        assert!(QueueInfo::decode(b"x").is_err());
    }
}

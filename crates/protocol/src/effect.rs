//! Effects: writes that happen exactly when a timeout is acknowledged (PROTOCOL.md section 3).

use bytes::Bytes;

/// One write, applied together with the acknowledgement of a timeout. Keys are in the slot of the timeout's partition:
/// [`crate::Partition::neighbour`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Effect {
    /// SET: replaces whatever the key holds, its TTL too.
    Set {
        /// The key.
        key: Bytes,
        /// Its new value.
        value: Bytes,
    },
    /// DEL.
    Del {
        /// The key.
        key: Bytes,
    },
    /// PEXPIREAT: nothing where there is no such key; a time in the past deletes it.
    PExpireAt {
        /// The key.
        key: Bytes,
        /// When it ends, unix milliseconds; up to 9007199254740991.
        at_ms: u64,
    },
    /// INCRBY: the number before and after is whole and within +-9007199254740991.
    IncrBy {
        /// The key.
        key: Bytes,
        /// What is added.
        by: i64,
    },
    /// HSET of one field.
    HSet {
        /// The key.
        key: Bytes,
        /// The field.
        field: Bytes,
        /// Its new value.
        value: Bytes,
    },
    /// HDEL of one field.
    HDel {
        /// The key.
        key: Bytes,
        /// The field.
        field: Bytes,
    },
    /// HINCRBY: the number before and after is whole and within +-9007199254740991.
    HIncrBy {
        /// The key.
        key: Bytes,
        /// The field.
        field: Bytes,
        /// What is added.
        by: i64,
    },
    /// SADD of one member.
    SAdd {
        /// The key.
        key: Bytes,
        /// The member.
        member: Bytes,
    },
    /// SREM of one member.
    SRem {
        /// The key.
        key: Bytes,
        /// The member.
        member: Bytes,
    },
    /// ZADD of one member.
    ZAdd {
        /// The key.
        key: Bytes,
        /// The member.
        member: Bytes,
        /// Its score; finite.
        score: f64,
    },
    /// ZREM of one member.
    ZRem {
        /// The key.
        key: Bytes,
        /// The member.
        member: Bytes,
    },
    /// LPUSH of one value.
    LPush {
        /// The key.
        key: Bytes,
        /// The value.
        value: Bytes,
    },
    /// RPUSH of one value.
    RPush {
        /// The key.
        key: Bytes,
        /// The value.
        value: Bytes,
    },
    /// XADD of one entry.
    XAdd {
        /// The key.
        key: Bytes,
        /// Its fields; 1 to 500.
        fields: Vec<(Bytes, Bytes)>,
    },
    /// PUBLISH.
    Publish {
        /// The channel.
        channel: Bytes,
        /// The message.
        message: Bytes,
    },
}

impl Effect {
    /// The key it writes; `None` for [`Effect::Publish`].
    #[must_use]
    pub fn key(&self) -> Option<&Bytes> {
        match self {
            Self::Publish { .. } => None,
            Self::Set { key, .. }
            | Self::Del { key }
            | Self::PExpireAt { key, .. }
            | Self::IncrBy { key, .. }
            | Self::HSet { key, .. }
            | Self::HDel { key, .. }
            | Self::HIncrBy { key, .. }
            | Self::SAdd { key, .. }
            | Self::SRem { key, .. }
            | Self::ZAdd { key, .. }
            | Self::ZRem { key, .. }
            | Self::LPush { key, .. }
            | Self::RPush { key, .. }
            | Self::XAdd { key, .. } => Some(key),
        }
    }

    /// The command, as Redis names it.
    #[must_use]
    pub fn command(&self) -> &'static str {
        match self {
            Self::Set { .. } => "SET",
            Self::Del { .. } => "DEL",
            Self::PExpireAt { .. } => "PEXPIREAT",
            Self::IncrBy { .. } => "INCRBY",
            Self::HSet { .. } => "HSET",
            Self::HDel { .. } => "HDEL",
            Self::HIncrBy { .. } => "HINCRBY",
            Self::SAdd { .. } => "SADD",
            Self::SRem { .. } => "SREM",
            Self::ZAdd { .. } => "ZADD",
            Self::ZRem { .. } => "ZREM",
            Self::LPush { .. } => "LPUSH",
            Self::RPush { .. } => "RPUSH",
            Self::XAdd { .. } => "XADD",
            Self::Publish { .. } => "PUBLISH",
        }
    }

    /// Its arguments behind the key; all of them for [`Effect::Publish`].
    #[must_use]
    pub(crate) fn args(&self) -> Vec<Bytes> {
        let text = |number: String| Bytes::from(number);
        match self {
            Self::Del { .. } => vec![],
            Self::Set { value: one, .. }
            | Self::HDel { field: one, .. }
            | Self::SAdd { member: one, .. }
            | Self::SRem { member: one, .. }
            | Self::ZRem { member: one, .. }
            | Self::LPush { value: one, .. }
            | Self::RPush { value: one, .. } => vec![one.clone()],
            Self::HSet { field: one, value: two, .. } | Self::Publish { channel: one, message: two } => {
                vec![one.clone(), two.clone()]
            }
            Self::PExpireAt { at_ms, .. } => vec![text(at_ms.to_string())],
            Self::IncrBy { by, .. } => vec![text(by.to_string())],
            Self::HIncrBy { field, by, .. } => vec![field.clone(), text(by.to_string())],
            Self::ZAdd { member, score, .. } => vec![text(format!("{score:e}")), member.clone()],
            Self::XAdd { fields, .. } => {
                fields.iter().flat_map(|(name, value)| [name.clone(), value.clone()]).collect()
            }
        }
    }

    /// About how many bytes it takes in a call: what a page is measured by.
    #[must_use]
    pub fn size(&self) -> usize {
        let key = self.key().map_or(0, Bytes::len);
        32 + key + self.args().iter().map(Bytes::len).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_as_redis_reads_them() {
        let key = Bytes::from_static(b"k");
        let args =
            |effect: Effect| effect.args().into_iter().map(|arg| String::from_utf8(arg.into()).unwrap());
        let score =
            |score| args(Effect::ZAdd { key: key.clone(), member: "m".into(), score }).next().unwrap();
        assert_eq!(score(1.5), "1.5e0");
        assert_eq!(score(-1e300), "-1e300");
        assert_eq!(score(f64::NAN), "NaN");
        assert_eq!(args(Effect::IncrBy { key, by: -7 }).collect::<Vec<_>>(), ["-7"]);
    }

    #[test]
    fn only_a_message_has_no_key() {
        let publish = Effect::Publish { channel: "c".into(), message: "m".into() };
        assert_eq!((publish.key(), publish.args().len()), (None, 2));
        let del = Effect::Del { key: "seats".into() };
        assert_eq!((del.key().unwrap(), del.args().len(), del.size()), (&Bytes::from("seats"), 0, 37));
    }
}

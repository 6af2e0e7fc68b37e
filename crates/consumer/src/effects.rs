//! Writes that are done with the acknowledgement.

use std::sync::Arc;

use bytes::Bytes;
use overdue_protocol::{Effect, Partition};

/// Writes to Redis that are done with the acknowledgement of a timeout, in their order: all or none, and never twice
/// (PROTOCOL.md section 3, "Effects"). They are checked first: if one can't be done (its key holds another type, its
/// number would be too large), nothing is written and the timeout is tried again, with that as the reason.
///
/// Their keys are in the hash slot of the timeout's partition: [`crate::Timeout::key`] gives such a key for a name.
///
/// ```
/// # use overdue_consumer::{Effects, Raw, Timeout};
/// fn give_back(t: &Timeout<Raw>) -> Effects {
///     Effects::new().incr_by(t.key("seats"), 1).hset(t.key("holds"), t.id().as_bytes(), "given back")
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "effects are applied when a handler returns them"]
pub struct Effects(Vec<Effect>);

impl Effects {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Any effect.
    pub fn with(mut self, effect: Effect) -> Self {
        self.0.push(effect);
        self
    }

    /// SET: replaces whatever the key holds, and ends its TTL.
    pub fn set(self, key: impl Into<Bytes>, value: impl Into<Bytes>) -> Self {
        self.with(Effect::Set { key: key.into(), value: value.into() })
    }

    /// DEL.
    pub fn del(self, key: impl Into<Bytes>) -> Self {
        self.with(Effect::Del { key: key.into() })
    }

    /// PEXPIREAT, unix milliseconds on the server's clock.
    pub fn pexpire_at(self, key: impl Into<Bytes>, at_ms: u64) -> Self {
        self.with(Effect::PExpireAt { key: key.into(), at_ms })
    }

    /// INCRBY; may be negative.
    pub fn incr_by(self, key: impl Into<Bytes>, by: i64) -> Self {
        self.with(Effect::IncrBy { key: key.into(), by })
    }

    /// HSET of one field.
    pub fn hset(self, key: impl Into<Bytes>, field: impl AsRef<[u8]>, value: impl Into<Bytes>) -> Self {
        self.with(Effect::HSet { key: key.into(), field: copied(field), value: value.into() })
    }

    /// HDEL of one field.
    pub fn hdel(self, key: impl Into<Bytes>, field: impl AsRef<[u8]>) -> Self {
        self.with(Effect::HDel { key: key.into(), field: copied(field) })
    }

    /// HINCRBY; may be negative.
    pub fn hincr_by(self, key: impl Into<Bytes>, field: impl AsRef<[u8]>, by: i64) -> Self {
        self.with(Effect::HIncrBy { key: key.into(), field: copied(field), by })
    }

    /// SADD of one member.
    pub fn sadd(self, key: impl Into<Bytes>, member: impl AsRef<[u8]>) -> Self {
        self.with(Effect::SAdd { key: key.into(), member: copied(member) })
    }

    /// SREM of one member.
    pub fn srem(self, key: impl Into<Bytes>, member: impl AsRef<[u8]>) -> Self {
        self.with(Effect::SRem { key: key.into(), member: copied(member) })
    }

    /// ZADD of one member; the score is a finite number.
    pub fn zadd(self, key: impl Into<Bytes>, member: impl AsRef<[u8]>, score: f64) -> Self {
        self.with(Effect::ZAdd { key: key.into(), member: copied(member), score })
    }

    /// ZREM of one member.
    pub fn zrem(self, key: impl Into<Bytes>, member: impl AsRef<[u8]>) -> Self {
        self.with(Effect::ZRem { key: key.into(), member: copied(member) })
    }

    /// LPUSH of one value.
    pub fn lpush(self, key: impl Into<Bytes>, value: impl Into<Bytes>) -> Self {
        self.with(Effect::LPush { key: key.into(), value: value.into() })
    }

    /// RPUSH of one value.
    pub fn rpush(self, key: impl Into<Bytes>, value: impl Into<Bytes>) -> Self {
        self.with(Effect::RPush { key: key.into(), value: value.into() })
    }

    /// XADD of one entry, with an id that Redis gives.
    pub fn xadd<F: Into<Bytes>, V: Into<Bytes>>(
        self,
        key: impl Into<Bytes>,
        fields: impl IntoIterator<Item = (F, V)>,
    ) -> Self {
        let fields = fields.into_iter().map(|(field, value)| (field.into(), value.into())).collect();
        self.with(Effect::XAdd { key: key.into(), fields })
    }

    /// PUBLISH. Channels have no slot.
    pub fn publish(self, channel: impl Into<Bytes>, message: impl Into<Bytes>) -> Self {
        self.with(Effect::Publish { channel: channel.into(), message: message.into() })
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As a call takes them.
    ///
    /// # Errors
    /// The first whose key is not beside `partition`, with what to do.
    pub(crate) fn beside(self, partition: &Partition) -> Result<Arc<[Effect]>, String> {
        for (n, effect) in self.0.iter().enumerate() {
            if let Some(key) = effect.key().filter(|key| !partition.is_neighbour(key)) {
                return Err(format!(
                    "effect {} ({}) writes the key {:?}, which effects of this timeout can't: take a key in its hash \
                     slot, timeout.key(\"...\")",
                    n + 1,
                    effect.command(),
                    String::from_utf8_lossy(key)
                ));
            }
        }
        Ok(self.0.into())
    }
}

impl Extend<Effect> for Effects {
    fn extend<I: IntoIterator<Item = Effect>>(&mut self, effects: I) {
        self.0.extend(effects);
    }
}

impl FromIterator<Effect> for Effects {
    fn from_iter<I: IntoIterator<Item = Effect>>(effects: I) -> Self {
        Self(effects.into_iter().collect())
    }
}

fn copied(text: impl AsRef<[u8]>) -> Bytes {
    Bytes::copy_from_slice(text.as_ref())
}

#[cfg(test)]
mod tests {
    use overdue_protocol::{Keyspace, QueueName};

    use super::*;

    #[test]
    fn a_key_elsewhere_is_an_error_that_says_what_to_do() {
        let orders = QueueName::new("orders").expect("a name");
        let partition = Keyspace::default().partition(&orders, 3);
        let ours = partition.neighbour(b"seats");
        let good = Effects::new().incr_by(ours.clone(), 1).publish("news", "one seat");
        assert_eq!(good.beside(&partition).map(|effects| effects.len()), Ok(2));
        for foreign in [
            Bytes::from("seats"),
            Keyspace::default().partition(&orders, 2).neighbour(b"seats"),
            partition.stream(),
        ] {
            let why = Effects::new()
                .incr_by(ours.clone(), 1)
                .hset(foreign, "f", "v")
                .beside(&partition)
                .unwrap_err();
            assert!(why.contains("effect 2 (HSET)") && why.contains("timeout.key("), "{why}");
        }
    }
}

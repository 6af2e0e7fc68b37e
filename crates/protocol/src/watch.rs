//! Watched keys: ordinary keys with a TTL, written by somebody who does not know us (PROTOCOL.md section 5).

use bytes::{BufMut, Bytes, BytesMut};

mod captured;
mod glob;
mod rule;
mod template;
mod touched;

pub use captured::Captured;
pub use glob::Glob;
pub use rule::{OnEvicted, OnUnproven, Payload, Rule, Rules};
pub use template::Template;
pub use touched::{Capture, Touched, found_values, touch_args, values_args};

/// The name of the event that a touch publishes to mark its position among the notifications.
pub const MARK: &str = "overdue-mark";

/// CHANNEL: the markers of a database, among its notifications: `<node> <position>`.
#[must_use]
pub fn mark_channel(db: u8) -> Bytes {
    Bytes::from(format!("__keyevent@{db}__:{MARK}"))
}

/// A key of one database.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WatchedKey {
    /// The number of the database.
    pub db: u8,
    /// The name, any bytes.
    pub key: Bytes,
}

impl WatchedKey {
    /// The member of `watched`, `looked` and `last`: `<db>:<key>`.
    #[must_use]
    pub fn member(&self) -> Bytes {
        let mut member = BytesMut::with_capacity(self.key.len() + 4);
        self.put_member(&mut member);
        member.freeze()
    }

    /// The same, behind what is there.
    pub(crate) fn put_member(&self, text: &mut BytesMut) {
        let (hundreds, tens, ones) = (self.db / 100, self.db / 10 % 10, self.db % 10);
        if self.db > 99 {
            text.put_u8(b'0' + hundreds);
        }
        if self.db > 9 {
            text.put_u8(b'0' + tens);
        }
        text.put_u8(b'0' + ones);
        text.put_u8(b':');
        text.put_slice(&self.key);
    }

    /// Reads a member; `None` when it is none.
    #[must_use]
    pub fn parse(member: &Bytes) -> Option<Self> {
        let colon = member.iter().position(|&byte| byte == b':')?;
        let digits = &member[..colon];
        // `+3` and `03` are numbers too, but nobody's member.
        let odd = digits.starts_with(b"+") || digits.len() > 1 && digits.starts_with(b"0");
        let db: u8 = std::str::from_utf8(digits).ok().filter(|_| !odd)?.parse().ok()?;
        Some(Self { db, key: member.slice(colon + 1..) })
    }
}

/// What a touch found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It ends then, unix milliseconds on its node's clock.
    Due(u64),
    /// It has no TTL.
    Forever,
    /// There is no such key. That proves nothing: it may have expired, or been deleted.
    Gone,
    /// There is none, and this touch made it expire.
    Proven,
    /// The node does not serve it.
    Elsewhere,
}

/// What a key holds, as far as it can be a payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A string.
    String(Bytes),
    /// A hash: fields and values.
    Hash(Vec<(Bytes, Bytes)>),
    /// More than the limit: so many bytes; 0 when it has too many fields to count them.
    Large(u64),
    /// Another type.
    OtherType,
    /// No such key.
    Missing,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_gives_its_key_back_whatever_that_holds() {
        for (db, key) in
            [(0, &b"a"[..]), (3, b"a:b"), (15, b"\xff\0\n{}"), (100, b"a"), (255, b"a"), (0, b":"), (0, b"")]
        {
            let watched = WatchedKey { db, key: Bytes::from_static(key) };
            assert_eq!(WatchedKey::parse(&watched.member()), Some(watched));
        }
        assert_eq!(WatchedKey { db: 3, key: Bytes::from_static(b"a") }.member(), "3:a");
        for foreign in ["", "a", "a:b", ":a", "300:a", "-1:a", "03:a", "+3:a"] {
            assert_eq!(WatchedKey::parse(&Bytes::from_static(foreign.as_bytes())), None, "{foreign}");
        }
    }

    #[test]
    fn markers_are_notifications_of_their_database() {
        assert_eq!(mark_channel(3), "__keyevent@3__:overdue-mark");
    }
}

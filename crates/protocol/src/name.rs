//! Names and ids, checked once (PROTOCOL.md sections 1 and 2).

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

/// A name that breaks the rules, with the rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidName {
    pub(crate) what: &'static str,
    pub(crate) given: String,
    pub(crate) rule: &'static str,
}

impl fmt::Display for InvalidName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} is not valid: {}", self.what, self.given, self.rule)
    }
}

impl std::error::Error for InvalidName {}

fn check(what: &'static str, given: &str, also: &[u8], rule: &'static str) -> Result<String, InvalidName> {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = given.as_bytes();
    let good = (1..=64).contains(&bytes.len())
        && plain(bytes[0])
        && bytes.iter().all(|&b| plain(b) || also.contains(&b));
    if good {
        return Ok(given.to_owned());
    }
    let shown = given.chars().take(80).collect();
    Err(InvalidName { what, given: shown, rule })
}

macro_rules! name {
    ($(#[$doc:meta])* $ident:ident, $what:literal, $also:literal, $rule:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $ident(Arc<str>);

        impl $ident {
            /// Checks `text`.
            ///
            /// # Errors
            /// Says which rule `text` breaks.
            pub fn new(text: &str) -> Result<Self, InvalidName> {
                check($what, text, $also, $rule).map(|name| Self(name.into()))
            }

            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $ident {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::str::FromStr for $ident {
            type Err = InvalidName;

            fn from_str(text: &str) -> Result<Self, InvalidName> {
                Self::new(text)
            }
        }
    };
}

name! {
    /// What every key of ours begins with; `overdue` unless set.
    Namespace, "the namespace", b"._:-", "1 to 64 of a-z 0-9 . _ : -, beginning with a letter or digit"
}
name! {
    /// A set of timers with its own stream.
    QueueName, "the queue name", b"._-", "1 to 64 of a-z 0-9 . _ -, beginning with a letter or digit"
}
name! {
    /// A group that reads a queue.
    GroupName, "the group name", b"._-", "1 to 64 of a-z 0-9 . _ -, beginning with a letter or digit"
}

impl Default for Namespace {
    fn default() -> Self {
        Self("overdue".into())
    }
}

/// The id of a timer: 1 to 512 bytes, binary-safe. At most one timer per queue and id is armed. The timeout of a watched
/// key has the key's name as its id, which may be longer.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TimerId(Bytes);

impl TimerId {
    /// The longest id, in bytes.
    pub const MAX_BYTES: usize = 512;

    /// Checks the length of `id`.
    ///
    /// # Errors
    /// An empty id, or one of more than 512 bytes.
    pub fn new(id: impl Into<Bytes>) -> Result<Self, InvalidName> {
        let id = id.into();
        if (1..=Self::MAX_BYTES).contains(&id.len()) {
            return Ok(Self(id));
        }
        let shown = format!(
            "{}... ({} bytes)",
            id.iter().take(20).copied().map(char::from).collect::<String>(),
            id.len()
        );
        let given = if id.is_empty() { String::new() } else { shown };
        Err(InvalidName { what: "the timer id", given, rule: "1 to 512 bytes" })
    }

    /// The name of a watched key as an id: of any length from 1 byte.
    ///
    /// # Errors
    /// An empty name: no script can carry it.
    pub fn of_key(name: impl Into<Bytes>) -> Result<Self, InvalidName> {
        let name = name.into();
        if name.is_empty() {
            let (what, given) = ("the name of the watched key", String::new());
            return Err(InvalidName { what, given, rule: "at least 1 byte" });
        }
        Ok(Self(name))
    }

    /// The bytes of the id.
    #[must_use]
    pub fn as_bytes(&self) -> &Bytes {
        &self.0
    }

    /// The bytes of the id, without a copy.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.0
    }
}

impl fmt::Display for TimerId {
    /// As text; bytes that are not UTF-8 are shown as U+FFFD.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Debug for TimerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl TryFrom<&str> for TimerId {
    type Error = InvalidName;

    fn try_from(id: &str) -> Result<Self, InvalidName> {
        Self::new(Bytes::copy_from_slice(id.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_to_their_alphabet() {
        for good in ["a", "orders", "0", "a.b_c-d", &"x".repeat(64)] {
            assert!(QueueName::new(good).is_ok(), "{good}");
        }
        for bad in ["", "-a", "A", "a/b", "a b", "a{b}", "é", ".a", &"x".repeat(65), "a\n", "a:b"] {
            assert!(QueueName::new(bad).is_err(), "{bad}");
        }
        assert!(Namespace::new("team:a").is_ok());
        assert!(Namespace::new("{team}").is_err());
    }

    #[test]
    fn an_id_is_1_to_512_bytes_of_anything() {
        assert!(TimerId::new(Bytes::from_static(b"\xff\x00\n{}/")).is_ok());
        assert!(TimerId::new(vec![b'x'; 512]).is_ok());
        assert!(TimerId::new(vec![b'x'; 513]).is_err());
        assert!(TimerId::new(Bytes::new()).is_err());
    }

    #[test]
    fn the_name_of_a_watched_key_is_an_id_of_any_length_but_none() {
        assert_eq!(TimerId::of_key(vec![0xff; 100_000]).unwrap().as_bytes().len(), 100_000);
        assert!(TimerId::of_key(Bytes::new()).is_err());
    }
}

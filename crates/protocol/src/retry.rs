//! Members of the retry index: `<group>/<id>/<generation>` (PROTOCOL.md section 1).

use bytes::{BufMut, Bytes, BytesMut};

use crate::Generation;
use crate::name::{GroupName, TimerId};

/// A waiting retry, as its member names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryMember {
    /// The group it is addressed to. The text before the first `/`.
    pub group: GroupName,
    /// The timer's id, or the name of a watched key. It may hold slashes.
    pub id: TimerId,
    /// The generation. The text after the last `/`.
    pub generation: Generation,
}

impl RetryMember {
    /// Writes the member.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        out.put_slice(self.group.as_str().as_bytes());
        out.put_u8(b'/');
        out.put_slice(self.id.as_bytes());
        out.put_u8(b'/');
        out.put_slice(self.generation.to_string().as_bytes());
        out.freeze()
    }

    /// Reads a member; `None` when it is not one.
    #[must_use]
    pub fn decode(member: &Bytes) -> Option<Self> {
        let first = member.iter().position(|&b| b == b'/')?;
        let last = member.iter().rposition(|&b| b == b'/').filter(|&last| last > first)?;
        Some(Self {
            group: GroupName::new(std::str::from_utf8(&member[..first]).ok()?).ok()?,
            id: TimerId::of_key(member.slice(first + 1..last)).ok()?,
            generation: std::str::from_utf8(&member[last + 1..]).ok()?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_with_slashes_comes_back() {
        let long = "/".repeat(70_000);
        for id in ["a", "a/b", "/", "//", "a/7/", &long] {
            let member = RetryMember {
                group: GroupName::new("billing").unwrap(),
                id: TimerId::of_key(id.to_owned()).unwrap(),
                generation: 42,
            };
            assert_eq!(RetryMember::decode(&member.encode()), Some(member));
        }
        for bad in ["", "a", "a/b", "a//", "a/b/x", "A/b/1"] {
            assert_eq!(RetryMember::decode(&Bytes::from_static(bad.as_bytes())), None, "{bad}");
        }
    }
}

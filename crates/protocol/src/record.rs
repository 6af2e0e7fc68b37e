//! Records: what the `timers` and `retry-timers` hashes hold (PROTOCOL.md section 2).
//!
//! MessagePack `[generation, payload, call, extras]`. Redis' own MessagePack cannot read the `bin`
//! family, so raw bytes travel in the `str` family. Scripts write records; this module reads them,
//! and packs the extras that a script copies unseen.

use bytes::{Bytes, BytesMut};
use rmp::Marker;
use rmp::decode::{read_array_len, read_marker};
use rmp::encode::{write_array_len, write_str_len};

use crate::Generation;

/// A decoded record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The generation of this arming.
    pub generation: Generation,
    /// The payload, opaque.
    pub payload: Bytes,
    /// The 8 random bytes of the schedule call, or empty.
    pub call: Bytes,
    /// Name and value, copied into the entry unseen.
    pub extras: Vec<(Bytes, Bytes)>,
}

impl Record {
    /// Reads a record; `None` when it is not one.
    ///
    /// Elements after the fourth are left alone: formats only grow.
    #[must_use]
    pub fn decode(raw: &Bytes) -> Option<Self> {
        let mut at = Cursor::new(raw);
        if at.array()? < 4 {
            return None;
        }
        let generation = at.uint()?;
        let payload = at.bytes()?;
        let call = at.bytes()?;
        let extras = at.array()?;
        let mut pairs = Vec::new();
        for _ in 0..extras / 2 {
            pairs.push((at.bytes()?, at.bytes()?));
        }
        Some(Self { generation, payload, call, extras: pairs })
    }
}

/// Packs extras as a record holds them; empty for none, as the schedule script takes them.
#[must_use]
pub fn pack_extras(extras: &[(&str, &[u8])]) -> Bytes {
    if extras.is_empty() {
        return Bytes::new();
    }
    let mut out = Vec::new();
    let pack = "writing into a Vec does not fail";
    write_array_len(&mut out, extras.len() as u32 * 2).expect(pack);
    for (name, value) in extras {
        for part in [name.as_bytes(), value] {
            write_str_len(&mut out, part.len() as u32).expect(pack);
            out.extend_from_slice(part);
        }
    }
    Bytes::from(out)
}

/// Reads MessagePack as scripts write it.
pub(crate) struct Cursor<'a> {
    raw: &'a Bytes,
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(raw: &'a Bytes) -> Self {
        Self { raw, rest: raw }
    }

    /// The length of an array whose elements come next.
    pub(crate) fn array(&mut self) -> Option<u32> {
        read_array_len(&mut self.rest).ok()
    }

    /// A non-negative integer; Redis' Lua packs integral doubles as integers.
    pub(crate) fn uint(&mut self) -> Option<u64> {
        rmp::decode::read_int(&mut self.rest).ok()
    }

    /// A string, or an integer as its decimal text: Lua numbers in extras are packed as integers.
    pub(crate) fn bytes(&mut self) -> Option<Bytes> {
        let mut ahead = self.rest;
        let length = match read_marker(&mut ahead).ok()? {
            Marker::FixStr(n) => usize::from(n),
            Marker::Str8 | Marker::Bin8 => be(&mut ahead, 1)?,
            Marker::Str16 | Marker::Bin16 => be(&mut ahead, 2)?,
            Marker::Str32 | Marker::Bin32 => be(&mut ahead, 4)?,
            _ => return self.uint().map(|n| BytesMut::from(n.to_string().as_bytes()).freeze()),
        };
        let (text, rest) = ahead.split_at_checked(length)?;
        self.rest = rest;
        Some(self.raw.slice_ref(text))
    }
}

fn be(from: &mut &[u8], width: usize) -> Option<usize> {
    let (head, rest) = from.split_at_checked(width)?;
    *from = rest;
    Some(head.iter().fold(0, |n, &byte| n << 8 | usize::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Bytes {
        let nibble = |c: u8| (c as char).to_digit(16).unwrap() as u8;
        let text: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
        text.chunks(2).map(|two| nibble(two[0]) << 4 | nibble(two[1])).collect::<Vec<_>>().into()
    }

    /// The same vectors stand in docs/PROTOCOL.md; Redis' cmsgpack wrote them.
    #[test]
    fn record_vectors() {
        let record = Record::decode(&hex(
            "94 cf 0006 43c4 2f5e 8b40 a2 6869 a8 0102030405060708 92 a3 656e63 a4 74657874",
        ))
        .unwrap();
        assert_eq!(record.generation, 0x0006_43c4_2f5e_8b40);
        assert_eq!(record.payload, "hi");
        assert_eq!(record.call, &[1, 2, 3, 4, 5, 6, 7, 8][..]);
        assert_eq!(record.extras, [("enc".into(), "text".into())]);
        assert_eq!(pack_extras(&[("enc", b"text")]), hex("92 a3 656e63 a4 74657874"));
        let bare = Record::decode(&hex("94 01 a0 a0 90")).unwrap();
        assert_eq!(bare, Record { generation: 1, payload: Bytes::new(), call: Bytes::new(), extras: vec![] });
    }

    #[test]
    fn what_is_no_record_is_none_and_what_is_more_is_left_alone() {
        for bad in [
            "",
            "07",
            "92 07 92 01 02",
            "94 a1 61 a0 a0 90",
            "94 01 a5 61 a0 90",
            "c1",
            "94 01 92 01 02 a0 90",
            "94 ff a0 a0 90",
        ] {
            assert_eq!(Record::decode(&hex(bad)), None, "{bad}");
        }
        assert!(Record::decode(&hex("95 01 a0 a0 90 c0")).is_some());
    }
}

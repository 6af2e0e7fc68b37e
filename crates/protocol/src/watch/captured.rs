//! A value that was captured, as it stands in `last` and as the settle script takes it.

use std::fmt::Write;

use bytes::Bytes;
use rmp::encode::{write_array_len, write_map_len, write_str_len, write_u64};

use super::Found;
use crate::record::Cursor;

/// The words for encodings and flaws.
const KNOWN: [&str; 6] = ["raw", "json", "msgpack", "no_value", "value_too_large", "value_type"];

/// A payload for a watched key, or what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// When it was read, unix milliseconds on the server's clock; 0 = not known.
    pub captured_ms: u64,
    /// `raw`, `json`, `msgpack`; empty when there is none.
    pub encoding: &'static str,
    /// The payload.
    pub payload: Bytes,
    /// `no_value`, `value_too_large`, `value_type`; empty when all is well.
    pub flaw: &'static str,
}

impl Captured {
    /// What was found in a key becomes a payload: a string as it is; a hash as JSON, when all of it is UTF-8, else as a
    /// MessagePack map.
    #[must_use]
    pub fn of(found: Found, captured_ms: u64) -> Self {
        let good = |encoding, payload| Self { captured_ms, encoding, payload, flaw: "" };
        let bad = |flaw| Self { captured_ms, encoding: "", payload: Bytes::new(), flaw };
        match found {
            Found::String(payload) => good("raw", payload),
            Found::Hash(fields) => match json(&fields) {
                Some(json) => good("json", Bytes::from(json)),
                None => good("msgpack", msgpack(&fields)),
            },
            Found::Large(_) => bad("value_too_large"),
            Found::OtherType => bad("value_type"),
            Found::Missing => bad("no_value"),
        }
    }

    /// Reads what [`Captured::pack`] writes; `None` when it is something else. Words of later versions are left out.
    #[must_use]
    pub fn unpack(raw: &Bytes) -> Option<Self> {
        let mut at = Cursor::new(raw);
        if at.array()? < 4 {
            return None;
        }
        let known = |word: &Bytes| KNOWN.into_iter().find(|known| word == known).unwrap_or_default();
        let captured_ms = at.uint()?;
        let (encoding, payload, flaw) = (at.bytes()?, at.bytes()?, at.bytes()?);
        Some(Self { captured_ms, encoding: known(&encoding), payload, flaw: known(&flaw) })
    }

    /// MessagePack `[captured_ms, enc, payload, flaw]`: the number in 8 bytes, the others in the `str` family.
    #[must_use]
    pub fn pack(&self) -> Bytes {
        let mut out = Vec::with_capacity(self.payload.len() + 48);
        let pack = "writing into a Vec does not fail";
        write_array_len(&mut out, 4).expect(pack);
        write_u64(&mut out, self.captured_ms).expect(pack);
        for part in [self.encoding.as_bytes(), &self.payload, self.flaw.as_bytes()] {
            string(&mut out, part);
        }
        Bytes::from(out)
    }
}

/// An object of strings; `None` when something is not UTF-8.
fn json(fields: &[(Bytes, Bytes)]) -> Option<String> {
    let mut out = String::from("{");
    for (name, value) in fields {
        let comma = if out.len() > 1 { "," } else { "" };
        out.push_str(comma);
        quote(&mut out, std::str::from_utf8(name).ok()?);
        out.push(':');
        quote(&mut out, std::str::from_utf8(value).ok()?);
    }
    out.push('}');
    Some(out)
}

fn quote(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\0'..='\x1f' => {
                write!(out, "\\u{:04x}", u32::from(c)).expect("writing into a String does not fail");
            }
            _ => out.push(c),
        }
    }
    out.push('"');
}

fn msgpack(fields: &[(Bytes, Bytes)]) -> Bytes {
    let mut out = Vec::new();
    write_map_len(&mut out, fields.len() as u32).expect("writing into a Vec does not fail");
    for (name, value) in fields {
        string(&mut out, name);
        string(&mut out, value);
    }
    Bytes::from(out)
}

fn string(out: &mut Vec<u8>, text: &[u8]) {
    write_str_len(out, text.len() as u32).expect("writing into a Vec does not fail");
    out.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(fields: &[(&'static [u8], &'static [u8])]) -> Found {
        Found::Hash(fields.iter().map(|&(n, v)| (Bytes::from_static(n), Bytes::from_static(v))).collect())
    }

    /// The same vectors stand in docs/PROTOCOL.md.
    #[test]
    fn captured_vectors() {
        let string = Captured::of(Found::String(Bytes::from_static(b"\xff\0")), 1_764_530_000_000);
        assert_eq!(string.pack(), &b"\x94\xcf\x00\x00\x01\x9a\xd6\x2f\x10\x80\xa3raw\xa2\xff\0\xa0"[..]);
        assert_eq!(Captured::unpack(&string.pack()), Some(string));
        assert_eq!(Captured::unpack(&Bytes::from_static(b"\x93\x01\xa0\xa0")), None);
        assert_eq!(
            Captured::of(Found::Missing, 0).pack(),
            &b"\x94\xcf\0\0\0\0\0\0\0\0\xa0\xa0\xa8no_value"[..]
        );
    }

    #[test]
    fn a_hash_is_json_when_it_can_be() {
        let text = Captured::of(hash(&[(b"a\"\\", b"1\n\x01"), (b"\xc3\xa9", b"")]), 5);
        assert_eq!(text.payload, "{\"a\\\"\\\\\":\"1\\n\\u0001\",\"é\":\"\"}");
        assert_eq!((text.encoding, text.flaw, text.captured_ms), ("json", "", 5));
        assert_eq!(Captured::of(hash(&[]), 5).payload, "{}");
        let binary = Captured::of(hash(&[(b"a", b"\xff")]), 5);
        assert_eq!((binary.encoding, binary.payload.as_ref()), ("msgpack", &b"\x81\xa1a\xa1\xff"[..]));
    }

    #[test]
    fn what_is_no_payload_says_why() {
        let flaw = |found| Captured::of(found, 9);
        for (found, why) in [
            (Found::Large(9), "value_too_large"),
            (Found::OtherType, "value_type"),
            (Found::Missing, "no_value"),
        ] {
            let captured = flaw(found);
            assert_eq!((captured.flaw, captured.encoding, captured.payload.len()), (why, "", 0));
        }
    }
}

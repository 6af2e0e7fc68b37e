//! Payloads: typed ones travel as MessagePack maps, bytes as they are (PROTOCOL.md section 2).

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// How a payload is written: the `enc` field of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Encoding {
    /// Bytes that mean something to the handler alone.
    #[default]
    Raw,
    /// UTF-8 text.
    Text,
    /// JSON.
    Json,
    /// MessagePack.
    MessagePack,
}

impl Encoding {
    /// The word in records and entries.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Encoding::Raw => "raw",
            Encoding::Text => "text",
            Encoding::Json => "json",
            Encoding::MessagePack => "msgpack",
        }
    }

    /// The encoding that `word` names; [`Encoding::Raw`] for words of other versions.
    #[must_use]
    pub fn from_word(word: &[u8]) -> Self {
        let all = [Encoding::Text, Encoding::Json, Encoding::MessagePack];
        all.into_iter().find(|encoding| encoding.as_str().as_bytes() == word).unwrap_or_default()
    }
}

/// A payload of bytes, with how they are written.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Raw {
    bytes: Bytes,
    encoding: Encoding,
}

impl Raw {
    /// Plain bytes.
    #[must_use]
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        Self { bytes: bytes.into(), encoding: Encoding::Raw }
    }

    /// Text: handlers and tools show it as such.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(text.into()).encoded(Encoding::Text)
    }

    /// JSON; it is not looked at.
    #[must_use]
    pub fn json(json: impl Into<Bytes>) -> Self {
        Self::new(json).encoded(Encoding::Json)
    }

    /// The same bytes, said to be written in `encoding`.
    #[must_use]
    pub fn encoded(mut self, encoding: Encoding) -> Self {
        self.encoding = encoding;
        self
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// How they are written.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// The bytes, without a copy.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }
}

impl<B: Into<Bytes>> From<B> for Raw {
    fn from(bytes: B) -> Self {
        Self::new(bytes)
    }
}

/// What can be written as a payload: everything that serde can serialize, and [`Raw`].
pub trait Encode {
    /// Whether a timer without a payload makes no sense to its handler.
    const NEEDED: bool;

    /// Writes the payload.
    ///
    /// # Errors
    /// Why it cannot be written.
    fn encode(&self) -> Result<Raw, String>;
}

impl<T: Serialize> Encode for T {
    const NEEDED: bool = true;

    fn encode(&self) -> Result<Raw, String> {
        let bytes = rmp_serde::to_vec_named(self);
        let bytes =
            bytes.map_err(|error| format!("the payload cannot be written as MessagePack: {error}"))?;
        Ok(Raw::new(bytes).encoded(Encoding::MessagePack))
    }
}

impl Encode for Raw {
    const NEEDED: bool = false;

    fn encode(&self) -> Result<Raw, String> {
        Ok(self.clone())
    }
}

/// What can be read from a payload: everything that serde can deserialize, and [`Raw`].
pub trait Decode: Sized {
    /// Reads the payload.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn decode(raw: Raw) -> Result<Self, String>;
}

impl<T: DeserializeOwned> Decode for T {
    fn decode(raw: Raw) -> Result<Self, String> {
        if !matches!(raw.encoding, Encoding::MessagePack | Encoding::Raw) {
            return Err(format!(
                "the payload is {}, not MessagePack; use queue::<Raw>",
                raw.encoding.as_str()
            ));
        }
        rmp_serde::from_slice(&raw.bytes)
            .map_err(|error| format!("the payload cannot be read as MessagePack of this type: {error}"))
    }
}

impl Decode for Raw {
    fn decode(raw: Raw) -> Result<Self, String> {
        Ok(raw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize, serde::Deserialize, Debug, PartialEq)]
    struct Hold {
        order: u64,
    }

    #[test]
    fn typed_payloads_are_named_messagepack() {
        let raw = Hold { order: 7 }.encode().unwrap();
        assert_eq!(raw, Raw::new(&b"\x81\xa5order\x07"[..]).encoded(Encoding::MessagePack));
        assert_eq!(Hold::decode(raw).unwrap(), Hold { order: 7 });
        let error = Hold::decode(Raw::text("{}")).unwrap_err();
        assert_eq!(error, "the payload is text, not MessagePack; use queue::<Raw>");
        assert!(Hold::decode(Raw::new("no")).is_err());
    }

    #[test]
    fn words_of_other_versions_are_bytes() {
        for encoding in [Encoding::Raw, Encoding::Text, Encoding::Json, Encoding::MessagePack] {
            assert_eq!(Encoding::from_word(encoding.as_str().as_bytes()), encoding);
        }
        assert_eq!(Encoding::from_word(b"cbor"), Encoding::Raw);
    }
}

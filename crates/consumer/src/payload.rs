//! How payloads are read.

use bytes::Bytes;
use serde::de::DeserializeOwned;

/// What a payload can be read as: anything that serde can, and [`Raw`].
///
/// Typed Rust writes MessagePack. The hash of a watched key comes as JSON when all of it is UTF-8, and every value in it is
/// text; else as MessagePack. Its string comes as it is, and a key without a value comes empty: take those as [`Raw`].
pub trait Payload: Sized + Send + 'static {
    /// Reads a payload. `encoding` is the entry's `enc` (PROTOCOL.md section 2), when it has one.
    ///
    /// # Errors
    /// Why it can't be read. Such a timeout is a dead letter; its handler is not called.
    fn decode(raw: &Bytes, encoding: Option<&[u8]>) -> Result<Self, String>;
}

impl<T: DeserializeOwned + Send + 'static> Payload for T {
    fn decode(raw: &Bytes, encoding: Option<&[u8]>) -> Result<Self, String> {
        match encoding {
            None | Some(b"msgpack") => rmp_serde::from_slice(raw)
                .map_err(|error| format!("the payload cannot be decoded as MessagePack: {error}")),
            Some(b"json") => serde_json::from_slice(raw)
                .map_err(|error| format!("the payload cannot be decoded as JSON: {error}")),
            Some(other) => Err(format!(
                "the payload is written as {}, and only MessagePack and JSON can be decoded here; take it as Raw",
                String::from_utf8_lossy(other)
            )),
        }
    }
}

/// A payload as it is, whatever it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Raw(pub Bytes);

impl std::ops::Deref for Raw {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Payload for Raw {
    fn decode(raw: &Bytes, _encoding: Option<&[u8]>) -> Result<Self, String> {
        Ok(Self(raw.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_says_why() {
        let seven = Bytes::from(rmp_serde::to_vec_named(&7_u32).expect("a number can be written"));
        assert_eq!(u32::decode(&seven, Some(b"msgpack")), Ok(7));
        assert_eq!(u32::decode(&seven, None), Ok(7));
        assert!(u32::decode(&Bytes::from_static(b"\xc1"), None).unwrap_err().contains("MessagePack"));
        assert!(u32::decode(&seven, Some(b"raw")).unwrap_err().contains("written as raw"));
        assert_eq!(u32::decode(&Bytes::from_static(b"8"), Some(b"json")), Ok(8));
        assert!(u32::decode(&Bytes::from_static(b"{"), Some(b"json")).unwrap_err().contains("as JSON"));
        assert_eq!(Raw::decode(&seven, Some(b"json")), Ok(Raw(seven)));
    }
}

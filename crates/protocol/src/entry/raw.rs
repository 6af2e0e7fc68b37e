//! An entry before it is decoded.

use bytes::Bytes;

use super::EntryId;
use crate::answer::Malformed;
use crate::reply::Reply;

/// An entry as it stands in a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawEntry {
    /// Its id.
    pub id: EntryId,
    /// Its fields in order; empty when the entry was deleted while it was pending.
    pub fields: Vec<(Bytes, Bytes)>,
}

impl RawEntry {
    /// Reads `[id, [name, value, ...]]`, as XRANGE and our scripts answer it.
    ///
    /// # Errors
    /// Any other shape.
    pub fn from_reply(reply: Reply) -> Result<Self, Malformed> {
        let shape = Malformed("a stream entry is not [id, [name, value, ...]]");
        let mut parts = reply.into_array().ok_or(shape)?.into_iter();
        let id = parts.next().as_ref().and_then(Reply::as_str).ok_or(shape)?.parse()?;
        let flat = match parts.next() {
            Some(Reply::Array(flat)) => flat,
            Some(Reply::Nil) | None => vec![],
            Some(_) => return Err(shape),
        };
        let mut fields = Vec::with_capacity(flat.len() / 2);
        let mut flat = flat.into_iter().map(|part| part.into_bytes().ok_or(shape));
        while let (Some(name), Some(value)) = (flat.next(), flat.next()) {
            fields.push((name?, value?));
        }
        Ok(Self { id, fields })
    }

    /// The value of a field, or `None`. The first one counts, as a script sees it.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Bytes> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, value)| value)
    }

    /// The bytes of payload and id: what a page is measured by. A watched key's name may be as large as a payload.
    #[must_use]
    pub fn size(&self) -> usize {
        ["payload", "id"].iter().filter_map(|name| self.field(name)).map(Bytes::len).sum()
    }
}

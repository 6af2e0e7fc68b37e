//! From the library's frames to our words, without copying strings.

use bytes::Bytes;
use fred::types::Resp3Frame as Frame;
use overdue_protocol::{RawEntry, Reply};

use crate::ErrorKind;
use crate::fault::Fault;

/// The reply in a frame. An error anywhere in it is an error.
pub(crate) fn reply(frame: Frame) -> Result<Reply, Fault> {
    Ok(match frame {
        Frame::Null => Reply::Nil,
        Frame::Number { data, .. } => Reply::Int(data),
        Frame::Boolean { data, .. } => Reply::Int(data.into()),
        Frame::Double { data, .. } => Reply::Bytes(Bytes::from(data.to_string())),
        Frame::BlobString { data, .. }
        | Frame::SimpleString { data, .. }
        | Frame::BigNumber { data, .. }
        | Frame::VerbatimString { data, .. } => Reply::Bytes(data),
        Frame::Array { data, .. } => Reply::Array(data.into_iter().map(reply).collect::<Result<_, _>>()?),
        Frame::Push { data, .. } => {
            Reply::Array(as_sent(data).into_iter().map(reply).collect::<Result<_, _>>()?)
        }
        Frame::Set { data, .. } => Reply::Array(data.into_iter().map(reply).collect::<Result<_, _>>()?),
        Frame::Map { data, .. } => {
            let mut flat = Vec::with_capacity(data.len() * 2);
            for (name, value) in data {
                flat.push(reply(name)?);
                flat.push(reply(value)?);
            }
            Reply::Array(flat)
        }
        Frame::SimpleError { data, .. } => return Err(Fault::of_reply(&data)),
        Frame::BlobError { data, .. } => return Err(Fault::of_reply(&String::from_utf8_lossy(&data))),
        _ => return Err(Fault::new(ErrorKind::Malformed, "a reply of an unknown type")),
    })
}

/// The entries in an answer of XREAD or XREADGROUP for one stream: `[[key, [[id, [name, value, ...]], ...]]]`.
pub(crate) fn entries_of_read(frame: Frame) -> Result<Vec<RawEntry>, Fault> {
    let shape = || Fault::new(ErrorKind::Malformed, "the answer of a read has an unknown shape");
    let Some(streams) = items(frame)? else { return Ok(vec![]) };
    let Some(stream) = streams.into_iter().next() else { return Ok(vec![]) };
    let mut stream = items(stream)?.ok_or_else(shape)?.into_iter();
    let entries = stream.nth(1).map(items).transpose()?.flatten().ok_or_else(shape)?;
    entries.into_iter().map(|entry| raw_entry(entry)?.ok_or_else(shape)).collect()
}

/// One entry, or `None` when the frame is not one.
fn raw_entry(frame: Frame) -> Result<Option<RawEntry>, Fault> {
    let Some(parts) = items(frame)? else { return Ok(None) };
    let mut parts = parts.into_iter();
    let id = parts.next().and_then(string).and_then(|id| std::str::from_utf8(&id).ok()?.parse().ok());
    let Some(id) = id else { return Ok(None) };
    // An entry that was deleted while it was pending has no fields.
    let flat = parts.next().map(items).transpose()?.flatten().unwrap_or_default();
    let mut fields = Vec::with_capacity(flat.len() / 2);
    let mut flat = flat.into_iter();
    while let (Some(name), Some(value)) = (flat.next(), flat.next()) {
        let (Some(name), Some(value)) = (string(name), string(value)) else { return Ok(None) };
        fields.push((name, value));
    }
    Ok(Some(RawEntry { id, fields }))
}

/// A list inside a RESP2 reply as the server sent it.
///
/// The library takes each list of three or four strings that begins with `message` for a publication, however deep
/// it lies in a reply, and puts a simple string `pubsub` before it. A server's own strings there are bulk strings.
fn as_sent(mut items: Vec<Frame>) -> Vec<Frame> {
    if matches!(items.first(), Some(Frame::SimpleString { data, .. }) if data == "pubsub") {
        items.remove(0);
    }
    items
}

fn items(frame: Frame) -> Result<Option<Vec<Frame>>, Fault> {
    match frame {
        Frame::Array { data, .. } => Ok(Some(data)),
        Frame::Push { data, .. } => Ok(Some(as_sent(data))),
        Frame::SimpleError { .. } | Frame::BlobError { .. } => reply(frame).map(|_| None),
        _ => Ok(None),
    }
}

fn string(frame: Frame) -> Option<Bytes> {
    match frame {
        Frame::BlobString { data, .. } | Frame::SimpleString { data, .. } => Some(data),
        _ => None,
    }
}

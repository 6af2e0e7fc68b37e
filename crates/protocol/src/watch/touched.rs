//! What the touch and values scripts take and answer. The store runs them, at the keys' nodes.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{Found, Seen};
use crate::answer::{Answer, Malformed};
use crate::reply::Reply;

/// Which values a touch reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The most of one value, bytes; 0 = no values.
    pub limit: u32,
    /// Of keys that end within so many milliseconds.
    pub within_ms: u64,
}

impl Capture {
    /// No values.
    pub const NONE: Self = Self { limit: 0, within_ms: 0 };
}

/// What a touch found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    /// Where it stands among the notifications of its node: TIME in microseconds. What it proved expired has this + 1.
    pub position: u64,
    /// How many keys the database had when it was done.
    pub dbsize: u64,
    /// What became of each key, in their order.
    pub seen: Vec<Seen>,
    /// What was read, by its place among the keys.
    pub captured: BTreeMap<usize, Found>,
    /// Places of keys whose values did not fit into the page: ask again.
    pub more: Vec<usize>,
}

/// ARGV of the touch script; it has no KEYS. `guard` is [`crate::Keyspace::guard`] of a tag that the node serves,
/// `channel` [`crate::watch::mark_channel`] of the database.
#[must_use]
pub fn touch_args(channel: Bytes, node: &str, guard: Bytes, capture: Capture, keys: &[Bytes]) -> Vec<Bytes> {
    let number = |n: u64| Bytes::from(n.to_string());
    let mut args = Vec::with_capacity(keys.len() + 5);
    args.extend([channel, Bytes::copy_from_slice(node.as_bytes()), guard]);
    args.extend([number(capture.limit.into()), number(capture.within_ms)]);
    args.extend_from_slice(keys);
    args
}

/// ARGV of the values script; it has no KEYS.
#[must_use]
pub fn values_args(limit: u32, keys: &[Bytes]) -> Vec<Bytes> {
    let mut args = Vec::with_capacity(keys.len() + 1);
    args.push(Bytes::from(limit.to_string()));
    args.extend_from_slice(keys);
    args
}

impl Touched {
    /// Reads the answer to a touch of `keys` keys.
    ///
    /// # Errors
    /// It is not what the script's header says.
    pub fn decode(reply: Reply, keys: usize) -> Result<Self, Malformed> {
        let mut answer = Answer::open(reply)?;
        let (position, dbsize) = (answer.u64()?, answer.u64()?);
        let seen = answer.array()?.iter().map(seen).collect::<Result<Vec<_>, _>>()?;
        if seen.len() != keys {
            return Err(Malformed("touch did not answer for every key"));
        }
        let mut touched = Self { position, dbsize, seen, captured: BTreeMap::new(), more: vec![] };
        let mut values = answer.array()?.into_iter();
        while let Some(place) = values.next() {
            let place = place.as_u64().and_then(|place| usize::try_from(place).ok());
            let place = place.filter(|&place| place < keys).ok_or(VALUE)?;
            match found(&mut values)? {
                Some(found) => drop(touched.captured.insert(place, found)),
                None => touched.more.push(place),
            }
        }
        Ok(touched)
    }
}

/// Reads the answer of the values script for `keys` keys, in their order; `None`: the page was full, or the node does not
/// serve the key. Ask again, where it is served. The first key that is served is always answered.
///
/// # Errors
/// It is not what the script's header says.
pub fn found_values(reply: Reply, keys: usize) -> Result<Vec<Option<Found>>, Malformed> {
    let mut values = Answer::open(reply)?.rest();
    let all = (0..keys).map(|_| found(&mut values)).collect::<Result<Vec<_>, _>>()?;
    if values.next().is_some() {
        return Err(VALUE);
    }
    Ok(all)
}

const VALUE: Malformed = Malformed("a value in a script's answer is not as its header says");

fn seen(number: &Reply) -> Result<Seen, Malformed> {
    match number {
        Reply::Int(-1) => Ok(Seen::Forever),
        Reply::Int(-2) => Ok(Seen::Gone),
        Reply::Int(-3) => Ok(Seen::Proven),
        Reply::Int(-4) => Ok(Seen::Elsewhere),
        due => due.as_u64().map(Seen::Due).ok_or(Malformed("touch answered no deadline")),
    }
}

/// A kind and its data; `None` for `more`.
fn found(values: &mut impl Iterator<Item = Reply>) -> Result<Option<Found>, Malformed> {
    let (kind, data) = (values.next().ok_or(VALUE)?, values.next().ok_or(VALUE)?);
    Ok(Some(match kind.as_str() {
        Some("string") => Found::String(data.into_bytes().ok_or(VALUE)?),
        Some("hash") => Found::Hash(pairs(data).ok_or(VALUE)?),
        Some("large") => Found::Large(data.as_u64().ok_or(VALUE)?),
        Some("type") => Found::OtherType,
        Some("none") => Found::Missing,
        Some("more") => return Ok(None),
        _ => return Err(VALUE),
    }))
}

fn pairs(data: Reply) -> Option<Vec<(Bytes, Bytes)>> {
    let mut flat = data.into_array()?.into_iter();
    let mut pairs = Vec::with_capacity(flat.len() / 2);
    while let Some(field) = flat.next() {
        pairs.push((field.into_bytes()?, flat.next()?.into_bytes()?));
    }
    Some(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(items: impl IntoIterator<Item = Reply>) -> Reply {
        Reply::Array(items.into_iter().collect())
    }

    #[test]
    fn what_a_touch_answers_is_read() {
        let dues = [7, -1, -2, -3, -4].map(Reply::Int);
        let hash = list(["f", "v"].map(Reply::from));
        let values = [
            0.into(),
            "hash".into(),
            hash,
            1.into(),
            "more".into(),
            0.into(),
            2.into(),
            "type".into(),
            0.into(),
        ];
        let reply = |dues, values| list([5.into(), list([9.into(), 3.into(), dues, values])]);
        let touched = Touched::decode(reply(list(dues.clone()), list(values)), 5).unwrap();
        let seen = [Seen::Due(7), Seen::Forever, Seen::Gone, Seen::Proven, Seen::Elsewhere];
        assert_eq!((touched.position, touched.dbsize, touched.seen.as_slice()), (9, 3, &seen[..]));
        let hash = Found::Hash(vec![(Bytes::from("f"), Bytes::from("v"))]);
        assert_eq!(touched.captured, BTreeMap::from([(0, hash), (2, Found::OtherType)]));
        assert_eq!(touched.more, [1]);
        for (keys, values) in [
            (4, vec![]),
            (5, vec![5.into(), "type".into(), 0.into()]),
            (5, vec![0.into(), "what".into(), 0.into()]),
            (5, vec![0.into(), "string".into()]),
        ] {
            assert!(Touched::decode(reply(list(dues.clone()), list(values)), keys).is_err());
        }
    }

    #[test]
    fn values_come_in_the_order_of_their_keys() {
        let reply = |flat: Vec<Reply>| list([2.into(), list(flat)]);
        let flat = vec!["string".into(), "v".into(), "more".into(), 0.into()];
        let found = found_values(reply(flat.clone()), 2).unwrap();
        assert_eq!(found, [Some(Found::String(Bytes::from("v"))), None]);
        assert!(found_values(reply(flat.clone()), 1).is_err());
        assert!(found_values(reply(flat), 3).is_err());
    }
}

//! A timeout as a JSON object: what a webhook gets as `data`, a pipe as a line, and `--print --json` shows.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use overdue_consumer::{Raw, Timeout};
use serde::Serialize;

/// A timer's id in JSON: `id` when it is UTF-8, else `id_base64`. For `#[serde(flatten)]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum IdText {
    /// It is UTF-8.
    #[serde(rename = "id")]
    Text(String),
    /// It is not.
    #[serde(rename = "id_base64")]
    Base64(String),
}

impl IdText {
    /// An id, or the name of a watched key.
    #[must_use]
    pub fn new(id: &[u8]) -> Self {
        text_or_base64(id, Self::Text, Self::Base64)
    }
}

/// A payload in JSON: `payload` when it is UTF-8, else `payload_base64`. For `#[serde(flatten)]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum PayloadText {
    /// It is UTF-8.
    #[serde(rename = "payload")]
    Text(String),
    /// It is not.
    #[serde(rename = "payload_base64")]
    Base64(String),
}

impl PayloadText {
    /// A payload, however it is written.
    #[must_use]
    pub fn new(payload: &[u8]) -> Self {
        text_or_base64(payload, Self::Text, Self::Base64)
    }
}

fn text_or_base64<T>(bytes: &[u8], text: impl Fn(String) -> T, base64: impl Fn(String) -> T) -> T {
    match std::str::from_utf8(bytes) {
        Ok(valid) => text(valid.to_owned()),
        Err(_) => base64(STANDARD.encode(bytes)),
    }
}

/// One timeout. What is not known is not there; times are unix milliseconds on the server's clock.
#[derive(Clone, Debug, Serialize)]
pub struct Message<'a> {
    /// The idempotency key: `queue/id/generation`, the id percent-encoded.
    pub key: String,
    queue: &'a str,
    group: &'a str,
    #[serde(flatten)]
    id: IdText,
    generation: u64,
    due_ms: u64,
    /// 1 = the first.
    attempt: u32,
    /// What fired it: notification, index or replay.
    source: &'static str,
    /// timer, or key: the id is the name of a watched key.
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    proof: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    db: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    captured_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flaw: Option<&'a str>,
    /// How the payload is written: raw, text, json, msgpack.
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<&'a str>,
    #[serde(flatten)]
    payload: PayloadText,
}

impl<'a> From<&'a Timeout<Raw>> for Message<'a> {
    fn from(timeout: &'a Timeout<Raw>) -> Self {
        Self {
            key: timeout.idempotency_key(),
            queue: timeout.queue().as_str(),
            group: timeout.group().as_str(),
            id: IdText::new(timeout.id().as_bytes()),
            generation: timeout.generation(),
            due_ms: timeout.due_ms(),
            attempt: timeout.attempt(),
            source: timeout.source().as_str(),
            kind: timeout.kind().as_str(),
            proof: timeout.proof().map(|proof| proof.as_str()),
            rule: timeout.rule(),
            db: timeout.db(),
            cause: timeout.cause(),
            captured_ms: timeout.captured_ms(),
            flaw: timeout.flaw(),
            encoding: timeout.encoding(),
            payload: PayloadText::new(timeout.payload()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_says_which_of_the_two_it_is() {
        let json = |value: &IdText| serde_json::to_string(value).unwrap();
        assert_eq!(json(&IdText::new(b"order-1")), r#"{"id":"order-1"}"#);
        assert_eq!(json(&IdText::new(b"\xff\x00")), r#"{"id_base64":"/wA="}"#);
        assert_eq!(serde_json::to_string(&PayloadText::new(b"")).unwrap(), r#"{"payload":""}"#);
    }
}

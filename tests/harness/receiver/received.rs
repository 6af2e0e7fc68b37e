//! One request, as it came.

use std::collections::BTreeMap;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// A request.
#[derive(Clone, Debug)]
pub struct Received {
    /// POST, or what should not be.
    pub method: String,
    /// With the query.
    pub path: String,
    /// Names in small letters.
    pub headers: BTreeMap<String, String>,
    /// The bytes that were signed.
    pub body: Bytes,
    /// When it was read.
    pub at: Instant,
}

impl Received {
    /// A header; empty when it is not there.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// The body as JSON; null when it is none.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// A field of `data`; null when it is not there.
    #[must_use]
    pub fn data(&self, field: &str) -> serde_json::Value {
        self.json()["data"][field].clone()
    }

    /// `data.id` as text.
    #[must_use]
    pub fn id(&self) -> String {
        self.data("id").as_str().unwrap_or_default().to_owned()
    }

    /// Whether one of its signatures is of this secret, `whsec_...`, as a receiver with a library for Standard Webhooks
    /// finds out.
    #[must_use]
    pub fn is_signed_with(&self, secret: &str) -> bool {
        let Some(key) = secret.strip_prefix("whsec_").and_then(|key| STANDARD.decode(key).ok()) else {
            return false;
        };
        let signed = format!("{}.{}.", self.header("webhook-id"), self.header("webhook-timestamp"));
        let signatures =
            self.header("webhook-signature").split(' ').filter_map(|one| one.strip_prefix("v1,"));
        signatures.filter_map(|one| STANDARD.decode(one).ok()).any(|signature| {
            let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("a key of any length will do");
            mac.update(signed.as_bytes());
            mac.update(&self.body);
            mac.verify_slice(&signature).is_ok()
        })
    }
}

//! Posts each timeout to an endpoint, as Standard Webhooks 1.0 has it: <https://www.standardwebhooks.com>.
//!
//! The answer is the outcome ([`answer`]). What says that the endpoint is away, and not what it thinks of this timeout,
//! costs no attempt. No redirect is followed: it would send the timeout, and the right to act on it, to whom nobody named.

mod answer;
mod endpoint;
mod secrets;

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use overdue_consumer::{Handler, Outcome, Raw, Timeout};
use serde::Serialize;
use tokio::sync::Semaphore;

use crate::message::Message;
use endpoint::{Endpoint, Sent};
use secrets::Secrets;

const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// The longest `webhook-id`, bytes: many servers take no more than 8 KiB of headers. Only names of watched keys are
/// longer; no id of a timer is.
const LONGEST_ID: usize = 4096;
/// Behind it the year has five digits, and no clock of ours is right.
const YEAR_10000: u64 = 253_402_300_800_000;

/// How an endpoint is used.
#[derive(Clone, Debug)]
pub struct WebhookOptions {
    /// A file with 1 or 2 secrets, a line each; read again when it changes. `None` = requests are not signed.
    pub secret_file: Option<PathBuf>,
    /// A PEM file with the authorities to trust. `None` = those of the system.
    pub ca_file: Option<PathBuf>,
    /// How long a request may take, from the connection to the end of the answer. `None` = any time.
    pub limit: Option<Duration>,
    /// How many requests may be under way at once; at least 1.
    pub connections: usize,
}

/// The handler.
#[derive(Debug)]
pub struct Webhook {
    endpoint: Endpoint,
    secrets: Option<Secrets>,
    limit: Option<Duration>,
    permits: Semaphore,
}

#[derive(Serialize)]
struct Envelope<'a> {
    r#type: &'static str,
    /// When it was due, RFC 3339.
    timestamp: String,
    data: Message<'a>,
}

impl Webhook {
    /// Takes the address, `http://` or `https://`. Give the consumer no limit of its own.
    ///
    /// # Errors
    /// The address is none, the secrets can't be read or are none, or the authorities can't be read. A sentence for
    /// people, without a secret and without the path of the address.
    pub fn new(url: &str, options: WebhookOptions) -> Result<Self, String> {
        let connections = options.connections.max(1);
        let endpoint = Endpoint::new(url, options.ca_file.as_deref(), options.limit, connections)?;
        let secrets = options.secret_file.map(Secrets::read).transpose()?;
        Ok(Self { endpoint, secrets, limit: options.limit, permits: Semaphore::new(connections) })
    }

    async fn post(&self, headers: HeaderMap, body: Bytes) -> Outcome {
        match self.endpoint.post(headers, body).await {
            Sent::Answered { status, headers, body } => {
                answer::outcome(status, &headers, &body, SystemTime::now())
            }
            Sent::OutOfReach(why) => Outcome::unreachable(why),
            Sent::Failed(why) => Outcome::retry(why),
        }
    }

    fn headers(&self, id: &str, trace: Option<&str>, now: SystemTime, body: &[u8]) -> HeaderMap {
        let seconds = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("overdue/", env!("CARGO_PKG_VERSION"))));
        headers.insert(TIMESTAMP, seconds.into());
        let signature = self.secrets.as_ref().map(|secrets| secrets.sign(id, seconds, body));
        let texts = [(ID, Some(id)), (SIGNATURE, signature.as_deref()), (TRACEPARENT, trace)];
        for (name, text) in texts {
            if let Some(value) = text.and_then(|text| HeaderValue::from_str(text).ok()) {
                headers.insert(name, value);
            }
        }
        headers
    }
}

impl Handler<Raw> for Webhook {
    async fn handle(&self, timeout: Timeout<Raw>) -> Outcome {
        let data = Message::from(&timeout);
        let id = id(&data.key, timeout.queue().as_str(), timeout.generation());
        let envelope = Envelope { r#type: "overdue.timeout", timestamp: time(timeout.due_ms()), data };
        let body = serde_json::to_vec(&envelope).expect("an object of texts and numbers can be written");
        // Waiting for others counts neither as an answer nor as none.
        let Ok(_permit) = self.permits.acquire().await else { return Outcome::Release };
        if !timeout.is_reachable() {
            return Outcome::unreachable("another request has found the endpoint away");
        }
        let headers = self.headers(&id, timeout.traceparent(), SystemTime::now(), &body);
        let posting = self.post(headers, body.into());
        let Some(limit) = self.limit else { return posting.await };
        tokio::time::timeout(limit, posting).await.unwrap_or_else(|_| {
            Outcome::retry(format!("no whole answer within {}", humantime::format_duration(limit)))
        })
    }
}

/// `webhook-id`: the idempotency key, at each attempt the same. It may hold full stops, which part it from the rest in
/// what is signed; but what follows one in a key can't be taken for a body, as it never holds a brace.
fn id(key: &str, queue: &str, generation: u64) -> String {
    if key.len() <= LONGEST_ID {
        return key.to_owned();
    }
    // No percent-encoded id holds a colon.
    format!("{queue}/sha256:{}/{generation}", secrets::digest(key.as_bytes()))
}

/// RFC 3339 with milliseconds.
fn time(unix_ms: u64) -> String {
    let time = UNIX_EPOCH + Duration::from_millis(unix_ms.min(YEAR_10000 - 1));
    humantime::format_rfc3339_millis(time).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_the_key_as_long_as_it_fits_a_header() {
        assert_eq!(id("q/a.b/7", "q", 7), "q/a.b/7");
        let long = |byte: &str| id(&format!("q/{}/7", byte.repeat(4096)), "q", 7);
        assert!(
            long("%FF").starts_with("q/sha256:") && long("%FF").ends_with("/7") && long("%FF").len() < 80
        );
        assert_ne!(long("%FF"), long("%FE"));
    }

    #[test]
    fn times_are_utc_and_never_out_of_bounds() {
        assert_eq!(time(1_767_225_600_123), "2026-01-01T00:00:00.123Z");
        assert_eq!(time(u64::MAX), "9999-12-31T23:59:59.999Z");
    }
}

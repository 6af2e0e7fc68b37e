//! What is known of a watched key that has ended, as commands show it beside its timeout.

use overdue_consumer::{Raw, Timeout};
use overdue_protocol::entry::{Kind, Proof};
use overdue_protocol::{Entry, RawEntry};
use serde::Serialize;

use super::text;

/// For `#[serde(flatten)]`. Of a timer there is the kind alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Watched {
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    db: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    proof: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    captured_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<String>,
}

impl From<&Entry> for Watched {
    fn from(entry: &Entry) -> Self {
        let lossy = |bytes: &bytes::Bytes| String::from_utf8_lossy(bytes).into_owned();
        Self {
            kind: entry.kind.as_str().to_owned(),
            rule: entry.rule.as_ref().map(lossy),
            db: entry.db,
            proof: entry.proof.map(word),
            captured_ms: entry.captured_ms,
            cause: entry.cause.as_ref().map(lossy),
        }
    }
}

impl From<&Timeout<Raw>> for Watched {
    fn from(timeout: &Timeout<Raw>) -> Self {
        Self {
            kind: timeout.kind().as_str().to_owned(),
            rule: timeout.rule().map(str::to_owned),
            db: timeout.db(),
            proof: timeout.proof().map(word),
            captured_ms: timeout.captured_ms(),
            cause: timeout.cause().map(str::to_owned),
        }
    }
}

impl From<&RawEntry> for Watched {
    /// As it stands there, for entries that may be malformed.
    fn from(entry: &RawEntry) -> Self {
        let lossy = |name| entry.field(name).map(|value| String::from_utf8_lossy(value).into_owned());
        Self {
            kind: lossy("kind").unwrap_or_else(|| Kind::Timer.as_str().to_owned()),
            rule: lossy("rule"),
            db: lossy("db").and_then(|db| db.parse().ok()),
            proof: lossy("proof"),
            captured_ms: lossy("captured_ms").and_then(|ms| ms.parse().ok()),
            cause: lossy("cause"),
        }
    }
}

fn word(proof: Proof) -> String {
    proof.as_str().to_owned()
}

impl Watched {
    /// Rule, db and proof, for a line; `None` for a timer.
    pub(crate) fn brief(&self) -> Option<String> {
        if self.kind == Kind::Timer.as_str() {
            return None;
        }
        let rule = self.rule.as_deref().unwrap_or("?");
        let db = self.db.map_or_else(|| "?".to_owned(), |db| db.to_string());
        let proof = self.proof.as_deref().unwrap_or("?");
        let cause = self.cause.as_ref().map(|cause| format!(", {cause}")).unwrap_or_default();
        Some(text::printable(format!("{rule}, db {db}, proof {proof}{cause}").as_bytes()))
    }

    /// All of it by name, for a line each; nothing for a timer.
    pub(crate) fn lines(&self) -> Vec<(&'static str, String)> {
        if self.brief().is_none() {
            return vec![];
        }
        let captured = self.captured_ms.map(text::time);
        let db = self.db.map(|db| db.to_string());
        let fields = [
            ("kind", Some(self.kind.clone())),
            ("rule", self.rule.clone()),
            ("db", db),
            ("proof", self.proof.clone()),
            ("captured", captured),
            ("cause", self.cause.clone()),
        ];
        fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use overdue_protocol::entry::EntryId;

    use super::*;

    fn raw(fields: &[(&'static str, &'static str)]) -> RawEntry {
        let fields = fields.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        RawEntry { id: EntryId::ZERO, fields }
    }

    #[test]
    fn a_timer_says_no_more_than_that() {
        let timer = Watched::from(&raw(&[("id", "a")]));
        assert_eq!((timer.brief(), timer.lines()), (None, vec![]));
        assert_eq!(serde_json::to_string(&timer).unwrap(), r#"{"kind":"timer"}"#);
    }

    #[test]
    fn what_is_strange_in_a_key_is_shown_and_harms_no_terminal() {
        let odd = Watched::from(&raw(&[("kind", "key"), ("rule", "a\nb"), ("db", "x"), ("proof", "oath")]));
        assert_eq!(odd.brief().unwrap(), "a\\nb, db ?, proof oath");
        assert_eq!(odd.lines().len(), 3);
    }
}

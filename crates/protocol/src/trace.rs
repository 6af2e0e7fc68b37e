//! The trace context of W3C, as the `trace` field of an entry carries it: `traceparent`.

use std::fmt;

use crate::name::InvalidName;

/// A `traceparent`: `00-<trace id>-<parent id>-<flags>` in lower case hex, and what a later version puts behind it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TraceParent(String);

impl TraceParent {
    /// The length of version 00, in bytes.
    const BYTES: usize = 55;
    /// The longest that is taken, in bytes: a later version may be longer than 00.
    pub const MAX_BYTES: usize = 512;

    /// Reads one.
    ///
    /// # Errors
    /// What W3C Trace Context tells readers to leave aside.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        const RULE: &str = "W3C writes it like 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let hex = |text: &str, length: usize| {
            text.len() == length && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        };
        let id = |text: &str, length| hex(text, length) && text.bytes().any(|b| b != b'0');
        let mut parts = text.splitn(5, '-');
        let mut part = || parts.next().unwrap_or_default();
        let (version, trace, parent, flags) = (part(), part(), part(), part());
        let sound = hex(version, 2) && id(trace, 32) && id(parent, 16) && hex(flags, 2);
        let longer = text.len() > Self::BYTES;
        let known = version != "ff" && !(version == "00" && longer) && text.len() <= Self::MAX_BYTES;
        let plain = text.bytes().all(|b| b.is_ascii_graphic());
        if sound && known && plain {
            return Ok(Self(text.to_owned()));
        }
        let given = text.chars().take(80).collect();
        Err(InvalidName { what: "the traceparent", given, rule: RULE })
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The trace, in 32 hex digits.
    #[must_use]
    pub fn trace_id(&self) -> &str {
        &self.0[3..35]
    }

    /// The span of whoever wrote it, in 16 hex digits.
    #[must_use]
    pub fn parent_id(&self) -> &str {
        &self.0[36..52]
    }

    /// The context to hand on from a span of one's own: same trace and flags. A span of 0, which is none, becomes 1.
    #[must_use]
    pub fn child(&self, span: u64) -> Self {
        Self(format!("00-{}-{:016x}-{}", self.trace_id(), span.max(1), &self.0[53..55]))
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_traceparent_is_read_and_handed_on() {
        let parent = TraceParent::parse(GOOD).unwrap();
        assert_eq!(parent.trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(parent.parent_id(), "00f067aa0ba902b7");
        let child = parent.child(0xab);
        assert_eq!(child.as_str(), "00-4bf92f3577b34da6a3ce929d0e0e4736-00000000000000ab-01");
        assert_eq!(TraceParent::parse(child.as_str()), Ok(child));
        assert_eq!(parent.child(0).parent_id(), "0000000000000001");
        // A later version may say more; what is handed on is of ours.
        let later = TraceParent::parse(&format!("cc{}-what-else", &GOOD[2..])).unwrap();
        assert_eq!(later.child(1).as_str(), &format!("{}-0000000000000001-01", &GOOD[..35]));
    }

    #[test]
    fn what_w3c_leaves_aside_is_refused() {
        for bad in [
            "",
            "00",
            &GOOD.to_uppercase(),
            &GOOD[..54],
            &format!("{GOOD}-more"),
            &format!("ff{}", &GOOD[2..]),
            &format!("{GOOD}0"),
            &format!("{GOOD}\n"),
            &format!("cc{}.x", &GOOD[2..]),
            &format!("cc{}-é", &GOOD[2..]),
            &format!("cc{}-{}", &GOOD[2..], "x".repeat(512)),
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g",
        ] {
            assert!(TraceParent::parse(bad).is_err(), "{bad}");
        }
    }
}

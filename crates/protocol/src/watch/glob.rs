//! Redis' glob patterns, exactly as the server matches them.

use bytes::{BufMut, Bytes, BytesMut};

/// A pattern as SCAN, KEYS and PSUBSCRIBE understand it: `*`, `?`, `[a-z]`, `[^a]`, and `\` before a character that
/// stands for itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Glob(Bytes);

/// A `*` that is being tried: where the pattern goes on, and where in the text it begins and ends.
#[derive(Clone, Copy)]
struct Star {
    next: usize,
    begin: usize,
    end: usize,
}

impl Glob {
    /// Takes any bytes: to Redis every text is a pattern.
    #[must_use]
    pub fn new(pattern: impl Into<Bytes>) -> Self {
        Self(pattern.into())
    }

    /// Whether the whole of `text` matches. Takes at most as many steps as both lengths multiplied.
    ///
    /// An empty text matches nothing but the empty pattern, not even `*`: so it is in the server, where no key that can
    /// be watched is empty.
    #[must_use]
    pub fn is_match(&self, text: &[u8]) -> bool {
        self.run(text).is_some()
    }

    /// What the first `*` stands for in `text`, the shortest that lets it match; `None` when it does not match, or
    /// there is no `*`.
    #[must_use]
    pub fn capture(&self, text: &Bytes) -> Option<Bytes> {
        let first = self.run(text)??;
        Some(text.slice(first.begin..first.end))
    }

    /// Whether there is a `*` that stands for more than itself: [`Glob::capture`] can answer.
    #[must_use]
    pub fn has_star(&self) -> bool {
        let pattern = &self.0[..];
        let mut p = 0;
        while let Some(element) = pattern.get(p) {
            p = match element {
                b'*' => return true,
                b'[' => class(pattern, p + 1, 0).1,
                b'\\' => p + 2,
                _ => p + 1,
            };
        }
        false
    }

    /// A short text that it matches, for whoever wants to try one: each `*` stands for nothing if it can. `None` when
    /// nothing matches.
    #[must_use]
    pub fn sample(&self) -> Option<Bytes> {
        let pattern = &self.0[..];
        let (mut p, mut text) = (0, BytesMut::new());
        while let Some(&element) = pattern.get(p) {
            if element == b'*' {
                p += 1;
                continue;
            }
            // What is easy to read comes first.
            let mut bytes = (b'a'..=b'z').chain(0..=u8::MAX);
            let (byte, next) = bytes.find_map(|byte| Some((byte, one(pattern, p, byte)?)))?;
            text.put_u8(byte);
            p = next;
        }
        if text.is_empty() && !pattern.is_empty() {
            text.put_u8(b'a');
        }
        Some(text.freeze())
    }

    /// The pattern that matches `text` and nothing else.
    #[must_use]
    pub fn literal(text: &[u8]) -> Self {
        let mut pattern = BytesMut::with_capacity(text.len());
        for &byte in text {
            if matches!(byte, b'*' | b'?' | b'[' | b'\\') {
                pattern.put_u8(b'\\');
            }
            pattern.put_u8(byte);
        }
        Self(pattern.freeze())
    }

    /// The pattern.
    #[must_use]
    pub fn as_bytes(&self) -> &Bytes {
        &self.0
    }

    /// `None` when it does not match; else what the first `*` stands for, if there is one.
    ///
    /// Only the last `*` is ever tried again: what follows an earlier one has matched as far to the left as it can.
    fn run(&self, text: &[u8]) -> Option<Option<Star>> {
        let pattern = &self.0[..];
        let (mut p, mut t) = (0, 0);
        let (mut first, mut last): (Option<Star>, Option<Star>) = (None, None);
        if text.is_empty() {
            return pattern.is_empty().then_some(None);
        }
        loop {
            if pattern.get(p) == Some(&b'*') {
                p += pattern[p..].iter().take_while(|&&byte| byte == b'*').count();
                first = first.or(last);
                last = Some(Star { next: p, begin: t, end: t });
                if p == pattern.len() {
                    t = text.len();
                    last = last.map(|star| Star { end: t, ..star });
                }
            }
            match text.get(t) {
                None if p == pattern.len() => return Some(first.or(last)),
                None => return None,
                Some(&byte) => {
                    if let Some(next) = (p < pattern.len()).then(|| one(pattern, p, byte)).flatten() {
                        (p, t) = (next, t + 1);
                    } else {
                        let star = last.as_mut()?;
                        star.end += 1;
                        (p, t) = (star.next, star.end);
                    }
                }
            }
        }
    }
}

/// Matches the element of the pattern at `p`, which is no `*`, with one byte; where the pattern goes on.
fn one(pattern: &[u8], p: usize, byte: u8) -> Option<usize> {
    match pattern[p] {
        b'?' => Some(p + 1),
        b'[' => {
            let (hit, next) = class(pattern, p + 1, byte);
            hit.then_some(next)
        }
        b'\\' if p + 1 < pattern.len() => (pattern[p + 1] == byte).then_some(p + 2),
        literal => (literal == byte).then_some(p + 1),
    }
}

/// Matches the class that begins at `p`, behind its bracket; and where the pattern goes on. One that is not closed
/// ends with the pattern.
fn class(pattern: &[u8], mut p: usize, byte: u8) -> (bool, usize) {
    let not = pattern.get(p) == Some(&b'^');
    p += usize::from(not);
    let mut hit = false;
    loop {
        match pattern[p.min(pattern.len())..] {
            [] => break,
            [b'\\', escaped, ..] => {
                hit |= escaped == byte;
                p += 2;
            }
            [b']', ..] => {
                p += 1;
                break;
            }
            [from, b'-', to, ..] => {
                // The server compares them as C's char: signed where it runs on x86, and so here.
                let (from, to, byte) = (from as i8, to as i8, byte as i8);
                hit |= (from.min(to)..=from.max(to)).contains(&byte);
                p += 3;
            }
            [literal, ..] => {
                hit |= literal == byte;
                p += 1;
            }
        }
    }
    (hit != not, p)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn glob(pattern: &'static str) -> Glob {
        Glob::new(pattern.as_bytes())
    }

    #[test]
    fn matches_as_the_server_does() {
        for (pattern, yes, no) in [
            ("", &[""][..], &["a"][..]),
            ("*", &["a", "a\nb", "*"], &[""]),
            ("a*", &["a", "ab"], &["ba", ""]),
            ("*:*", &[":", "a:", "a:b:c"], &["ab"]),
            ("a*b*c", &["abc", "aXbYc", "abcbc"], &["ab", "acb", "abcd"]),
            ("h?llo", &["hello"], &["hllo", "heello"]),
            ("h[ae]llo", &["hallo"], &["hillo"]),
            ("h[^e]llo", &["hallo"], &["hello"]),
            ("[c-a]", &["b"], &["d"]),
            ("[a-]", &["a", "]"], &["-"]), // a range, up to the bracket
            ("[]a", &[], &["]a", "a"]),
            ("[\\]]", &["]"], &["\\"]),
            ("[a", &["a"], &["[a", "b"]),
            ("[", &[], &["["]),
            ("[^", &["x"], &["xy"]),
            ("\\*", &["*"], &["a", "\\*"]),
            ("a\\", &["a\\"], &["a"]),
            ("{a,b}", &["{a,b}"], &["a"]),
            ("A", &["A"], &["a"]),
        ] {
            let glob = glob(pattern);
            yes.iter().for_each(|text| assert!(glob.is_match(text.as_bytes()), "{pattern} {text}"));
            no.iter().for_each(|text| assert!(!glob.is_match(text.as_bytes()), "{pattern} {text}"));
        }
        assert!(Glob::new(&b"[\x80-\x82]"[..]).is_match(b"\x81"));
        assert!(Glob::new(&b"\xff*"[..]).is_match(b"\xff\0"));
    }

    #[test]
    fn many_stars_are_not_exponential() {
        let text = [b'a'; 65_536];
        assert!(!glob("a*a*a*a*a*a*a*a*a*a*a*a*a*b").is_match(&text));
        assert!(!glob("*a*a*a*a*[b-z]").is_match(&text));
    }

    #[test]
    fn the_first_star_stands_for_the_shortest_that_matches() {
        for (pattern, text, captured) in [
            ("order:*", "order:42", Some("42")),
            ("order:*", "order:", Some("")),
            ("order:*:*", "order:4:2:1", Some("4")),
            ("*:end", "a:end:end", Some("a:end")),
            ("**x", "abx", Some("ab")),
            ("a*b*", "aXbY", Some("X")),
            ("a*bc*d", "abbcbcd", Some("b")),
            ("order:?", "order:4", None),
            ("order:\\*", "order:*", None),
            ("order:[*]*", "order:*9", Some("9")),
            ("order:*", "other:42", None),
        ] {
            let got = glob(pattern).capture(&Bytes::from_static(text.as_bytes()));
            assert_eq!(got, captured.map(Bytes::from), "{pattern} {text}");
        }
    }

    #[test]
    fn a_star_that_stands_for_itself_is_none() {
        for (pattern, star) in [
            ("a*", true),
            ("[*]*", true),
            ("\\\\*", true),
            ("", false),
            ("a?", false),
            ("\\*", false),
            ("[a*]", false),
            ("[^]", false),
            ("[\\]*]", false),
            ("[a*", false),
            ("a\\", false),
        ] {
            assert_eq!(glob(pattern).has_star(), star, "{pattern}");
        }
    }

    #[test]
    fn a_sample_matches_when_anything_does() {
        for (pattern, sample) in [
            ("session:*", Some("session:")),
            ("*", Some("a")),
            ("**:?[^a-y]\\*[0-9]", Some(":az*0")),
            ("[", None),
            ("a[]b", None),
            ("", Some("")),
            ("a\\", Some("a\\")),
        ] {
            let found = glob(pattern).sample();
            assert_eq!(found, sample.map(Bytes::from), "{pattern}");
            assert!(found.is_none_or(|text| glob(pattern).is_match(&text)), "{pattern}");
        }
    }

    #[test]
    fn a_literal_matches_itself_only() {
        for text in [&b"a*[b]?\\"[..], b"\xff\0^-", b"plain"] {
            assert!(Glob::literal(text).is_match(text));
        }
        assert!(!Glob::literal(b"a*").is_match(b"ab"));
        assert_eq!(Glob::literal(b"a[b]").as_bytes(), "a\\[b]");
    }
}

//! The name of the key that is the payload of another.

use bytes::Bytes;

/// The name of another key: `order:{1}`, where `{1}` is what the first `*` of the pattern matched. Other braces stand for
/// themselves, so that `order:{{1}}` is a hash tag around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(String);

/// What stands for what the `*` matched.
const HOLE: &str = "{1}";

impl Template {
    /// Checks a template.
    ///
    /// # Errors
    /// It is empty; has a brace without its partner; or has a hole other than `{1}`, such as `{2}` or `{}`. Says what is
    /// wrong.
    pub fn new(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("the template of a key is empty; write something like `order:{1}`".to_owned());
        }
        let mut open = vec![];
        for (at, c) in text.char_indices() {
            match c {
                '{' => open.push(at),
                '}' => {
                    let begin = open.pop().ok_or(format!("`{text}` has a `}}` without a `{{`"))?;
                    let hole = &text[begin..=at];
                    let number = hole[1..hole.len() - 1].bytes().all(|byte| byte.is_ascii_digit());
                    if number && hole != HOLE {
                        return Err(format!(
                            "`{text}` has `{hole}`; only `{HOLE}` is known, what the first * matched"
                        ));
                    }
                }
                _ => {}
            }
        }
        open.is_empty().then(|| Self(text.to_owned())).ok_or(format!("`{text}` has a `{{` without a `}}`"))
    }

    /// Whether it says where what the `*` matched goes.
    #[must_use]
    pub fn has_hole(&self) -> bool {
        self.0.contains(HOLE)
    }

    /// The key for what the `*` matched.
    #[must_use]
    pub fn fill(&self, captured: &[u8]) -> Bytes {
        let parts: Vec<&[u8]> = self.0.split(HOLE).map(str::as_bytes).collect();
        Bytes::from(parts.join(captured))
    }

    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_filled_and_a_typing_error_in_it_is_told() {
        let fill = |text: &str| Template::new(text).unwrap().fill(b"4\xff2");
        assert_eq!(fill("order:{1}"), &b"order:4\xff2"[..]);
        assert_eq!(fill("{1}:{1}"), &b"4\xff2:4\xff2"[..]);
        assert_eq!(fill("order:{{1}}"), &b"order:{4\xff2}"[..]);
        assert_eq!(fill("{order}:fixed"), "{order}:fixed");
        assert!(!Template::new("fixed").unwrap().has_hole());
        for bad in ["", "order:{2}", "order:{}", "order:{1", "order:1}", "}{1}{"] {
            assert!(Template::new(bad).is_err(), "{bad}");
        }
    }
}

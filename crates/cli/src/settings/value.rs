//! How a value stands in the TOML file, for each form of a setting.

use toml::de::DeValue;

use super::key::{Entry, Form};

/// What to write for [`Form::Patterns`].
pub(super) const PATTERNS: &str = "write a list of strings, such as [\"session:tmp:*\"]";
/// What to write for [`Form::Rules`].
pub(super) const RULES: &str =
    "watch is a list of rules: write [[watch]] on a line of its own for each of them";

/// A value as the same text that a flag would give.
pub(super) fn value_text(entry: &Entry, value: &DeValue<'_>) -> Result<String, &'static str> {
    match (value, entry.form) {
        (_, Form::Rules) => Err(RULES),
        (DeValue::Array(items), Form::Patterns) => {
            let texts: Option<Vec<&str>> = items.iter().map(|item| item.get_ref().as_str()).collect();
            texts.and_then(|texts| serde_json::to_string(&texts).ok()).ok_or(PATTERNS)
        }
        (_, Form::Patterns) => Err(PATTERNS),
        (DeValue::String(text), _) => Ok(text.clone().into_owned()),
        (DeValue::Integer(number), _) if number.radix() == 10 => Ok(number.as_str().replace('_', "")),
        (DeValue::Array(items), Form::List) => {
            let texts: Option<Vec<&str>> = items.iter().map(|item| item.get_ref().as_str()).collect();
            texts.map(|texts| texts.join(",")).ok_or("write a list of strings, such as [\"orders\"]")
        }
        (_, Form::Text) => Err("write it between quotes"),
        (_, Form::Number) => Err("write a whole number"),
        (_, Form::List) => Err("write a list of strings, such as [\"orders\"]"),
    }
}

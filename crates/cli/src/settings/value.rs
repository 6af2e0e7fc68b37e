//! How a value stands in the TOML file, for each form of a setting.

use toml::de::DeValue;

use super::key::{Entry, Form};
use super::list::List;

/// What to write for [`Form::List`].
const LIST: &str = "write a list of strings, such as [\"orders\"]";

/// What to write for [`Form::Strings`].
pub(super) fn strings(entry: &Entry) -> String {
    format!("write a list of strings, such as {}", entry.example)
}

/// A value as the same text that a flag would give.
pub(super) fn value_text(entry: &Entry, value: &DeValue<'_>) -> Result<String, String> {
    match (value, entry.form) {
        (_, Form::Rules) => Err(List::form(entry.path)),
        (DeValue::Array(items), Form::Strings) => {
            let texts: Option<Vec<&str>> = items.iter().map(|item| item.get_ref().as_str()).collect();
            texts.and_then(|texts| serde_json::to_string(&texts).ok()).ok_or_else(|| strings(entry))
        }
        (_, Form::Strings) => Err(strings(entry)),
        (DeValue::Boolean(value), Form::Switch) => Ok(value.to_string()),
        (DeValue::String(text), form) if form != Form::Switch => Ok(text.clone().into_owned()),
        (DeValue::Integer(number), form) if form != Form::Switch && number.radix() == 10 => {
            Ok(number.as_str().replace('_', ""))
        }
        (DeValue::Array(items), Form::List) => {
            let texts: Option<Vec<&str>> = items.iter().map(|item| item.get_ref().as_str()).collect();
            texts.map(|texts| texts.join(",")).ok_or_else(|| LIST.to_owned())
        }
        (_, Form::Text) => Err("write it between quotes".to_owned()),
        (_, Form::Number) => Err("write a whole number".to_owned()),
        (_, Form::Switch) => Err("write true or false, without quotes".to_owned()),
        (_, Form::List) => Err(LIST.to_owned()),
    }
}

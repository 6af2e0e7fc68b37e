//! YAML, read into JSON values: merge keys and anchors are resolved.

use overdue_tests::blocks::text;
use serde_json::Value;

/// One of our files that holds one document.
pub(super) fn read(name: &str) -> Value {
    parse(&text(name), name)
}

/// One that holds several.
pub(super) fn documents(name: &str) -> Vec<Value> {
    text(name).split("\n---\n").map(|document| parse(document, name)).collect()
}

/// A document; `name` is for the error.
pub(super) fn parse(document: &str, name: &str) -> Value {
    serde_saphyr::from_str(document).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// A list of texts; nothing is an empty list.
pub(super) fn strings(value: &Value) -> Vec<String> {
    let items = value.as_array().cloned().unwrap_or_default();
    items.iter().map(|item| item.as_str().unwrap_or_else(|| panic!("{item} is no text")).to_owned()).collect()
}

/// What a text says.
pub(super) fn string(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}

#[test]
fn merge_keys_and_anchors_are_resolved() {
    let value = parse("a: &a { x: 1, y: [p] }\nb:\n  <<: *a\n  x: 2\nc: *a\n", "a test");
    assert_eq!(value["b"], serde_json::json!({ "x": 2, "y": ["p"] }));
    assert_eq!(value["c"]["x"], 1);
    assert_eq!(strings(&value["b"]["y"]), ["p"]);
}

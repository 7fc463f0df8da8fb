//! The form of a model file for readers: a key a line, and lists of numbers on
//! one line, since a forest has thousands.

use serde_json::{Map, Value};

/// The keys that come first, so that a reader sees what the file is.
const FIRST: [&str; 8] = [
    "format",
    "checksum",
    "name",
    "version",
    "machine",
    "simulated",
    "fingerprint",
    "trained_at",
];

/// The file of this content.
pub(super) fn text(content: &Value, checksum: &str) -> String {
    let mut text = String::new();
    match content {
        Value::Object(fields) => {
            let checksum = Value::from(checksum);
            let first = FIRST.into_iter().filter_map(|key| match key {
                "checksum" => Some((key, &checksum)),
                _ => Some((key, fields.get(key)?)),
            });
            let rest = fields.iter().map(|(key, value)| (key.as_str(), value));
            let rest = rest.filter(|(key, _)| !FIRST.contains(key));
            object(&mut text, first.chain(rest), 0);
        }
        other => value(&mut text, other, 0),
    }
    text.push('\n');
    text
}

fn value(text: &mut String, of: &Value, depth: usize) {
    match of {
        Value::Object(fields) if !fields.is_empty() => members(text, fields, depth),
        Value::Array(items) if items.iter().any(is_long) => {
            text.push('[');
            for (i, item) in items.iter().enumerate() {
                begin_line(text, i, depth + 1);
                value(text, item, depth + 1);
            }
            end(text, depth, ']');
        }
        short => text.push_str(&short.to_string()),
    }
}

/// Whether it takes lines of its own: an object, or a list with one in it.
fn is_long(value: &Value) -> bool {
    match value {
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(items) => items.iter().any(is_long),
        _ => false,
    }
}

fn members(text: &mut String, fields: &Map<String, Value>, depth: usize) {
    let fields = fields.iter().map(|(key, value)| (key.as_str(), value));
    object(text, fields, depth);
}

fn object<'a>(text: &mut String, fields: impl Iterator<Item = (&'a str, &'a Value)>, depth: usize) {
    text.push('{');
    for (i, (key, of)) in fields.enumerate() {
        begin_line(text, i, depth + 1);
        text.push_str(&Value::from(key).to_string());
        text.push_str(": ");
        value(text, of, depth + 1);
    }
    end(text, depth, '}');
}

fn begin_line(text: &mut String, i: usize, depth: usize) {
    if i > 0 {
        text.push(',');
    }
    text.push('\n');
    text.push_str(&"  ".repeat(depth));
}

fn end(text: &mut String, depth: usize, bracket: char) {
    text.push('\n');
    text.push_str(&"  ".repeat(depth));
    text.push(bracket);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_share_a_line_and_keys_do_not() {
        let content = json!({
            "a": {"b": [[1, 0.5], [2, 0.25]], "c": [], "d": {}},
            "e \"": [{"f": null}],
            "name": "k40",
            "format": "pdawl-model/1",
        });
        let expected = r#"{
  "format": "pdawl-model/1",
  "checksum": "0123",
  "name": "k40",
  "a": {
    "b": [[1,0.5],[2,0.25]],
    "c": [],
    "d": {}
  },
  "e \"": [
    {
      "f": null
    }
  ]
}
"#;
        let text = text(&content, "0123");
        assert_eq!(text, expected);
        let mut back: Value = serde_json::from_str(&text).unwrap();
        back.as_object_mut().unwrap().remove("checksum");
        assert_eq!(back, content);
    }
}

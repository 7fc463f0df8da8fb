//! A validator for the part of JSON Schema that docs/*.schema.json use. An unknown
//! keyword is an error, so that no rule is silently ignored.

use serde_json::Value;

/// Lists the violations of `schema` in `value`; empty if it conforms.
pub fn violations(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(schema, schema, value, "$", &mut found);
    found
}

/// Asserts that a run's report conforms to its published schema.
pub fn conforms(report: &Value) {
    let found = violations(&report_schema(), report);
    assert!(found.is_empty(), "{found:#?}");
}

fn check(root: &Value, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    let rules = schema.as_object().expect("a schema is an object");
    for (keyword, rule) in rules {
        let right = match keyword.as_str() {
            "$schema" | "$comment" | "$defs" | "title" => true,
            "$ref" => {
                let pointer = rule.as_str().unwrap().trim_start_matches('#');
                let target = root.pointer(pointer).expect("a definition");
                check(root, target, value, at, found);
                true
            }
            "type" => match rule {
                Value::Array(any) => any.iter().any(|t| is(t, value)),
                one => is(one, value),
            },
            "const" => value == rule,
            "enum" => rule.as_array().unwrap().contains(value),
            "minimum" => value.as_f64().is_none_or(|v| v >= rule.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|v| v <= rule.as_f64().unwrap()),
            "required" => {
                let mut names = rule.as_array().unwrap().iter();
                !value.is_object() || names.all(|name| value.get(name.as_str().unwrap()).is_some())
            }
            "properties" => {
                for (name, schema) in rule.as_object().unwrap() {
                    if let Some(value) = value.get(name) {
                        check(root, schema, value, &format!("{at}.{name}"), found);
                    }
                }
                true
            }
            "items" => {
                for (i, value) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, rule, value, &format!("{at}[{i}]"), found);
                }
                true
            }
            other => panic!("the checker does not know `{other}`"),
        };
        if !right {
            found.push(format!("{at}: {value} breaks {keyword} {rule}"));
        }
    }
}

fn is(name: &Value, value: &Value) -> bool {
    match name.as_str().expect("a type's name") {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        other => panic!("no such type: {other}"),
    }
}

/// The schema of run reports.
pub fn report_schema() -> Value {
    serde_json::from_str(include_str!("../../docs/pdawl-report-1.schema.json"))
        .expect("the schema file is JSON")
}

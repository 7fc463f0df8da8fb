//! Fields that a JSON file gives twice: the last value counts, as for Python's
//! reader, for which PySchedCL's files were written.

use std::collections::HashMap;

/// Levels that are looked at. `serde_json` refuses a text with more.
const DEEPEST: usize = 128;

/// The members of an object that is being read.
#[derive(Default)]
struct Members {
    by_key: HashMap<String, Member>,
    /// The key of the last one.
    last: String,
}

/// A member of an object.
struct Member {
    /// Offset of the key, and of what follows the member's comma.
    start: usize,
    end: usize,
    line: usize,
}

/// The text with every field but the last of its name blanked out, and a warning
/// for each. Lines and columns stay; a text that is no JSON may be returned as is.
pub fn last_of_each(text: &str) -> (String, Vec<String>) {
    let mut kept = text.as_bytes().to_vec();
    let mut warnings = Vec::new();
    // The members of each open object; `None` for an open array.
    let mut open: Vec<Option<Members>> = Vec::new();
    let (mut at, mut line, mut wants_key) = (0, 1, false);
    let bytes = text.as_bytes();
    while let Some(byte) = bytes.get(at) {
        let start = at;
        at += 1;
        if open.len() > DEEPEST {
            return (text.to_owned(), warnings);
        }
        match byte {
            b'\n' => line += 1,
            b'{' => {
                open.push(Some(Members::default()));
                wants_key = true;
            }
            b'[' => {
                open.push(None);
                wants_key = false;
            }
            b'}' | b']' => {
                open.pop();
                wants_key = false;
            }
            b',' => {
                if let Some(Some(members)) = open.last_mut() {
                    if let Some(member) = members.by_key.get_mut(&members.last) {
                        member.end = at;
                    }
                    wants_key = true;
                }
            }
            b'"' => {
                at = end_of_string(bytes, at);
                if !std::mem::take(&mut wants_key) {
                    continue;
                }
                let Some(Some(members)) = open.last_mut() else {
                    continue;
                };
                let written = &text[start..at];
                let key = serde_json::from_str(written).unwrap_or_else(|_| written.to_owned());
                let member = Member {
                    start,
                    end: start,
                    line,
                };
                members.last.clone_from(&key);
                if let Some(before) = members.by_key.insert(key.clone(), member) {
                    let blank = kept[before.start..before.end].iter_mut();
                    blank.filter(|b| **b != b'\n').for_each(|b| *b = b' ');
                    warnings.push(format!(
                        "`{key}` is on line {} and again on line {line}; the value on line {line} \
                         counts",
                        before.line
                    ));
                }
            }
            _ => {}
        }
    }
    (String::from_utf8_lossy(&kept).into_owned(), warnings)
}

/// The offset behind the string whose content begins at `at`.
fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    while let Some(byte) = bytes.get(at) {
        at += match byte {
            b'"' => return at + 1,
            b'\\' if at + 1 < bytes.len() => 2,
            _ => 1,
        };
    }
    at
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_last_value_counts_and_both_lines_are_named() {
        let text =
            "{\"a\": [1,\n 2], \"b\": {\"a\": 5, \"c\": \"}\\\"\"},\n \"\\u0061\": 3, \"b\": 4}";
        let (kept, warnings) = last_of_each(text);
        assert_eq!(
            serde_json::from_str::<Value>(&kept).unwrap(),
            json!({"a": 3, "b": 4})
        );
        assert_eq!(kept.len(), text.len());
        assert_eq!(
            warnings,
            [
                "`a` is on line 1 and again on line 3; the value on line 3 counts",
                "`b` is on line 2 and again on line 3; the value on line 3 counts",
            ]
        );
    }

    #[test]
    fn objects_beside_and_within_one_another_may_share_names() {
        for text in [
            r#"[{"a": 1}, {"a": 2}]"#,
            r#"{"a": {"a": ["a", "a"]}, "b": "a"}"#,
            "{\"a\": 1 \"a\": 2}",
            "{\"a",
            "]}{,\"",
        ] {
            assert_eq!(last_of_each(text), (text.to_owned(), Vec::new()));
        }
    }

    /// Each takes gigabytes or minutes where levels are without a limit or fields are compared
    /// one by one.
    #[test]
    fn deep_and_wide_texts_take_little() {
        for begin in ["[", "{\"a\":", "[{\"a\":"] {
            let deep = begin.repeat(100_000);
            assert_eq!(last_of_each(&deep), (deep.clone(), Vec::new()));
            assert!(serde_json::from_str::<Value>(&deep).is_err());
        }
        let fields: String = (0..100_000).map(|i| format!("\"k{i}\": 1, ")).collect();
        let (kept, warnings) = last_of_each(&format!("{{{fields}\"k7\": 2}}"));
        assert_eq!(warnings.len(), 1);
        assert_eq!(serde_json::from_str::<Value>(&kept).unwrap()["k7"], 2);
    }

    proptest! {
        /// `serde_json`'s untyped reader takes the last value, too.
        #[test]
        fn values_stay_as_they_are(text in r#"\{("[ab]": ([0-9]|"x,\}"|\[1, \{\}\]|\{"a": 1\}), \n?){0,5}"c": 0\}"#) {
            let (kept, _) = last_of_each(&text);
            let (kept, before): (Value, Value) =
                (serde_json::from_str(&kept).unwrap(), serde_json::from_str(&text).unwrap());
            prop_assert_eq!(kept, before);
        }
    }
}

//! The fields of a kernel file as they are written: PySchedCL's, and our additions; their forms,
//! and fields that a file gives twice.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;
use serde::de::Unexpected;
use serde_json::Value;

use crate::expression;
use crate::expression::{Expression, ExpressionError};

/// Fields that the authors' tools write and that have no meaning here: `ecos` and
/// `globalChunkFactor` control their splitting, `create` and `enq_*` their copies.
pub const IGNORED_FIELDS: [&str; 8] = [
    "ecos",
    "globalChunkFactor",
    "localChunkFactor",
    "create",
    "enq_write",
    "enq_read",
    "chunk",
    "persistence",
];

#[derive(Clone, Debug, Deserialize)]
pub struct RawKernel {
    pub src: String,
    pub name: String,
    #[serde(rename = "workDimension")]
    pub dimension: Count,
    #[serde(rename = "globalWorkSize")]
    pub global: Amounts,
    #[serde(rename = "localWorkSize", default)]
    pub local: Option<Amounts>,
    #[serde(rename = "inputBuffers", default)]
    pub inputs: Vec<RawBuffer>,
    #[serde(rename = "outputBuffers", default)]
    pub outputs: Vec<RawBuffer>,
    #[serde(rename = "ioBuffers", default)]
    pub both: Vec<RawBuffer>,
    #[serde(rename = "varArguments", default)]
    pub scalars: Vec<RawScalar>,
    #[serde(rename = "localArguments", default)]
    pub locals: Vec<RawLocal>,
    /// Macros of `-D`; the values are expressions or names of types.
    #[serde(rename = "macros_values", default)]
    pub macros: BTreeMap<String, Value>,
    #[serde(rename = "symbolicVariables", default)]
    pub symbols: BTreeMap<String, Amount>,
    /// 0, all on the CPU, to 10, all on the GPU.
    #[serde(default)]
    pub partition: Option<Amount>,
    /// A symbol that many of the authors' files use.
    #[serde(default)]
    pub dataset: Option<Amount>,
    #[serde(default)]
    pub id: Option<Count>,
    /// Kernels that must end first, in a list of kernels.
    #[serde(default)]
    pub depends: Vec<Count>,
    /// The component's number, in a list of kernels.
    #[serde(default)]
    pub task: Option<Count>,
    /// `cpu` or `gpu`.
    #[serde(default)]
    pub dev: Option<String>,
    #[serde(flatten)]
    pub others: BTreeMap<String, Value>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct RawBuffer {
    #[serde(rename = "type")]
    pub element: String,
    /// In elements.
    pub size: Amount,
    pub pos: Count,
    /// Whether it is divided like the work.
    #[serde(rename = "break", default)]
    pub divided: Flag,
    /// The kernel that makes it, and its position there.
    #[serde(default)]
    pub from: Option<RawFrom>,
    #[serde(flatten)]
    pub others: BTreeMap<String, Value>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct RawFrom {
    pub kernel: Count,
    pub pos: Count,
}

#[derive(Clone, Debug, Deserialize)]
pub struct RawScalar {
    #[serde(rename = "type")]
    pub element: String,
    pub pos: Count,
    pub value: Amount,
    #[serde(flatten)]
    pub others: BTreeMap<String, Value>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct RawLocal {
    #[serde(rename = "type")]
    pub element: String,
    pub pos: Count,
    /// In elements.
    pub size: Amount,
    #[serde(flatten)]
    pub others: BTreeMap<String, Value>,
}

// The forms of a field: a size is a number or an expression, a list is a list or a
// text with brackets, a flag is 0, 1, `true` or `"1"`.

/// The mark of a value that the user must fill in.
pub const TO_FILL: &str = "?";

/// The error of a value with that mark.
const FILL_IN: &str = "`?` marks a value that is to be filled in";

/// A field that is a number or an expression.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(try_from = "Value")]
pub struct Amount(pub Expression);

/// A field that is one or several of them.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(try_from = "Value")]
pub(super) struct Amounts(pub Vec<Expression>);

/// A field that is a number from 0 on: a position, an id.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "Value")]
pub struct Count(pub u64);

/// A field that is true or false.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(try_from = "Value")]
pub(super) struct Flag(pub bool);

impl TryFrom<Value> for Amount {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let parsed = match &value {
            Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(whole), _) => Ok(whole.into()),
                (None, Some(fraction)) if !number.is_u64() => Ok(fraction.into()),
                _ => Err("the number does not fit in 64 bits".to_owned()),
            },
            Value::String(text) if text.trim() == TO_FILL => Err(FILL_IN.to_owned()),
            Value::String(text) => text.parse().map_err(|e: ExpressionError| e.to_string()),
            other => {
                let expected = "a number, or a text with an expression such as \"dataset*2\"";
                Err(invalid("type", other, expected))
            }
        };
        parsed.map(Self)
    }
}

impl TryFrom<Value> for Amounts {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let parsed = match value {
            Value::Array(items) => (0..).zip(items).map(one).collect(),
            Value::String(text) if text.contains(TO_FILL) => Err(FILL_IN.to_owned()),
            Value::String(text) => expression::list(&text).map_err(|e| e.to_string()),
            number @ Value::Number(_) => Amount::try_from(number).map(|one| vec![one.0]),
            other => {
                let expected = "a list such as [256, \"dataset/4\"], a number, or \"[a, b]\"";
                Err(invalid("type", &other, expected))
            }
        };
        parsed.map(Self)
    }
}

/// An entry of a list, with its index.
fn one((index, item): (usize, Value)) -> Result<Expression, String> {
    let amount = Amount::try_from(item).map_err(|why| format!("entry {index}: {why}"));
    amount.map(|amount| amount.0)
}

impl TryFrom<Value> for Count {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let expected = "a whole number from 0 on";
        let parsed = match &value {
            Value::Number(number) if number.as_i64().is_some_and(|n| n < 0) => {
                return Err(format!(
                    "invalid type: a negative number, expected {expected}"
                ));
            }
            Value::Number(number) => number.as_u64().ok_or("type"),
            Value::String(text) => text.trim().parse().map_err(|_| "value"),
            _ => Err("type"),
        };
        parsed
            .map(Self)
            .map_err(|what| invalid(what, &value, expected))
    }
}

impl TryFrom<Value> for Flag {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let what = match &value {
            Value::Bool(flag) => return Ok(Self(*flag)),
            Value::Number(number) => match number.as_u64() {
                Some(0) => return Ok(Self(false)),
                Some(1) => return Ok(Self(true)),
                _ => "value",
            },
            Value::String(text) => match text.trim() {
                "0" | "false" => return Ok(Self(false)),
                "1" | "true" => return Ok(Self(true)),
                _ => "value",
            },
            _ => "type",
        };
        Err(invalid(what, &value, "0 or 1"))
    }
}

/// The message of a wrong type or value.
fn invalid(what: &str, value: &Value, expected: &str) -> String {
    let found = match value {
        Value::Null => Unexpected::Other("null"),
        Value::Bool(flag) => Unexpected::Bool(*flag),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Unexpected::Signed(whole),
            (None, fraction) => Unexpected::Float(fraction.unwrap_or(f64::NAN)),
        },
        Value::String(text) => Unexpected::Str(text),
        Value::Array(_) => Unexpected::Seq,
        Value::Object(_) => Unexpected::Map,
    };
    format!("invalid {what}: {found}, expected {expected}")
}

// Fields that a JSON file gives twice: the last value counts, as for Python's
// reader, for which PySchedCL's files were written.

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

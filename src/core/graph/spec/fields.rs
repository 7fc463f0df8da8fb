//! The forms of a field: a size is a number or an expression, a list is a list or a
//! text with brackets, a flag is 0, 1, `true` or `"1"`.

use serde::Deserialize;
use serde::de::Unexpected;
use serde_json::Value;

use crate::expression::{self, Expression, ExpressionError};

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
pub struct Amounts(pub Vec<Expression>);

/// A field that is a number from 0 on: a position, an id.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "Value")]
pub struct Count(pub u64);

/// A field that is true or false.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(try_from = "Value")]
pub struct Flag(pub bool);

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

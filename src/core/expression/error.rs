//! Errors of expressions, with their positions.

use std::fmt;

use thiserror::Error;

use super::excerpt::excerpt;

/// The error of an expression that cannot be read or has no value.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("`{text}`{place}: {cause}", place = Place(*.at))]
pub struct ExpressionError {
    /// The expression; of a long one, the part around the position.
    pub text: String,
    /// The position in it, in characters, counted from 0.
    pub at: usize,
    pub cause: Cause,
}

/// The kinds of errors.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Cause {
    #[error("`{0}` is not allowed in an expression")]
    Character(char),
    #[error("`{0}` is not a number that fits in 64 bits")]
    Number(String),
    #[error("it is incomplete")]
    Ends,
    #[error("`{found}` is found instead of {wanted}")]
    Unexpected { found: String, wanted: &'static str },
    #[error("it is nested more than {0} deep")]
    Deep(usize),
    #[error("it has more than {0} operators")]
    Long(usize),
    #[error("`{name}` has no value{}", Known(.known))]
    Unknown { name: String, known: Vec<String> },
    #[error("division by zero")]
    DivisionByZero,
    #[error("the result does not fit in 64 bits")]
    Overflow,
    #[error("the exponent {0} is too large, or negative for integers")]
    Exponent(String),
    #[error("there is no function `{0}`; known are min, max, abs, int, float and partition_round")]
    Function(String),
    #[error("{function} takes {takes}, not {given} arguments")]
    Arguments {
        function: &'static str,
        takes: &'static str,
        given: usize,
    },
    #[error("{0}")]
    Domain(&'static str),
    #[error(
        "an integer is needed, and the value is the fraction {0:?}; int(...) makes it an integer"
    )]
    NotWhole(f64),
}

/// An error at a character position, before the text is known.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct At(pub usize, pub Cause);

impl At {
    pub(super) fn within(self, text: &str) -> ExpressionError {
        ExpressionError {
            text: excerpt(text, self.0),
            at: self.0,
            cause: self.1,
        }
    }
}

struct Place(usize);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            at => write!(f, ", character {}", at + 1),
        }
    }
}

struct Known<'a>(&'a [String]);

impl fmt::Display for Known<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = |name: &&String| !matches!(name.as_str(), "size_percent" | "offset_percent");
        let names: Vec<&str> = self.0.iter().filter(user).map(String::as_str).collect();
        match names.is_empty() {
            true => f.write_str("; give it one with -D NAME=VALUE"),
            false => write!(
                f,
                " (known: {}); give it one with -D NAME=VALUE",
                names.join(", ")
            ),
        }
    }
}

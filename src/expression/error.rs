//! What is wrong with an expression, and where.

use std::fmt;

use thiserror::Error;

use super::excerpt::excerpt;

/// An expression that cannot be read or has no value.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("`{text}`{place}: {cause}", place = Place(*.at))]
pub struct ExpressionError {
    /// The expression; of a long one, what is around the place.
    pub text: String,
    /// Where in it, in characters, counted from 0.
    pub at: usize,
    pub cause: Cause,
}

/// The kinds of faults.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Cause {
    #[error("`{0}` has no place in an expression")]
    Character(char),
    #[error("`{0}` is no number that fits in 64 bits")]
    Number(String),
    #[error("it ends where a number, a name or `(` should follow")]
    Ends,
    #[error("`{found}` stands where {wanted} should")]
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
    #[error("the exponent {0} is too large, or negative for whole numbers")]
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
        "a whole number is wanted, and the value is the fraction {0:?}; int(...) makes it whole"
    )]
    NotWhole(f64),
}

/// A cause at a character offset, before the text is known.
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

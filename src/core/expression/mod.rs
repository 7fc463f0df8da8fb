//! Arithmetic over named numbers. Specifications of kernels use it for sizes and
//! arguments: `dataset`, `m1*p1`, `[m1/wpt, n1]`, `partition_round(dataset,
//! size_percent)`.
//!
//! Grammar and meaning are Python's, since PySchedCL's authors use that: `/` and `//`
//! on integers round downwards, `%` has the sign of its divisor, and `**` binds
//! tighter than a sign before it. Names are tokens: a symbol `m` does not affect
//! another one `m1`. Integers have 64 bits, and an overflow is an error.
//!
//! * `parse` splits the text and makes a tree of it, `value` has the arithmetic and the functions;
//!   an [`ExpressionError`] has its position.
//!
//! This folder is pure; it knows neither specifications nor kernels.
//!
//! Errors of expressions, with their positions.
//!
//! Excerpts of texts, for messages.

mod parse;
mod value;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use parse::{Node, Tree};
use thiserror::Error;
use value::Function;

pub use value::Number;

/// The values of names.
pub type Symbols = BTreeMap<String, Number>;

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    text: String,
    tree: Tree,
}

impl Expression {
    /// The value, with these values of names.
    ///
    /// # Errors
    /// When a name has no value, a division is by zero, a number does not fit in 64
    /// bits, or a function has wrong arguments.
    pub fn value(&self, symbols: &Symbols) -> Result<Number, ExpressionError> {
        evaluate(&self.tree, symbols).map_err(|fault| fault.within(&self.text))
    }

    /// The value as an integer.
    ///
    /// # Errors
    /// As [`value`](Self::value), and when the value is a fraction.
    pub fn whole(&self, symbols: &Symbols) -> Result<i64, ExpressionError> {
        match self.value(symbols)? {
            Number::Int(n) => Ok(n),
            Number::Float(x) => Err(At(0, Cause::NotWhole(x)).within(&self.text)),
        }
    }

    /// The names that it uses, each once, sorted.
    pub fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        collect(&self.tree, &mut names);
        names.sort_unstable();
        names.dedup();
        names
    }
}

impl FromStr for Expression {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<Self, ExpressionError> {
        let tree = parse::parse(text).map_err(|fault| fault.within(text))?;
        Ok(Self {
            text: text.to_owned(),
            tree,
        })
    }
}

impl From<i64> for Expression {
    fn from(number: i64) -> Self {
        Self {
            text: number.to_string(),
            tree: Tree::leaf(Node::Number(Number::Int(number))),
        }
    }
}

impl From<f64> for Expression {
    fn from(number: f64) -> Self {
        Self {
            text: number.to_string(),
            tree: Tree::leaf(Node::Number(Number::Float(number))),
        }
    }
}

/// For messages: the begin of a long one.
impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&excerpt(&self.text, 0))
    }
}

/// Several expressions in one text: `[a, b]`, `(a, b)`, `a, b` or a single `a`.
///
/// # Errors
/// When one of them cannot be read.
pub fn list(text: &str) -> Result<Vec<Expression>, ExpressionError> {
    let parts = parse::list(text).map_err(|fault| fault.within(text))?;
    // Each is read again by itself, so that errors have positions within it.
    parts.into_iter().map(|part| text[part].parse()).collect()
}

fn evaluate(tree: &Tree, symbols: &Symbols) -> Result<Number, At> {
    let fault = |cause| At(tree.at, cause);
    match &tree.node {
        Node::Number(number) => Ok(*number),
        Node::Name(name) => match symbols.get(name) {
            Some(number) => Ok(*number),
            None => Err(fault(Cause::Unknown {
                name: excerpt(name, 0),
                known: symbols.keys().cloned().collect(),
            })),
        },
        Node::Minus(inner) => evaluate(inner, symbols)?.negative().map_err(fault),
        Node::Binary(operator, left, right) => {
            let (left, right) = (evaluate(left, symbols)?, evaluate(right, symbols)?);
            value::apply(*operator, left, right).map_err(fault)
        }
        Node::Call(name, arguments) => {
            let function: Function = name.parse().map_err(fault)?;
            let values: Result<Vec<_>, _> = (arguments.iter())
                .map(|argument| evaluate(argument, symbols))
                .collect();
            function.call(&values?).map_err(fault)
        }
    }
}

fn collect<'a>(tree: &'a Tree, names: &mut Vec<&'a str>) {
    match &tree.node {
        Node::Number(_) => {}
        Node::Name(name) => names.push(name),
        Node::Minus(inner) => collect(inner, names),
        Node::Binary(_, left, right) => {
            collect(left, names);
            collect(right, names);
        }
        Node::Call(_, arguments) => arguments.iter().for_each(|a| collect(a, names)),
    }
}

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
struct At(pub usize, pub Cause);

impl At {
    fn within(self, text: &str) -> ExpressionError {
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

/// Characters that are quoted before and after a position.
const AROUND: usize = 40;

/// The text, or of a long one the part around the character `at`. Control characters
/// are escaped.
fn excerpt(text: &str, at: usize) -> String {
    let characters = text.chars().count();
    let begin = match characters > 2 * AROUND {
        true => at.saturating_sub(AROUND).min(characters - 2 * AROUND),
        false => 0,
    };
    let mut shown = String::new();
    if begin > 0 {
        shown.push_str("...");
    }
    for c in text.chars().skip(begin).take(2 * AROUND) {
        match c.is_control() {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    if begin + 2 * AROUND < characters {
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests;

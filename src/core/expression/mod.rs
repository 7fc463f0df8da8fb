//! Arithmetic over named numbers. Specifications of kernels use it for sizes and
//! arguments: `dataset`, `m1*p1`, `[m1/wpt, n1]`, `partition_round(dataset,
//! size_percent)`.
//!
//! Grammar and meaning are Python's, since PySchedCL's authors use that: `/` and `//`
//! on integers round downwards, `%` has the sign of its divisor, and `**` binds
//! tighter than a sign before it. Names are tokens: a symbol `m` does not affect
//! another one `m1`. Integers have 64 bits, and an overflow is an error.
//!
//! * `token` splits the text, `parse` makes a tree of it, `value` is the arithmetic,
//!   [`function`] the functions; an [`ExpressionError`] has its position.
//!
//! This folder is pure; it knows neither specifications nor kernels.

mod error;
mod excerpt;
pub mod function;
mod parse;
#[cfg(test)]
mod tests;
mod token;
mod value;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

pub use error::{Cause, ExpressionError};
pub use value::Number;

use error::At;
use excerpt::excerpt;
use function::Function;
use parse::{Node, Tree};

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

    /// The text that was read.
    pub fn text(&self) -> &str {
        &self.text
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

/// For messages: the begin of a long one; [`Expression::text`] is all of it.
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

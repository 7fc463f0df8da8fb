//! Arithmetic over named numbers, as kernel specifications use it for sizes
//! and arguments: `dataset`, `m1*p1`, `[m1/wpt, n1]`, `partition_round(dataset,
//! size_percent)`.
//!
//! The grammar and its meaning are Python's, in which PySchedCL's authors wrote
//! their specifications: `/` and `//` on whole numbers round downwards, `%` has the
//! sign of its divisor, and `**` binds tighter than a sign before it. Names are
//! tokens: a symbol `m` never touches another one called `m1`. Whole numbers
//! are 64 bits wide, and what does not fit is an error, never a wrapped figure.
//!
//! * `token` cuts the text, `parse` makes a tree of it, `value` is the
//!   arithmetic, [`function`] what can be called; [`ExpressionError`] says
//!   where it went wrong.
//!
//! Pure; it knows neither specifications nor kernels.

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

/// Values of names.
pub type Symbols = BTreeMap<String, Number>;

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    text: String,
    tree: Tree,
}

impl Expression {
    /// Its value, with these values of its names.
    ///
    /// # Errors
    /// When a name has no value, a division is by zero, a number does not fit
    /// in 64 bits, or a function is called with what it does not take.
    pub fn value(&self, symbols: &Symbols) -> Result<Number, ExpressionError> {
        evaluate(&self.tree, symbols).map_err(|fault| fault.within(&self.text))
    }

    /// Its value as a whole number.
    ///
    /// # Errors
    /// As [`value`](Self::value), and when it is a fraction.
    pub fn whole(&self, symbols: &Symbols) -> Result<i64, ExpressionError> {
        match self.value(symbols)? {
            Number::Int(n) => Ok(n),
            Number::Float(x) => Err(At(0, Cause::NotWhole(x)).within(&self.text)),
        }
    }

    /// The names that it uses, each once, in order.
    pub fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        collect(&self.tree, &mut names);
        names.sort_unstable();
        names.dedup();
        names
    }

    /// As it was written.
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

/// For messages: of a long one the begin; [`Expression::text`] is all of it.
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
    // Each is read again by itself, so that its faults are placed in it.
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

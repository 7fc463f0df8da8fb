//! Conditions of `#if`, over integers.

use super::macros::{Macro, Macros};
use super::{Token, is_name};

/// Most levels of nesting; the limit protects the stack.
const DEEPEST: usize = 64;

/// The value of an expression without macros; `None` when it cannot be evaluated.
pub(super) fn value(tokens: &[Token]) -> Option<i64> {
    let named = tokens.iter().any(|token| is_name(token));
    if named {
        return None;
    }
    evaluated(tokens, &Macros::new())
}

/// Whether a condition holds; `None` when it cannot be evaluated.
pub(super) fn holds(tokens: &[Token], macros: &Macros) -> Option<bool> {
    evaluated(tokens, macros).map(|value| value != 0)
}

fn evaluated(tokens: &[Token], macros: &Macros) -> Option<i64> {
    let mut reader = Reader {
        tokens,
        at: 0,
        macros,
        depth: 0,
    };
    let value = reader.chosen()?;
    (reader.at == tokens.len()).then_some(value)
}

struct Reader<'a> {
    tokens: &'a [Token],
    at: usize,
    macros: &'a Macros,
    depth: usize,
}

/// Operators by precedence, the lowest first.
const LEVELS: [&[&str]; 10] = [
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<", ">", "<=", ">="],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

impl Reader<'_> {
    fn binary(&mut self, level: usize) -> Option<i64> {
        let Some(operators) = LEVELS.get(level) else {
            return self.unary();
        };
        let mut left = self.binary(level + 1)?;
        while let Some(operator) = self.tokens.get(self.at).map(String::as_str)
            && operators.contains(&operator)
        {
            self.at += 1;
            let right = self.binary(level + 1)?;
            left = match operator {
                "||" => i64::from(left != 0 || right != 0),
                "&&" => i64::from(left != 0 && right != 0),
                "|" => left | right,
                "^" => left ^ right,
                "&" => left & right,
                "<<" => left.checked_shl(u32::try_from(right).ok()?)?,
                ">>" => left.checked_shr(u32::try_from(right).ok()?)?,
                "==" => i64::from(left == right),
                "!=" => i64::from(left != right),
                "<" => i64::from(left < right),
                ">" => i64::from(left > right),
                "<=" => i64::from(left <= right),
                ">=" => i64::from(left >= right),
                "+" => left.checked_add(right)?,
                "-" => left.checked_sub(right)?,
                "*" => left.checked_mul(right)?,
                "/" => left.checked_div(right)?,
                _ => left.checked_rem(right)?,
            };
        }
        Some(left)
    }

    /// A value, or one of two by a condition.
    fn chosen(&mut self) -> Option<i64> {
        let condition = self.binary(0)?;
        if !self.take("?") {
            return Some(condition);
        }
        let then = self.deeper(Self::chosen)?;
        let other = self.take(":").then(|| self.deeper(Self::chosen))??;
        Some(if condition != 0 { then } else { other })
    }

    fn unary(&mut self) -> Option<i64> {
        self.deeper(Self::atom)
    }

    fn deeper(&mut self, read: fn(&mut Self) -> Option<i64>) -> Option<i64> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn atom(&mut self) -> Option<i64> {
        let token = self.tokens.get(self.at)?;
        self.at += 1;
        match token.as_str() {
            "!" => self.unary().map(|value| i64::from(value == 0)),
            "-" => self.unary()?.checked_neg(),
            "+" => self.unary(),
            "~" => self.unary().map(|value| !value),
            "(" => {
                let value = self.chosen()?;
                self.take(")").then_some(value)
            }
            name if is_name(name) => match self.macros.get(name) {
                Some(Macro::Plain(text)) => match text.as_slice() {
                    [one] => number(one),
                    _ => None,
                },
                Some(Macro::Function(..) | Macro::Opaque) => None,
                // As in C, a name that is not defined is 0.
                None => Some(0),
            },
            digits => number(digits),
        }
    }

    fn take(&mut self, sign: &str) -> bool {
        let there = self.tokens.get(self.at).is_some_and(|token| token == sign);
        self.at += usize::from(there);
        there
    }
}

fn number(token: &str) -> Option<i64> {
    let plain = token.trim_end_matches(['u', 'U', 'l', 'L']);
    match plain.strip_prefix("0x").or(plain.strip_prefix("0X")) {
        Some(hexadecimal) => i64::from_str_radix(hexadecimal, 16).ok(),
        None => plain.parse().ok(),
    }
}

//! Numbers and the operators on them.

use std::fmt;

use super::error::Cause;

/// An integer or a fraction. An operator on two integers gives an integer, and with a
/// fraction a fraction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    Int(i64),
    Float(f64),
}

impl Number {
    /// The number as a fraction; large integers are rounded.
    pub fn float(self) -> f64 {
        match self {
            Self::Int(n) => n as f64,
            Self::Float(x) => x,
        }
    }

    pub(super) fn negative(self) -> Result<Self, Cause> {
        match self {
            Self::Int(n) => n.checked_neg().map(Self::Int).ok_or(Cause::Overflow),
            Self::Float(x) => Ok(Self::Float(-x)),
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(n) => n.fmt(f),
            // With a point, so that it is read as a fraction again.
            Self::Float(x) => write!(f, "{x:?}"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    /// `/`: of integers rounded downwards, as in Python 2.
    Divide,
    /// `//`: always rounded downwards.
    Floor,
    Modulo,
    Power,
}

/// `left operator right`.
pub(super) fn apply(operator: Operator, left: Number, right: Number) -> Result<Number, Cause> {
    match (left, right) {
        (Number::Int(a), Number::Int(b)) => whole(operator, a, b).map(Number::Int),
        (a, b) => fraction(operator, a.float(), b.float()).map(Number::Float),
    }
}

fn whole(operator: Operator, a: i64, b: i64) -> Result<i64, Cause> {
    let result = match operator {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        Operator::Divide | Operator::Floor | Operator::Modulo if b == 0 => {
            return Err(Cause::DivisionByZero);
        }
        Operator::Divide | Operator::Floor => a.checked_div_euclid(b).map(|quotient| {
            // Euclid's remainder is never negative; Python's has the sign of b.
            match b < 0 && a.wrapping_rem_euclid(b) != 0 {
                true => quotient - 1,
                false => quotient,
            }
        }),
        Operator::Modulo => {
            let remainder = a.wrapping_rem(b);
            let other_sign = remainder != 0 && (remainder < 0) != (b < 0);
            Some(if other_sign { remainder + b } else { remainder })
        }
        Operator::Power => {
            let exponent = u32::try_from(b).map_err(|_| Cause::Exponent(b.to_string()))?;
            a.checked_pow(exponent)
        }
    };
    result.ok_or(Cause::Overflow)
}

fn fraction(operator: Operator, a: f64, b: f64) -> Result<f64, Cause> {
    let divides = matches!(
        operator,
        Operator::Divide | Operator::Floor | Operator::Modulo
    );
    if divides && b == 0.0 {
        return Err(Cause::DivisionByZero);
    }
    let result = match operator {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide => a / b,
        Operator::Floor => (a / b).floor(),
        Operator::Modulo => a - b * (a / b).floor(),
        Operator::Power => a.powf(b),
    };
    match result.is_finite() {
        true => Ok(result),
        false => Err(Cause::Overflow),
    }
}

//! Numbers and the operators on them.
//!
//! The functions that expressions can call.

use std::fmt;
use std::str::FromStr;

use super::Cause;

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

/// A function by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Min,
    Max,
    Abs,
    Int,
    Float,
    PartitionRound,
}

impl FromStr for Function {
    type Err = Cause;

    fn from_str(name: &str) -> Result<Self, Cause> {
        Ok(match name {
            "min" => Self::Min,
            "max" => Self::Max,
            "abs" => Self::Abs,
            "int" => Self::Int,
            "float" => Self::Float,
            // The authors' files have both names.
            "partition_round" | "part_round" => Self::PartitionRound,
            other => return Err(Cause::Function(other.to_owned())),
        })
    }
}

impl Function {
    pub(super) fn call(self, arguments: &[Number]) -> Result<Number, Cause> {
        let wrong = |function, takes| {
            Err(Cause::Arguments {
                function,
                takes,
                given: arguments.len(),
            })
        };
        match (self, arguments) {
            (Self::Min | Self::Max, []) => {
                let name = if self == Self::Min { "min" } else { "max" };
                wrong(name, "one or more")
            }
            (Self::Min, [first, rest @ ..]) => Ok(best(*first, rest, f64::lt, i64::lt)),
            (Self::Max, [first, rest @ ..]) => Ok(best(*first, rest, f64::gt, i64::gt)),
            (Self::Abs, [Number::Int(n)]) => {
                n.checked_abs().map(Number::Int).ok_or(Cause::Overflow)
            }
            (Self::Abs, [Number::Float(x)]) => Ok(Number::Float(x.abs())),
            (Self::Abs, _) => wrong("abs", "one"),
            (Self::Int, [number]) => truncated(*number),
            (Self::Int, _) => wrong("int", "one"),
            (Self::Float, [number]) => Ok(Number::Float(number.float())),
            (Self::Float, _) => wrong("float", "one"),
            (Self::PartitionRound, [Number::Int(elements), Number::Int(percent)]) => {
                partition_round(*elements, *percent).map(Number::Int)
            }
            (Self::PartitionRound, [_, _]) => {
                Err(Cause::Domain("partition_round takes whole numbers"))
            }
            (Self::PartitionRound, _) => wrong("partition_round", "two"),
        }
    }
}

fn best(
    first: Number,
    rest: &[Number],
    floats: fn(&f64, &f64) -> bool,
    ints: fn(&i64, &i64) -> bool,
) -> Number {
    rest.iter().fold(first, |best, next| {
        let better = match (next, &best) {
            (Number::Int(a), Number::Int(b)) => ints(a, b),
            (a, b) => floats(&a.float(), &b.float()),
        };
        if better { *next } else { best }
    })
}

fn truncated(number: Number) -> Result<Number, Cause> {
    match number {
        Number::Int(_) => Ok(number),
        // 2^63 is a double, but does not fit.
        Number::Float(x) if x.abs() < i64::MAX as f64 => Ok(Number::Int(x.trunc() as i64)),
        Number::Float(_) => Err(Cause::Overflow),
    }
}

/// `percent` of `elements` elements, rounded as PySchedCL does: of the greatest even
/// number the smaller part is rounded downwards, and the last element of an odd
/// number belongs to the smaller part. The parts of `percent` and `100 - percent` add
/// up to all elements. 0 and 100 percent are none and all, where PySchedCL gives the
/// last element of an odd number to the part that should be empty.
///
/// # Errors
/// When the number of elements is negative, or the percentage outside 0 to 100.
pub fn partition_round(elements: i64, percent: i64) -> Result<i64, Cause> {
    if elements < 0 {
        return Err(Cause::Domain("partition_round of fewer than 0 elements"));
    }
    if !(0..=100).contains(&percent) {
        return Err(Cause::Domain(
            "partition_round takes a percentage from 0 to 100",
        ));
    }
    let part = |of: i64, percent: i64| (i128::from(of) * i128::from(percent) / 100) as i64;
    let (even, odd) = (elements - elements % 2, elements % 2);
    Ok(match percent {
        0 => 0,
        100 => elements,
        ..=50 => part(even, percent) + odd,
        _ => even - part(even, 100 - percent),
    })
}

//! The functions that expressions can call.

use std::str::FromStr;

use super::error::Cause;
use super::value::Number;

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

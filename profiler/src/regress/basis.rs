//! The paper's basis functions (section 3.2, step 5).
//!
//! ln(F) = sum of w φ(x), where φ is one of x, x², x³, x⁴, eˣ, ln x, x ln x.
//! They need an x above 0 and not large: a standardised feature is mapped
//! linearly from its range in the training to [[`LOW`], [`HIGH`]].

use serde::{Deserialize, Serialize};

/// How many functions there are.
pub const FUNCTIONS: usize = 7;

/// Where the smallest value of the training is mapped to.
pub const LOW: f64 = 0.1;

/// Where the largest value of the training is mapped to.
pub const HIGH: f64 = 2.0;

/// How far outside of the training a feature is followed, in widths of its
/// range. Further out it counts as that far.
pub const MARGIN: f64 = 0.5;

/// The part of the range, at its edge, whose slope is continued outside.
const EDGE: f64 = 0.1;

/// A feature's range in the training, in standardised units.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    pub low: f64,
    pub high: f64,
}

impl Range {
    /// The range of some values.
    pub fn of<'a>(values: impl IntoIterator<Item = &'a f64>) -> Range {
        let empty = Range {
            low: f64::INFINITY,
            high: f64::NEG_INFINITY,
        };
        values.into_iter().fold(empty, |range, &value| Range {
            low: range.low.min(value),
            high: range.high.max(value),
        })
    }

    /// Whether it is one: finite, and not upside down.
    pub fn is_valid(&self) -> bool {
        self.low.is_finite() && self.high.is_finite() && self.low <= self.high
    }

    /// `value`, no further outside than [`MARGIN`].
    pub fn limit(&self, value: f64) -> f64 {
        let margin = MARGIN * (self.high - self.low);
        value.clamp(self.low - margin, self.high + margin)
    }

    /// Where `value` is mapped to: [`LOW`] to [`HIGH`] within the range, and
    /// up to [`MARGIN`] widths beyond it. A range without width is all `LOW`.
    fn map(&self, value: f64) -> f64 {
        let width = self.high - self.low;
        if width <= 0.0 {
            return LOW;
        }
        LOW + (HIGH - LOW) * (self.limit(value) - self.low) / width
    }

    /// The functions at `value`.
    ///
    /// eˣ and x⁴ explode and ln x has an end, so outside of the range each
    /// function is continued as a straight line, with its mean slope over the
    /// last tenth of the range.
    pub fn functions(&self, value: f64) -> [f64; FUNCTIONS] {
        let x = self.map(value);
        let step = EDGE * (HIGH - LOW);
        if x > HIGH {
            line(HIGH, HIGH - step, x)
        } else if x < LOW {
            line(LOW, LOW + step, x)
        } else {
            at(x)
        }
    }
}

fn at(x: f64) -> [f64; FUNCTIONS] {
    let (square, log) = (x * x, x.ln());
    [
        x,
        square,
        square * x,
        square * square,
        x.exp(),
        log,
        x * log,
    ]
}

/// The straight lines through `edge` and `inside`, at `x`.
fn line(edge: f64, inside: f64, x: f64) -> [f64; FUNCTIONS] {
    let (at_edge, at_inside) = (at(edge), at(inside));
    let beyond = (x - edge) / (edge - inside);
    std::array::from_fn(|i| at_edge[i] + beyond * (at_edge[i] - at_inside[i]))
}

//! What a comparison found.

use serde::{Deserialize, Serialize};

/// What a comparison found. Nodes send it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Checked {
    /// Numbers that were compared.
    pub numbers: u64,
    /// Numbers that are wrong.
    pub wrong: u64,
    /// The greatest error, as a multiple of what rounding allows: at most 1 if none is
    /// wrong, and `f64::MAX` if a number is not finite that should be, or the reverse.
    #[serde(with = "crate::exact")]
    pub worst: f64,
    /// Of factors.
    pub factors: Option<FactorFigures>,
    /// Of a product: the row, and the columns from one to before another, with the greatest
    /// error.
    pub at: Option<[u64; 3]>,
    /// Numbers that overflowed, so that they were not compared: any result is right.
    pub overflowed: u64,
}

/// What a comparison of a whole result with a reference found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    /// The largest absolute difference.
    pub error: f64,
    /// Whether all differences are allowed.
    pub right: bool,
    /// Numbers that were compared.
    pub numbers: u64,
    /// Numbers of the result that are infinite or none (NaN).
    pub not_finite: u64,
}

/// How good factors are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FactorFigures {
    /// LAPACK's ratio, `|P A - L U| / (n |A| u)`: below 10 for a stable factorisation.
    #[serde(with = "crate::exact")]
    pub residual: f64,
    /// The greatest number of U over the greatest of A.
    #[serde(with = "crate::exact")]
    pub growth: f64,
}

/// The error of a number as a multiple of what is allowed; see [`Checked::number`]. It is
/// never NaN, which the greater one of two errors would hide.
pub fn error(found: f64, right: f64, allowed: f64) -> f64 {
    let is_none = found.is_nan() && right.is_nan();
    if found == right || is_none || !allowed.is_finite() {
        return 0.0;
    }
    match found.is_finite() && right.is_finite() {
        true => (found - right).abs() / allowed,
        false => f64::INFINITY,
    }
}

impl Checked {
    /// Adds a number whose error is so many times what is allowed.
    pub fn error(&mut self, error: f64) {
        self.numbers += 1;
        // An error that is no number is wrong, too.
        self.wrong += u64::from(error.is_nan() || error > 1.0);
        // A message cannot say infinity.
        let error = if error.is_finite() { error } else { f64::MAX };
        self.worst = self.worst.max(error);
    }

    /// Adds a number, which may differ from the right one by `allowed`. Where the right one
    /// is infinite or none, it must be the same. If `allowed` is not finite, the number may
    /// be anything.
    pub fn number(&mut self, found: f64, right: f64, allowed: f64) {
        self.error(error(found, right, allowed));
    }

    /// Adds a number that must be exactly the right one.
    pub fn exactly(&mut self, is_right: bool) {
        self.error(if is_right { 0.0 } else { f64::INFINITY });
    }

    /// Adds so many numbers that must be exactly the right ones, and were compared as a whole:
    /// they are all right, or count as wrong.
    pub fn all_exactly(&mut self, numbers: u64, are_right: bool) {
        self.together(numbers, if are_right { 0.0 } else { f64::INFINITY });
    }

    /// Adds so many numbers that were compared as a whole, and whose error is so many times
    /// what is allowed.
    pub fn together(&mut self, numbers: u64, error: f64) {
        if let Some(others) = numbers.checked_sub(1) {
            let wrong = self.wrong;
            self.error(error);
            self.numbers += others;
            self.wrong += others * (self.wrong - wrong);
        }
    }

    /// Adds another comparison.
    pub fn add(&mut self, other: &Self) {
        self.numbers += other.numbers;
        self.wrong += other.wrong;
        self.worst = self.worst.max(other.worst);
        self.factors = self.factors.or(other.factors);
        self.at = self.at.or(other.at);
        self.overflowed += other.overflowed;
    }
}

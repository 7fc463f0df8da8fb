//! Sums in twice double precision, for residuals whose terms are far greater than they.
//!
//! Source: T. Ogita, S. Rump and S. Oishi, "Accurate sum and dot product", SIAM J. Sci.
//! Comput. 2005, algorithms 3.1 and 3.3.

/// A number as the sum of two doubles, the second of which is the rounding error of the
/// first.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Twofold {
    high: f64,
    low: f64,
}

impl Twofold {
    /// The relative error of an operation, at most.
    pub const UNIT: f64 = f64::EPSILON * f64::EPSILON;

    /// Adds `factor` times another number.
    pub fn add_product(&mut self, factor: f64, other: Self) {
        let product = factor * other.high;
        let error = factor.mul_add(other.high, -product) + factor * other.low;
        let sum = self.high + product;
        let part = sum - self.high;
        let lost = (self.high - (sum - part)) + (product - part);
        let low = self.low + lost + error;
        self.high = sum + low;
        self.low = low - (self.high - sum);
    }

    pub fn value(self) -> f64 {
        self.high
    }
}

impl From<f64> for Twofold {
    fn from(high: f64) -> Self {
        Self { high, low: 0.0 }
    }
}

//! A sum of products, and how far a result may be from it.

use super::Rounding;

/// A sum of products in double precision.
///
/// The error of a sum of n products, in any order and with or without fused operations, is
/// at most `n u` of the sum of their magnitudes (Higham, "Accuracy and Stability of
/// Numerical Algorithms", section 3.1), and each product near zero may lose the smallest
/// normal number. Twice that is allowed, and what rounding the factors of each product before
/// it may change.
///
/// Numbers that are infinite or none count separately, so that the places of such results are
/// compared: IEEE 754 decides by these terms alone what the sum is, whatever its order.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    value: f64,
    magnitude: f64,
    /// The sum of the products of which a factor is not finite; 0 if there are none.
    special: f64,
    terms: u64,
}

impl Sum {
    /// Adds a product.
    pub fn add(&mut self, a: f64, b: f64) {
        let product = a * b;
        self.terms += 1;
        if a.is_finite() && b.is_finite() {
            self.value += product;
            self.magnitude += product.abs();
        } else {
            self.special += product;
        }
    }

    /// The sum.
    pub fn value(&self) -> f64 {
        self.value + self.special
    }

    /// The error of a result, as a multiple of what is allowed; infinite if it is finite and
    /// should not be, or the reverse.
    pub fn error(&self, found: f64, rounding: Rounding) -> f64 {
        let terms = self.terms as f64;
        let allowed = terms * (2.0 * rounding.unit * self.magnitude + rounding.least)
            + rounding.product * self.magnitude;
        // What is finite may become infinite in between, and then none.
        let overflows = self.magnitude + allowed > rounding.most;
        let is_right = if self.special.is_nan() {
            found.is_nan()
        } else if self.special.is_infinite() {
            found == self.special || (overflows && found.is_nan())
        } else if !found.is_finite() {
            overflows
        } else if !self.magnitude.is_finite() {
            // Double precision does not tell more.
            true
        } else {
            let difference = (found - self.value).abs();
            return if difference == 0.0 {
                0.0
            } else {
                difference / allowed
            };
        };
        if is_right { 0.0 } else { f64::INFINITY }
    }
}

/// The sum of finite numbers, of which every addition's rounding error is added, too.
///
/// Source: Neumaier, "Rundungsfehleranalyse einiger Verfahren zur Summation endlicher
/// Summen", ZAMM 1974, algorithm IV.
pub fn compensated(numbers: impl IntoIterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0_f64, 0.0);
    for number in numbers {
        let next = sum + number;
        lost += match sum.abs() >= number.abs() {
            true => (sum - next) + number,
            false => (number - next) + sum,
        };
        sum = next;
    }
    sum + lost
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compensated_sum_loses_nothing() {
        // A plain sum loses each of the small ones.
        let small = 1e-17;
        let numbers = std::iter::once(1.0).chain(std::iter::repeat_n(small, 1000));
        assert_eq!(numbers.clone().sum::<f64>(), 1.0);
        assert_eq!(compensated(numbers), 1.0 + 1000.0 * small);
        assert_eq!(compensated([1.0, 1e100, 1.0, -1e100]), 2.0);
    }
}

//! The input and the weights of a transformer: random numbers that depend only on the
//! seed and their position. Devices and references therefore use the same numbers.
//!
//! The mean square of the input is 1 and that of a weight 1 / beta. The mean square of
//! every product is therefore about 1, and a row of softmax is neither uniform nor
//! dominated by one number.

use crate::codelet::Element;
use crate::random::uniform;
use crate::verify::numbers;

/// A random matrix; its place in the transformer determines its seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matrix {
    /// The first layer's input.
    Input,
    /// W_Q, W_K, W_V and W of a head.
    Weight {
        layer: u32,
        head: u32,
        /// 0 to 3.
        which: u32,
    },
}

impl Matrix {
    /// Writes the numbers of the matrix, by rows, rounded as they are stored.
    pub fn write(self, seed: u64, beta: u32, element: Element, to: &mut [u8]) {
        // Uniform from -width to width: a mean square of width^2 / 3.
        let width = match self {
            Self::Input => 3.0_f64.sqrt(),
            Self::Weight { .. } => (3.0 / f64::from(beta)).sqrt(),
        } as f32;
        let seed = self.seed(seed);
        let number = |index| width * (2.0 * uniform(seed, index) as f32 - 1.0);
        element.store((0..).map(|index| number(index).into()), to);
    }

    /// The same numbers.
    pub fn numbers(self, seed: u64, beta: u32, element: Element) -> Vec<f64> {
        let count = u64::from(beta) * u64::from(beta);
        let mut bytes = vec![0; (count * element.bytes()) as usize];
        self.write(seed, beta, element, &mut bytes);
        numbers(&bytes, element)
    }

    /// The seed of a matrix, itself a random number.
    fn seed(self, seed: u64) -> u64 {
        let place = match self {
            Self::Input => 0,
            Self::Weight { layer, head, which } => {
                1 + (u64::from(layer) << 32 | u64::from(head) << 8 | u64::from(which))
            }
        };
        (uniform(seed, 2 * place) * 2f64.powi(48) + uniform(seed, 2 * place + 1) * 2f64.powi(24))
            as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weight(layer: u32, head: u32, which: u32) -> Matrix {
        Matrix::Weight { layer, head, which }
    }

    #[test]
    fn numbers_have_the_documented_mean_square() {
        for (matrix, expected) in [(Matrix::Input, 1.0), (weight(0, 0, 0), 1.0 / 100.0)] {
            for element in [Element::F16, Element::Bf16, Element::F32] {
                let numbers = matrix.numbers(5, 100, element);
                let squares: f64 = numbers.iter().map(|n| n.powi(2)).sum();
                let ratio = squares / numbers.len() as f64 / expected;
                assert!((ratio - 1.0).abs() < 0.05, "{matrix:?}: {ratio}");
            }
        }
    }

    #[test]
    fn matrices_differ_and_are_reproducible() {
        let all = [
            Matrix::Input,
            weight(0, 0, 0),
            weight(0, 0, 1),
            weight(0, 1, 0),
            weight(1, 0, 0),
        ];
        let first = |matrix: Matrix, seed| {
            let numbers = matrix.numbers(seed, 2, Element::F32);
            // The ratio removes the width.
            let ratios = numbers.iter().map(|n| (n / numbers[0] * 1e4).round());
            ratios.collect::<Vec<f64>>()
        };
        for (i, one) in all.iter().enumerate() {
            assert_eq!(first(*one, 7), first(*one, 7));
            assert_ne!(first(*one, 7), first(*one, 8));
            for other in &all[..i] {
                assert_ne!(first(*one, 7), first(*other, 7), "{one:?} {other:?}");
            }
        }
    }
}

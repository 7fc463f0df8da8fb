//! The input and the weights of a transformer: random numbers that depend only on the
//! seed and their position. Devices and references therefore use the same numbers.
//!
//! The mean square of the input is 1 and that of a weight 1 / beta. The mean square of
//! every product is therefore about 1, and a row of softmax is neither uniform nor
//! dominated by one number.

use crate::random::uniform;

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
    /// Writes the numbers of the matrix, by rows.
    pub fn write(self, seed: u64, beta: u32, to: &mut [f32]) {
        // Uniform from -width to width: a mean square of width^2 / 3.
        let width = match self {
            Self::Input => 3.0_f64.sqrt(),
            Self::Weight { .. } => (3.0 / f64::from(beta)).sqrt(),
        } as f32;
        let seed = self.seed(seed);
        for (index, number) in to.iter_mut().enumerate() {
            *number = width * (2.0 * uniform(seed, index as u64) as f32 - 1.0);
        }
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
            let mut numbers = vec![f32::NAN; 100 * 100];
            matrix.write(5, 100, &mut numbers);
            let squares: f64 = numbers.iter().map(|n| f64::from(*n).powi(2)).sum();
            let ratio = squares / numbers.len() as f64 / expected;
            assert!((ratio - 1.0).abs() < 0.05, "{matrix:?}: {ratio}");
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
            let mut numbers = [0.0; 4];
            matrix.write(seed, 2, &mut numbers);
            // The ratio removes the width.
            numbers.map(|n| (n / numbers[0] * 1e4).round())
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

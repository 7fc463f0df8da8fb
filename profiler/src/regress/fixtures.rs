//! Rows to test regressions with.

use ndarray::Array2;

/// SplitMix64: the same numbers everywhere.
pub(crate) struct Random(pub u64);

impl Random {
    /// Evenly from 0 to 1.
    pub fn even(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Nearly normal, with mean 0 and deviation 1.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.even()).sum::<f64>() - 6.0
    }
}

/// The logarithm of a time of work `a` with `b` workers of which not all help,
/// `a` and `b` from -1.7 to 1.7.
pub(crate) fn truth(a: f64, b: f64) -> f64 {
    let overhead = 0.05;
    let parallel = (1.5 * a - 0.6 * b).exp();
    let shared = (1.5 * a - 0.4).exp();
    (overhead + parallel + shared).ln()
}

/// Rows of two standardised features, evenly spread, and [`truth`] with 2 % of
/// noise.
pub(crate) fn profile(rows: usize, seed: u64) -> (Array2<f64>, Vec<f64>) {
    let mut random = Random(seed);
    let x = Array2::from_shape_simple_fn((rows, 2), || 3.4 * random.even() - 1.7);
    let y = x
        .rows()
        .into_iter()
        .map(|row| truth(row[0], row[1]) + 0.02 * random.normal())
        .collect();
    (x, y)
}

/// `y` with a part of its rows slowed by a factor, and which they are.
pub(crate) fn slowed(y: &[f64], part: f64, factor: f64, seed: u64) -> (Vec<f64>, Vec<usize>) {
    let mut random = Random(seed);
    let rows: Vec<usize> = (0..y.len()).filter(|_| random.even() < part).collect();
    let mut slow = y.to_vec();
    for &row in &rows {
        slow[row] += factor.ln();
    }
    (slow, rows)
}

/// The mean of |predicted / true - 1| in per cent on fresh rows without noise.
pub(crate) fn mape(predict: impl Fn(&[f64]) -> f64) -> f64 {
    let mut random = Random(99);
    let errors: Vec<f64> = (0..300)
        .map(|_| {
            let x = [3.2 * random.even() - 1.6, 3.2 * random.even() - 1.6];
            ((predict(&x) - truth(x[0], x[1])).exp() - 1.0).abs()
        })
        .collect();
    100.0 * errors.iter().sum::<f64>() / errors.len() as f64
}

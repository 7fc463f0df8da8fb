//! Random variation of simulated command times.

use crate::random::bits;

/// Log-normal factors of mean 1, each a function of the seed and a command's
/// number alone.
#[derive(Clone, Copy, Debug)]
pub struct Noise {
    seed: u64,
    /// Mean and standard deviation of the factor's logarithm.
    mean: f64,
    deviation: f64,
}

impl Noise {
    /// Factors with this relative standard deviation.
    pub fn new(seed: u64, relative: f64) -> Self {
        let variance = (relative * relative).ln_1p();
        Self {
            seed,
            mean: -variance / 2.0,
            deviation: variance.sqrt(),
        }
    }

    /// The factor of the command with this number.
    pub fn factor(&self, command: u64) -> f64 {
        if self.deviation == 0.0 {
            return 1.0;
        }
        // Box and Muller's transform of two uniform draws, the first above 0.
        let radius = (-2.0 * (1.0 - self.uniform(2 * command)).ln()).sqrt();
        let angle = std::f64::consts::TAU * self.uniform(2 * command + 1);
        (self.mean + self.deviation * radius * angle.cos()).exp()
    }

    /// A draw from [0, 1).
    fn uniform(&self, number: u64) -> f64 {
        (bits(self.seed, number.wrapping_add(1)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_have_the_mean_and_deviation_asked_for() {
        let noise = Noise::new(3, 0.1);
        let n = 40_000;
        let factors: Vec<f64> = (0..n).map(|i| noise.factor(i)).collect();
        let mean = factors.iter().sum::<f64>() / n as f64;
        let variance = factors.iter().map(|f| (f - mean).powi(2)).sum::<f64>() / n as f64;
        assert!((mean - 1.0).abs() < 0.003, "mean {mean}");
        assert!((variance.sqrt() - 0.1).abs() < 0.003, "{}", variance.sqrt());
    }

    #[test]
    fn equal_seeds_draw_equally_and_others_do_not() {
        let draw = |seed| (0..8).map(|i| Noise::new(seed, 0.1).factor(i)).collect();
        let (a, b, c): (Vec<f64>, Vec<f64>, Vec<f64>) = (draw(1), draw(1), draw(2));
        assert_eq!(a, b);
        assert_ne!(a, c);
        assert_eq!(Noise::new(1, 0.0).factor(5), 1.0);
    }
}

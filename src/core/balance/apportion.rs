//! Apportionment: whole units in proportion to fractional weights.

/// Divides `units` in proportion to `weights` by largest remainder. A weight
/// of 0 gets nothing; all counts are 0 where no weight is above 0.
pub fn largest_remainder(units: u64, weights: &[f64]) -> Vec<u64> {
    let total: f64 = weights.iter().sum();
    let mut counts = vec![0; weights.len()];
    if total.is_nan() || total <= 0.0 {
        return counts;
    }
    let exact = |i: usize| units as f64 * (weights[i] / total);
    for (i, count) in counts.iter_mut().enumerate() {
        *count = exact(i).floor() as u64;
    }
    let mut order: Vec<usize> = (0..weights.len()).filter(|i| weights[*i] > 0.0).collect();
    order.sort_by(|a, b| exact(*b).fract().total_cmp(&exact(*a).fract()));
    let left = units.saturating_sub(counts.iter().sum());
    for i in order.iter().cycle().take(left as usize) {
        counts[*i] += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_largest_remainders_get_the_odd_units() {
        assert_eq!(largest_remainder(10, &[1.0, 1.0, 1.0]), [4, 3, 3]);
        assert_eq!(largest_remainder(10, &[0.26, 0.26, 0.48]), [3, 2, 5]);
        assert_eq!(largest_remainder(3, &[0.0, 2.0]), [0, 3]);
        assert_eq!(largest_remainder(3, &[0.0, 0.0]), [0, 0]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_no_count_is_a_unit_off(
            units in 0u64..1_000_000,
            weights in prop::collection::vec(0.0f64..10.0, 1..9),
        ) {
            let total: f64 = weights.iter().sum();
            prop_assume!(total > 0.0);
            let counts = largest_remainder(units, &weights);
            prop_assert_eq!(counts.iter().sum::<u64>(), units);
            for (count, weight) in counts.iter().zip(&weights) {
                let exact = units as f64 * weight / total;
                prop_assert!((*count as f64 - exact).abs() < 1.0 + 1e-6);
            }
        }
    }
}

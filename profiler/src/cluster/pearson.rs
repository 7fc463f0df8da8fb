//! Pearson's correlation.

/// A column shifted to mean 0 and scaled to length 1, so that the product of
/// two is their correlation; all 0 if the column is constant.
pub fn unit(column: &[f64]) -> Vec<f64> {
    let mean = column.iter().sum::<f64>() / column.len().max(1) as f64;
    let centred: Vec<f64> = column.iter().map(|v| v - mean).collect();
    let length = centred.iter().map(|v| v * v).sum::<f64>().sqrt();
    if length > 0.0 && length.is_finite() {
        centred.iter().map(|v| v / length).collect()
    } else {
        vec![0.0; column.len()]
    }
}

/// The correlation of two columns that [`unit`] made, in [-1, 1].
pub fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let product: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
    product.clamp(-1.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(a: &[f64], b: &[f64]) -> f64 {
        correlation(&unit(a), &unit(b))
    }

    #[test]
    fn known_values() {
        let x = [1.0, 2.0, 3.0, 4.0];
        assert!((of(&x, &[3.0, 5.0, 7.0, 9.0]) - 1.0).abs() < 1e-12);
        assert!((of(&x, &[8.0, 6.0, 4.0, 2.0]) + 1.0).abs() < 1e-12);
        // Covariance 2.5, sums of squares 5 and 5.
        assert!((of(&x, &[1.0, 3.0, 2.0, 4.0]) - 0.8).abs() < 1e-12);
    }

    #[test]
    fn constants_correlate_with_nothing() {
        assert_eq!(of(&[2.0; 4], &[1.0, 2.0, 3.0, 4.0]), 0.0);
        assert_eq!(of(&[], &[]), 0.0);
    }
}

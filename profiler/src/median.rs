//! The median of some numbers.

use std::borrow::Borrow;

/// The number in the middle, or the mean of the two in the middle; `None` of no
/// numbers.
pub fn median<T: Borrow<f64>>(values: impl IntoIterator<Item = T>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.into_iter().map(|value| *value.borrow()).collect();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    match sorted.len() % 2 {
        1 => Some(upper),
        _ => Some(0.5 * (sorted[sorted.len() / 2 - 1] + upper)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median::<f64>([]), None);
        assert_eq!(median([3.0]), Some(3.0));
        assert_eq!(median(vec![9.0, -1.0, 2.0].as_slice()), Some(2.0));
        assert_eq!(median([9.0, -1.0, 2.0, 3.0]), Some(2.5));
    }
}

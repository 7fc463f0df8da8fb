//! Draws a series of fractions as a row of block characters.

/// Most characters of a row.
const WIDTH: usize = 60;

const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The fractions, 0 to 1, as bars. If the series is longer than the row, a bar is the
/// mean of a part of the series.
pub fn row(values: &[f64]) -> String {
    let width = values.len().min(WIDTH);
    (0..width)
        .map(|i| {
            let part = &values[i * values.len() / width..(i + 1) * values.len() / width];
            block(part.iter().sum::<f64>() / part.len() as f64)
        })
        .collect()
}

/// The character of a fraction. A fraction above 0 is always visible.
fn block(value: f64) -> char {
    let top = BLOCKS.len() - 1;
    let least = usize::from(value > 0.0);
    let level = (value * top as f64).round().clamp(0.0, top as f64) as usize;
    BLOCKS[level.max(least)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heights_follow_the_values() {
        assert_eq!(row(&[0.0, 0.001, 0.5, 1.0]), " ▁▄█");
        assert_eq!(row(&[]), "");
        assert_eq!(row(&[f64::NAN, 7.0]), " █");
    }

    #[test]
    fn a_long_series_is_averaged() {
        let long: Vec<f64> = (0..6000)
            .map(|i| if i < 3000 { 0.0 } else { 1.0 })
            .collect();
        let row = row(&long);
        assert_eq!(row.chars().count(), WIDTH);
        assert!(row.starts_with(' ') && row.ends_with('█'));
    }
}

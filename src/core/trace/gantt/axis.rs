//! Chooses the unit of a time axis and round times for its ticks.

use crate::time::Nanos;

/// A time axis over `0..span`.
#[derive(Debug, PartialEq)]
pub struct Axis {
    /// `s`, `ms`, `us` or `ns`.
    pub unit: &'static str,
    /// Nanoseconds of the unit.
    pub scale: f64,
    /// Nanoseconds between ticks: 1, 2 or 5 times a power of ten.
    pub tick: Nanos,
}

impl Axis {
    /// An axis of at most `ticks` + 1 ticks; `ticks` is at least 1.
    pub fn new(span: Nanos, ticks: u64) -> Self {
        let least = (span / ticks).max(1);
        let decade = 10u64.pow(least.ilog10());
        let tick = [1, 2, 5, 10]
            .into_iter()
            .filter_map(|factor| decade.checked_mul(factor))
            .find(|tick| *tick >= least)
            .unwrap_or(decade);
        let (unit, scale) = match span {
            0..10_000 => ("ns", 1.0),
            10_000..10_000_000 => ("us", 1e3),
            10_000_000..10_000_000_000 => ("ms", 1e6),
            _ => ("s", 1e9),
        };
        Self { unit, scale, tick }
    }

    /// The tick's text, without unit and trailing zeros.
    pub fn label(&self, at: Nanos) -> String {
        format!("{}", at as f64 / self.scale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        for (span, tick, unit) in [
            (1, 1, "ns"),
            (9_999, 1_000, "ns"),
            (86_000_000, 10_000_000, "ms"),
            (2_100_000_000, 500_000_000, "ms"),
            (45_000_000_000, 5_000_000_000, "s"),
        ] {
            let axis = Axis::new(span, 10);
            assert_eq!((axis.tick, axis.unit), (tick, unit), "{span}");
            assert!(span / axis.tick <= 10);
        }
    }

    #[test]
    fn the_largest_span_has_an_axis() {
        assert!(Axis::new(Nanos::MAX, 10).tick > 0);
    }

    #[test]
    fn labels_have_no_trailing_zeros() {
        let axis = Axis::new(86_000_000, 10);
        assert_eq!(axis.label(10_000_000), "10");
        assert_eq!(Axis::new(25_000_000, 10).label(2_500_000), "2.5");
    }
}

//! Scales: linear, or logarithmic where values span decades.

use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};

/// One of a chart's two scales.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    log: bool,
    /// Places where the axis begins and ends: values, or their logarithms.
    from: f64,
    to: f64,
}

/// Values whose largest is so many times the smallest are drawn on a
/// logarithmic scale.
const WIDE: f64 = 10.0;

/// Space at both ends, as a part of what the values span.
const SPACE: f64 = 0.05;

/// Ticks at most.
const TICKS: usize = 9;

/// The exponents of what a double can be, with room for arithmetic.
const EXPONENTS: (f64, f64) = (-300.0, 300.0);

/// Whether a value can be shown on an axis.
pub(super) fn drawable(value: f64) -> bool {
    value.abs() < 10f64.powf(EXPONENTS.1)
}

impl Axis {
    /// An axis that shows all drawable values; `None` if there is none.
    pub fn over(values: impl Iterator<Item = f64>) -> Option<Self> {
        let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|value| drawable(*value)) {
            min = min.min(value);
            max = max.max(value);
        }
        if min > max {
            return None;
        }
        let log = min > 0.0 && max / min >= WIDE;
        let (from, to) = if log {
            (min.log10().max(EXPONENTS.0), max.log10())
        } else {
            (min, max)
        };
        let space = if to > from {
            SPACE * (to - from)
        } else if from == 0.0 {
            1.0
        } else {
            0.1 * from.abs()
        };
        let space = space.max(f64::MIN_POSITIVE);
        Some(Self {
            log,
            from: from - space,
            to: to + space,
        })
    }

    /// How far along the axis a place is: 0 at its begin, 1 at its end.
    pub fn along(&self, place: f64) -> f64 {
        (place - self.from) / (self.to - self.from)
    }

    /// The coordinate of a value: itself, or its logarithm.
    pub fn place(&self, value: f64) -> f64 {
        if self.log { value.log10() } else { value }
    }

    /// The value at a place.
    pub fn value(&self, place: f64) -> f64 {
        if self.log { 10f64.powf(place) } else { place }
    }

    /// Round values, few enough to read.
    pub fn ticks(&self) -> Vec<f64> {
        if !self.log {
            return even(self.from, self.to);
        }
        let decades = self.from.floor() as i32..=self.to.ceil() as i32;
        let ladder = |steps: &[f64]| -> Vec<f64> {
            decades
                .clone()
                .flat_map(|decade| steps.iter().map(move |step| step * 10f64.powi(decade)))
                .filter(|value| (self.from..=self.to).contains(&value.log10()))
                .collect()
        };
        for steps in [&[1.0, 2.0, 5.0][..], &[1.0, 3.0], &[1.0]] {
            let ticks = ladder(steps);
            if ticks.len() <= TICKS {
                return ticks;
            }
        }
        let ticks = ladder(&[1.0]);
        let every = ticks.len().div_ceil(TICKS);
        ticks.into_iter().step_by(every).collect()
    }
}

impl Ranged for Axis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    /// What is beyond the axis is drawn at its end.
    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let along = self.along(self.place(*value)).clamp(0.0, 1.0);
        limit.0 + (along * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        // Light points are lines between the ticks.
        if hint.weight().allow_light_points() {
            Vec::new()
        } else {
            self.ticks()
        }
    }

    fn range(&self) -> Range<f64> {
        self.value(self.from)..self.value(self.to)
    }
}

/// Multiples of 1, 2 or 5 times a power of ten.
pub(super) fn even(from: f64, to: f64) -> Vec<f64> {
    let least = (to - from) / (TICKS - 1) as f64;
    let power = 10f64.powf(least.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .map(|factor| factor * power)
        .into_iter()
        .find(|step| *step >= least)
        .unwrap_or(10.0 * power);
    let (first, last) = ((from / step).ceil(), (to / step).floor());
    let count = (last - first).clamp(0.0, TICKS as f64) as usize;
    (0..=count).map(|i| (first + i as f64) * step).collect()
}

/// A number as decimals, for what is near 1.
pub(super) fn decimal(value: f64) -> String {
    // Multiples of a step may be off in their last bits, and 0 be -0.
    format!("{}", (value * 1e9).round() / 1e9 + 0.0)
}

/// A number with at most three digits that count and a prefix of its size, as
/// `250 µ` or `1.5 M`; the unit follows.
pub(super) fn short(value: f64) -> String {
    const PREFIXES: [(f64, &str); 10] = [
        (1e12, "T"),
        (1e9, "G"),
        (1e6, "M"),
        (1e3, "k"),
        (1.0, ""),
        (1e-3, "m"),
        (1e-6, "µ"),
        (1e-9, "n"),
        (1e-12, "p"),
        (1e-15, "f"),
    ];
    let size = value.abs();
    if !(1e-15..1e15).contains(&size) {
        return if size == 0.0 {
            "0 ".to_owned()
        } else {
            format!("{value:.1e} ")
        };
    }
    // A rounded 999.9 is the next prefix's 1.
    let (one, prefix) = PREFIXES
        .into_iter()
        .find(|(one, _)| size >= 0.9995 * one)
        .unwrap_or((1.0, ""));
    let scaled = value / one;
    let digits = match scaled.abs() {
        s if s >= 99.95 => 0,
        s if s >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{scaled:.digits$}");
    let text = if digits > 0 {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    format!("{text} {prefix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(values: &[f64]) -> Axis {
        Axis::over(values.iter().copied()).unwrap()
    }

    fn values(axis: &Axis) -> Vec<String> {
        let of = |value: f64| short(value).trim_end().to_owned();
        axis.ticks().into_iter().map(of).collect()
    }

    #[test]
    fn values_that_span_decades_are_drawn_on_a_logarithmic_scale() {
        let wide = axis(&[2e-4, 0.3, f64::NAN]);
        assert_eq!(
            values(&wide),
            ["300 µ", "1 m", "3 m", "10 m", "30 m", "100 m", "300 m"]
        );
        let pixels = [1e-4, 2e-4, 0.01, 0.3, 0.4].map(|value| wide.map(&value, (100, 300)));
        assert_eq!(pixels, [100, 109, 206, 291, 298]);
        assert_eq!(
            [0.0, 1e300].map(|value| wide.map(&value, (300, 100))),
            [300, 100]
        );
        let wider = axis(&[1e-9, 1e9]);
        assert_eq!(values(&wider)[..3], ["1 n", "1 µ", "1 m"]);
    }

    #[test]
    fn others_on_a_linear_one() {
        let narrow = axis(&[0.1, 0.5]);
        assert_eq!(values(&narrow)[..3], ["100 m", "200 m", "300 m"]);
        let signed = axis(&[-12.0, 31.0]);
        assert_eq!(values(&signed), ["-10", "0", "10", "20", "30"]);
    }

    #[test]
    fn all_kinds_of_values_have_few_ticks_within_the_axis() {
        assert_eq!(Axis::over([f64::INFINITY].into_iter()), None);
        for of in [
            &[0.0][..],
            &[7.0],
            &[-3.0],
            &[1e-299, 1e299],
            &[5e-324],
            &[-1e299, 1e299],
            &[1.0, 1.0 + 1e-15],
        ] {
            let axis = axis(of);
            let ticks = axis.ticks();
            assert!(ticks.len() <= TICKS + 1, "{of:?}: {ticks:?}");
            for value in ticks {
                let pixel = axis.map(&value, (0, 1000));
                assert!((0..=1000).contains(&pixel), "{of:?}: {value}");
                let near = axis.along(axis.place(value));
                assert!((-0.01..1.01).contains(&near), "{of:?}: {value}");
            }
        }
    }

    #[test]
    fn decimals_are_those_of_the_step() {
        assert_eq!(decimal(3.0 * 0.1), "0.3");
        assert_eq!(decimal(-0.0), "0");
        assert_eq!(decimal(-12.5), "-12.5");
    }

    #[test]
    fn numbers_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (0.25, "250 m"),
            (-1234.0, "-1.23 k"),
            (999.9, "1 k"),
            (268_435_456.0, "268 M"),
            (1e-5, "10 µ"),
            (1e20, "1.0e20"),
        ] {
            assert_eq!(short(value).trim_end(), text);
        }
    }
}

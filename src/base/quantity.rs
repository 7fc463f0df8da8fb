//! Displays quantities with three significant figures and a unit.

use std::fmt;

use crate::time::Nanos;

/// A duration in seconds: `2.88 ms`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seconds(pub f64);

impl Seconds {
    /// From nanoseconds.
    pub fn from_nanos(nanos: Nanos) -> Self {
        Self(nanos as f64 / 1e9)
    }
}

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let scales = [(1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")];
        scaled(f, self.0, &scales)
    }
}

/// A number of bytes: `1.50 GiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let scales = [
            (1024f64.powi(4), "TiB"),
            (1024f64.powi(3), "GiB"),
            (1024f64.powi(2), "MiB"),
            (1024.0, "KiB"),
        ];
        if self.0 < 1024 {
            return f.pad(&format!("{} B", self.0));
        }
        scaled(f, self.0 as f64, &scales)
    }
}

/// A number of things, or of things a second: `5.83 Gpoint/s`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Count<'a>(pub f64, pub &'a str);

impl fmt::Display for Count<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let prefix = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")];
        let units: Vec<(f64, String)> = prefix
            .iter()
            .map(|(scale, prefix)| (*scale, format!("{prefix}{}", self.1)))
            .collect();
        scaled(f, self.0, &units)
    }
}

/// A fraction as a percentage: `48.3 %`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Percent(pub f64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(&format!("{:.1} %", self.0 * 100.0))
    }
}

/// Writes three significant figures in the largest unit that is not above the value.
/// `scales` are in descending order.
fn scaled(f: &mut fmt::Formatter, value: f64, scales: &[(f64, impl AsRef<str>)]) -> fmt::Result {
    // A value half a unit of the third figure below a scale rounds up to it.
    let fits = |scale: f64| value.abs() >= scale * 0.9995;
    let chosen = scales.iter().find(|(scale, _)| fits(*scale));
    let Some((scale, unit)) = chosen.or(scales.last()) else {
        return f.pad(&value.to_string());
    };
    let value = value / scale;
    let decimals = match value.abs() {
        v if v == 0.0 || v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    f.pad(&format!("{value:.decimals$} {}", unit.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_figures_and_a_unit() {
        for (value, text) in [
            (Seconds(0.002881).to_string(), "2.88 ms"),
            (Seconds(0.99999).to_string(), "1.00 s"),
            (Seconds(0.0).to_string(), "0 ns"),
            (Seconds(125.0).to_string(), "125 s"),
            (Seconds::from_nanos(910).to_string(), "910 ns"),
            (Bytes(0).to_string(), "0 B"),
            (Bytes(1023).to_string(), "1023 B"),
            (Bytes(3 << 29).to_string(), "1.50 GiB"),
            (Bytes(u64::MAX).to_string(), "16777216 TiB"),
            (Count(5.83e9, "point/s").to_string(), "5.83 Gpoint/s"),
            (Count(999.9, "point").to_string(), "1.00 kpoint"),
            (Percent(0.4834).to_string(), "48.3 %"),
        ] {
            assert_eq!(value, text);
        }
    }
}

//! From readings to figures.

use std::collections::BTreeMap;

use super::sensor::{Figure, SensorReading};
use crate::median;

/// The median of each figure over the readings that have it, and the energy
/// used between two states of the GPU's counter.
pub fn figures(
    readings: &[SensorReading],
    energy: (Option<f64>, Option<f64>),
) -> BTreeMap<String, f64> {
    let mut figures = BTreeMap::new();
    for figure in Figure::SAMPLED {
        let values = readings.iter().filter_map(|read| read.get(figure));
        if let Some(median) = median(values.filter(|value| value.is_finite())) {
            figures.insert(figure.name().to_owned(), median);
        }
    }
    if let (Some(before), Some(after)) = energy {
        let used = after - before;
        // Its counter begins again with the driver.
        if used >= 0.0 {
            figures.insert(Figure::Energy.name().to_owned(), used);
        }
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(mhz: f64) -> SensorReading {
        SensorReading {
            sm_clock: Some(mhz),
            ..SensorReading::default()
        }
    }

    #[test]
    fn medians_shrug_off_an_idle_moment() {
        let readings = [clock(1980.0), clock(345.0), clock(1965.0)];
        let found = figures(&readings, (None, None));
        assert_eq!(found, [("telemetry.sm_clock_mhz".into(), 1965.0)].into());
        let found = figures(&readings[..2], (None, None));
        assert_eq!(found["telemetry.sm_clock_mhz"], 1162.5);
    }

    #[test]
    fn a_figure_is_the_median_of_those_glances_that_have_it() {
        let mut readings = [clock(1000.0), clock(1200.0), clock(1400.0)];
        readings[1].power = Some(300.0);
        readings[0].pcie_rx = Some(f64::NAN);
        readings[2].pcie_tx = Some(0.0);
        let found = figures(&readings, (None, None));
        let expected = [
            ("telemetry.pcie_tx_bytes_per_second".to_owned(), 0.0),
            ("telemetry.power_watts".to_owned(), 300.0),
            ("telemetry.sm_clock_mhz".to_owned(), 1200.0),
        ];
        assert_eq!(found, expected.into());
    }

    #[test]
    fn energy_is_a_difference_and_needs_both_ends() {
        let energy = |before, after| figures(&[], (before, after));
        let expected = [("telemetry.energy_joules".to_owned(), 2.5)];
        assert_eq!(energy(Some(10.0), Some(12.5)), expected.into());
        for (before, after) in [(None, Some(1.0)), (Some(1.0), None), (Some(2.0), Some(1.0))] {
            assert_eq!(energy(before, after), BTreeMap::new());
        }
    }
}

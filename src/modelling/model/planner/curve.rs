//! Seconds over units as a monotone, piecewise linear curve, which can be inverted.

/// Points `(units, seconds)`, both never falling.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    points: Vec<(f64, f64)>,
}

impl Curve {
    /// A curve through these points, in any order. A prediction that falls
    /// where there are more units is held to what fewer take.
    pub fn through(points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let mut points: Vec<(f64, f64)> = points
            .into_iter()
            .filter(|(units, seconds)| units.is_finite() && seconds.is_finite())
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points.dedup_by(|b, a| a.0 == b.0);
        let mut most = 0.0;
        for (_, seconds) in &mut points {
            most = f64::max(most, *seconds);
            *seconds = most;
        }
        Self { points }
    }

    /// The most units that are done within `seconds`; 0 where even the fewest
    /// take longer, and the most that the curve knows of where all take less.
    pub fn units(&self, seconds: f64) -> f64 {
        let mut done: Option<(f64, f64)> = None;
        for &(units, takes) in &self.points {
            if seconds < takes {
                return done.map_or(0.0, |(fewer, took)| {
                    fewer + (units - fewer) * (seconds - took) / (takes - took)
                });
            }
            done = Some((units, takes));
        }
        done.map_or(0.0, |(units, _)| units)
    }

    /// The most units that the curve knows of.
    pub fn most(&self) -> f64 {
        self.points.last().map_or(0.0, |(units, _)| *units)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_between_points_and_flat_beyond() {
        let curve = Curve::through([(10.0, 2.0), (20.0, 3.0), (40.0, 3.0), (50.0, 2.5)]);
        assert_eq!(curve.units(1.9), 0.0);
        assert_eq!(curve.units(2.0), 10.0);
        assert_eq!(curve.units(2.5), 15.0);
        // All of these take no longer than 20 do.
        assert_eq!(curve.units(3.0), 50.0);
        assert_eq!((curve.most(), Curve::default().units(1.0)), (50.0, 0.0));
    }

    proptest! {
        #[test]
        fn more_time_never_does_less_and_points_lie_on_the_curve(
            points in prop::collection::vec((0.0f64..100.0, 0.0f64..10.0), 1..12),
            earlier in 0.0f64..10.0,
            later in 0.0f64..10.0,
        ) {
            let curve = Curve::through(points.clone());
            let (earlier, later) = (earlier.min(later), earlier.max(later));
            prop_assert!(curve.units(earlier) <= curve.units(later));
            prop_assert!(curve.units(later) <= curve.most());
            for (units, _) in points {
                let fewer = curve.points.iter().filter(|p| p.0 <= units);
                let takes = fewer.map(|p| p.1).fold(0.0, f64::max);
                prop_assert!(curve.units(takes) >= units);
            }
        }
    }
}

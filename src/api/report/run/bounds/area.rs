//! The area bound: how long work takes if it is divided without a remainder so that all
//! devices compute to the end.
//!
//! The division of least time is a linear program: each class of work is divided among
//! devices, and the time is that of the device with the most. Its dual gives each device a
//! weight z, of sum 1, and is at most the least time for any weights: the sum over all
//! classes of their work times the least of seconds times z of the devices. So whatever
//! weights the search below ends with, the result is a bound.

/// Kernels that take equally long on a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// How many there are.
    pub work: f64,
    /// Seconds of one, by device; `None` where none ran.
    pub seconds: Vec<Option<f64>>,
}

/// Rounds of the search at each sharpness, which end within 1 % of the least time; fewer for
/// very many classes and devices, whose pairs take at most so many steps in all.
const ROUNDS: usize = 60;
const STEPS: usize = 20_000_000;
/// The greatest sharpness is two to this power.
const SHARPEST: usize = 11;

/// The least seconds for classes of work, each on the devices where some of it ran; `None`
/// if some ran nowhere.
pub fn bound(classes: &[Class]) -> Option<f64> {
    let devices = classes.iter().map(|class| class.seconds.len()).max()?;
    let everywhere = |class: &Class| class.seconds.iter().any(Option::is_some);
    if !classes.iter().all(everywhere) {
        return None;
    }
    let steps = classes.len() * devices * (SHARPEST + 1);
    let rounds = (STEPS / steps.max(1)).clamp(1, ROUNDS);
    let mut weights = vec![1.0 / devices as f64; devices];
    let mut best = value(classes, &weights);
    for sharpness in 0..=SHARPEST {
        let beta = (1u64 << sharpness) as f64;
        for _ in 0..rounds {
            let loads = loads(classes, &weights, beta);
            let mean = loads.iter().sum::<f64>() / devices as f64;
            if mean <= 0.0 {
                return Some(best);
            }
            // A device with more work than others becomes dearer, and gets less of it.
            for (weight, load) in weights.iter_mut().zip(loads) {
                *weight *= (load / mean).clamp(1e-6, 1e6).powf(1.0 / (1.0 + beta));
            }
            let sum: f64 = weights.iter().sum();
            weights.iter_mut().for_each(|weight| *weight /= sum);
            best = best.max(value(classes, &weights));
        }
    }
    Some(best)
}

/// The prices of a class by device: seconds times weight.
fn prices<'a>(class: &'a Class, weights: &'a [f64]) -> impl Iterator<Item = Option<f64>> + 'a {
    let pairs = class.seconds.iter().zip(weights);
    pairs.map(|(seconds, weight)| seconds.map(|seconds| seconds * weight))
}

/// The bound that these weights give.
fn value(classes: &[Class], weights: &[f64]) -> f64 {
    let least = |class| {
        prices(class, weights)
            .flatten()
            .fold(f64::INFINITY, f64::min)
    };
    classes.iter().map(|class| class.work * least(class)).sum()
}

/// Seconds of each device if classes are divided by their prices, the more sharply the
/// greater `beta` is.
fn loads(classes: &[Class], weights: &[f64], beta: f64) -> Vec<f64> {
    let mut loads = vec![0.0; weights.len()];
    for class in classes {
        let least = prices(class, weights)
            .flatten()
            .fold(f64::INFINITY, f64::min);
        let part = |price: Option<f64>| match price {
            Some(price) if price > 0.0 => (least / price).powf(beta),
            Some(_) => 1.0,
            None => 0.0,
        };
        let whole: f64 = prices(class, weights).map(part).sum();
        let parts = prices(class, weights).map(part);
        for ((load, part), seconds) in loads.iter_mut().zip(parts).zip(&class.seconds) {
            *load += class.work * seconds.unwrap_or(0.0) * part / whole;
        }
    }
    loads
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn class(work: f64, seconds: &[f64]) -> Class {
        let known = |s: &f64| (*s > 0.0).then_some(*s);
        Class {
            work,
            seconds: seconds.iter().map(known).collect(),
        }
    }

    fn near(classes: &[Class], exact: f64) {
        let found = bound(classes).expect("a bound");
        assert!(
            found <= exact * (1.0 + 1e-9),
            "{found} > {exact}: {classes:?}"
        );
        assert!(found >= exact * 0.99, "{found} < {exact}: {classes:?}");
    }

    #[test]
    fn rates_of_devices_add_up() {
        near(&[class(100.0, &[1.0])], 100.0);
        near(&[class(100.0, &[1.0, 0.25])], 20.0);
        near(&[class(100.0, &[20.0, 1.0, 1.0, 2.0])], 100.0 / 2.55);
        // No device with half of the work is needed for what it never ran.
        near(
            &[class(100.0, &[1.0, 0.0]), class(10.0, &[0.0, 1.0])],
            100.0,
        );
    }

    #[test]
    fn each_class_goes_where_it_is_comparatively_fast() {
        // A: 1 and 10 s; B: 2 and 3 s. The second device computes B only: all 30 of B are
        // 90 s there; with b of them on the first one, 40 + 2 b = 90 - 3 b.
        near(&[class(40.0, &[1.0, 10.0]), class(30.0, &[2.0, 3.0])], 60.0);
    }

    #[test]
    fn what_ran_nowhere_has_no_bound() {
        assert_eq!(bound(&[]), None);
        assert_eq!(bound(&[class(1.0, &[0.0, 0.0])]), None);
        assert_eq!(bound(&[class(0.0, &[1.0])]), Some(0.0));
    }

    proptest! {
        #[test]
        fn two_devices_agree_with_a_search_of_their_weights(
            raw in proptest::collection::vec((1.0f64..50.0, 0.1f64..20.0, 0.1f64..20.0), 1..6),
        ) {
            let classes: Vec<Class> =
                raw.iter().map(|(work, a, b)| class(*work, &[*a, *b])).collect();
            let at = |z: f64| value(&classes, &[z, 1.0 - z]);
            // The maximum lies where a class changes its device.
            let turns = raw.iter().map(|(_, a, b)| at(b / (a + b)));
            near(&classes, turns.fold(0.0, f64::max));
        }

        #[test]
        fn no_division_is_faster(
            raw in proptest::collection::vec(
                (1.0f64..50.0, proptest::collection::vec(0.1f64..20.0, 4), 0usize..4), 1..8,
            ),
        ) {
            let classes: Vec<Class> = raw.iter().map(|(work, t, _)| class(*work, t)).collect();
            let mut loads = [0.0; 4];
            for (work, seconds, device) in &raw {
                loads[*device] += work * seconds[*device];
            }
            let makespan = loads.into_iter().fold(0.0, f64::max);
            prop_assert!(bound(&classes).expect("a bound") <= makespan * (1.0 + 1e-9));
        }
    }
}

//! Supersteps against as many single steps of a plain loop, bit for bit.

use proptest::prelude::*;

use super::case::{Case, Point};
use super::launches::{check_dispatched_superstep, check_superstep};
use super::{FIVE, SEVEN, split};
use crate::host::{Level, Stores};

/// Runs the case at every level that the processor has, with both stores.
fn check_all<T: Point, const INPUTS: usize>(case: &Case, threads: usize, cuts: [usize; 3]) {
    for level in Level::available() {
        for stores in [Stores::Plain, Stores::Stream] {
            check_superstep::<T, INPUTS>(level, stores, case, threads, cuts);
        }
    }
}

/// Both precisions, in the dimensions that the case has.
pub(super) fn check(case: &Case, threads: usize, cuts: [usize; 3]) {
    if case.ny == 1 {
        check_all::<f64, FIVE>(case, threads, cuts);
        check_all::<f32, FIVE>(case, threads, cuts);
    } else {
        check_all::<f64, SEVEN>(case, threads, cuts);
        check_all::<f32, SEVEN>(case, threads, cuts);
    }
}

#[test]
fn whole_grids_of_any_shape() {
    for nx in [3, 4, 5, 8, 9, 17, 33, 64, 97, 520] {
        for (ny, units) in [(1, 3), (1, 4), (1, 9), (1, 30), (3, 3), (4, 7), (9, 5)] {
            for steps in [1, 2, 3, 5, 12, 40] {
                let case = Case {
                    steps,
                    ..Case::whole(nx, ny, units)
                };
                check(&case, 1, [0; 3]);
                check(&case, 2, [2, 1, 3]);
            }
        }
    }
}

#[test]
fn parts_of_a_launch() {
    let case = Case {
        steps: 6,
        ..Case::whole(131, 1, 40)
    };
    for cuts in [0, 0b1000_0000_0010_0000, u64::MAX] {
        check_dispatched_superstep::<f64, FIVE>(&case, 1, &split(0..40, cuts));
        check_dispatched_superstep::<f32, FIVE>(&case, 4, &split(0..40, cuts));
    }
    let case = Case {
        steps: 4,
        ..Case::whole(61, 7, 11)
    };
    check_dispatched_superstep::<f64, SEVEN>(&case, 3, &split(0..11, 0b100));
    check_dispatched_superstep::<f32, SEVEN>(&case, 1, &split(0..11, 0b100));
}

#[test]
fn tiles_as_chosen_for_grids_larger_than_the_cache() {
    let flat = Case {
        steps: 9,
        ..Case::whole(8011, 1, 70)
    };
    check_dispatched_superstep::<f64, FIVE>(&flat, 2, &split(0..70, 0));
    check_dispatched_superstep::<f32, FIVE>(&flat, 1, &split(0..70, 0));
    let solid = Case {
        steps: 5,
        ..Case::whole(401, 90, 9)
    };
    check_dispatched_superstep::<f64, SEVEN>(&solid, 4, &split(0..9, 0));
    check_dispatched_superstep::<f32, SEVEN>(&solid, 1, &split(0..9, 0));
}

/// Any superstep of any part of a grid between rings of any length.
fn any_case() -> impl Strategy<Value = Case> {
    let shape = (3..420usize, 3..20usize, 3..40u64, any::<bool>(), 1..=40u64);
    let rest = (
        any::<(u64, u64, u64, bool)>(),
        (0..5u64, 0..5u64),
        (0..16usize, 0..16usize),
        any::<u64>(),
    );
    (shape, rest).prop_map(
        |((nx, ny, units, deep, steps), (picks, spare, skew, seed))| {
            let (a, b, c, in_place) = picks;
            // Planes of the size of the longest rows would take too long.
            let (nx, ny) = if deep { (3 + nx / 4, ny) } else { (nx, 1) };
            let first = a % units;
            let count = 1 + b % (units - first);
            let (below, above) = (steps.min(first), steps.min(units - first - count));
            let readable = below + count + above;
            let (from_slots, to_slots) = if in_place {
                let slots = readable + count + spare.0;
                (slots, slots)
            } else {
                (readable + spare.0, count + spare.1)
            };
            let from_slot = c % from_slots;
            let to_slot = if in_place {
                // Behind what the launch reads.
                (from_slot + count + above) % to_slots
            } else {
                (c >> 32) % to_slots
            };
            Case {
                nx,
                ny,
                units,
                first,
                count,
                steps,
                from_ring: (from_slot, from_slots),
                to_ring: (to_slot, to_slots),
                in_place,
                skew,
                seed,
                special: None,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_superstep_in_any_rings(
        case in any_case(),
        threads in 1..=4usize,
        cuts in any::<[usize; 3]>(),
    ) {
        check(&case, threads, cuts);
    }
}

//! Changes of grids with a point that is no ordinary number. All other launches of the tests
//! compare their changes, too.

use super::case::Case;
use super::{check_2d, check_3d, split, superstep};

/// Each of these at every point of a grid, in its border too.
const SPECIAL: [f64; 4] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX];

/// Cases with a special value at any point.
fn cases(case: &Case) -> impl Iterator<Item = Case> {
    let points = (case.nx * case.ny) as u64 * case.units;
    (0..points).map(move |seed| Case {
        seed,
        special: Some(SPECIAL[(seed % 4) as usize]),
        ..case.clone()
    })
}

#[test]
fn nan_and_infinity_are_kept() {
    for case in cases(&Case::whole(67, 1, 7)) {
        check_2d(&case, &split(0..7, 0));
        check_2d(&case, &split(1..6, 0b0100));
    }
    for case in cases(&Case::whole(19, 5, 5)) {
        check_3d(&case, &split(0..5, 0));
    }
}

#[test]
fn nan_and_infinity_are_kept_in_the_last_step() {
    for steps in 1..=3 {
        let flat = Case {
            steps,
            ..Case::whole(67, 1, 7)
        };
        for (case, cuts) in cases(&flat).zip(0..) {
            superstep::check(&case, 1, [cuts % 2, 0, cuts]);
        }
        let solid = Case {
            steps,
            ..Case::whole(19, 5, 5)
        };
        for (case, cuts) in cases(&solid).zip(0..) {
            superstep::check(&case, 2, [cuts % 2, cuts % 3, cuts]);
        }
    }
}

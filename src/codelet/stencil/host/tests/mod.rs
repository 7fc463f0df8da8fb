//! Every level and both kinds of stores against a plain loop, bit for bit.
//!
//! [`case`] lays a launch out in poisoned memory, runs it and compares every
//! byte of that memory. [`launches`] are of the kernels, without and with the largest change,
//! which is compared, too. Here are the cases.
use std::ops::Range;

use case::{Case, Point};
use launches::{check, check_dispatched};
use proptest::prelude::*;

use crate::host::{Level, Stores};

use super::{FIVE, SEVEN};

mod case;
mod changes;
mod launches;
mod superstep;

const ROW_LENGTHS: [usize; 17] = [
    3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 97, 1000, 4099,
];
const ROWS: [u64; 8] = [3, 4, 5, 6, 7, 8, 9, 17];

/// Runs the case at every level that the processor has, with both stores.
fn check_all<T: Point, const INPUTS: usize>(case: &Case, tiles: &[Range<u64>]) {
    for level in Level::available() {
        for stores in [Stores::Plain, Stores::Stream] {
            check::<T, INPUTS>(level, stores, case, tiles);
        }
    }
}

/// Both precisions, 2-D.
fn check_2d(case: &Case, tiles: &[Range<u64>]) {
    check_all::<f64, FIVE>(case, tiles);
    check_all::<f32, FIVE>(case, tiles);
}

/// Both precisions, 3-D.
fn check_3d(case: &Case, tiles: &[Range<u64>]) {
    check_all::<f64, SEVEN>(case, tiles);
    check_all::<f32, SEVEN>(case, tiles);
}

/// The tiles of the split whose cuts are the set bits of `cuts`, again after 64 units.
fn split(units: Range<u64>, cuts: u64) -> Vec<Range<u64>> {
    let mut starts: Vec<u64> = (units.start + 1..units.end)
        .filter(|unit| cuts >> ((unit - units.start - 1) % 64) & 1 == 1)
        .collect();
    starts.insert(0, units.start);
    starts.push(units.end);
    starts.windows(2).map(|pair| pair[0]..pair[1]).collect()
}

#[test]
fn rows_of_any_length_and_number() {
    for nx in ROW_LENGTHS {
        for rows in ROWS {
            let case = Case::whole(nx, 1, rows);
            check_2d(&case, &split(0..rows, 0));
            check_2d(&case, &split(0..rows, u64::MAX));
        }
    }
}

#[test]
fn every_split_into_tiles() {
    for nx in [3, 8, 17, 65] {
        for rows in 3..=7 {
            let case = Case::whole(nx, 1, rows);
            for cuts in 0..1 << (rows - 1) {
                check_2d(&case, &split(0..rows, cuts));
            }
        }
    }
}

#[test]
fn a_tile_leaves_the_others_alone() {
    for tile in [0..1, 1..2, 3..8, 8..9, 4..4] {
        check_2d(&Case::whole(97, 1, 9), std::slice::from_ref(&tile));
        check_3d(&Case::whole(31, 7, 9), std::slice::from_ref(&tile));
    }
}

#[test]
fn rows_at_any_alignment() {
    for nx in [9, 33, 64, 97, 1000] {
        for skew in 0..16 {
            let mut case = Case::whole(nx, 1, 9);
            case.skew = (skew, skew * 7 % 16);
            check_2d(&case, &split(0..9, 0));
        }
    }
}

#[test]
fn rings_that_wrap_within_a_tile() {
    for from_slot in 0..11 {
        for to_slot in 0..9 {
            let case = Case {
                first: 4,
                count: 9,
                from_ring: (from_slot, 11),
                to_ring: (to_slot, 9),
                ..Case::whole(33, 1, 20)
            };
            check_2d(&case, &split(4..13, 0));
            check_2d(&case, &split(4..13, 0b0010_0100));
        }
    }
}

#[test]
fn one_memory_for_both_versions() {
    for from_slot in 0..12 {
        let case = Case {
            first: 2,
            count: 5,
            from_ring: (from_slot, 12),
            to_ring: ((from_slot + 6) % 12, 12),
            in_place: true,
            ..Case::whole(65, 1, 9)
        };
        check_2d(&case, &split(2..7, 0));
        let planes = Case {
            nx: 17,
            ny: 5,
            ..case
        };
        check_3d(&planes, &split(2..7, 0b10));
    }
}

#[test]
fn rows_and_planes_too_large_for_one_band() {
    check_all::<f64, FIVE>(&Case::whole(20_011, 1, 8), &split(0..8, 0b1000));
    check_all::<f32, FIVE>(&Case::whole(40_009, 1, 7), &split(0..7, 0));
    check_all::<f64, SEVEN>(&Case::whole(1009, 67, 5), &split(0..5, 0));
    check_all::<f32, SEVEN>(&Case::whole(4099, 23, 4), &split(0..4, 0b10));
}

#[test]
fn planes_of_prime_shapes() {
    for (nx, ny, nz) in [
        (3, 3, 3),
        (5, 3, 7),
        (7, 11, 13),
        (31, 17, 5),
        (97, 13, 4),
        (257, 5, 3),
    ] {
        let case = Case::whole(nx, ny, nz);
        check_3d(&case, &split(0..nz, 0));
        check_3d(&case, &split(0..nz, u64::MAX));
    }
}

#[test]
fn the_codelets_own_kernels() {
    let five = Case::whole(131, 1, 19);
    check_dispatched::<f64, FIVE>(&five, &split(0..19, 0b1001_0000));
    check_dispatched::<f32, FIVE>(&five, &split(0..19, 0b1001_0000));
    let seven = Case::whole(61, 7, 11);
    check_dispatched::<f64, SEVEN>(&seven, &split(0..11, 0b100));
    check_dispatched::<f32, SEVEN>(&seven, &split(0..11, 0b100));
}

/// Any launch of any part of a grid between rings of any length.
fn any_case() -> impl Strategy<Value = (Case, u64)> {
    let shape = (3..300usize, 3..9usize, 3..24u64, any::<bool>());
    let rest = (
        any::<(u64, u64, u64, u64, bool)>(),
        (0..5u64, 0..5u64),
        (0..16usize, 0..16usize),
        any::<u64>(),
    );
    (shape, rest).prop_map(|((nx, ny, units, deep), (picks, spare, skew, seed))| {
        let (a, b, c, cuts, in_place) = picks;
        let first = a % units;
        let count = 1 + b % (units - first);
        let (from_slots, to_slots) = if in_place {
            let slots = 2 * count + 2 + spare.0;
            (slots, slots)
        } else {
            (count + 2 + spare.0, count + spare.1)
        };
        let from_slot = c % from_slots;
        let to_slot = if in_place {
            // Behind the launch's units and the one after them.
            (from_slot + count + 1) % to_slots
        } else {
            (c >> 32) % to_slots
        };
        let case = Case {
            nx,
            ny: if deep { ny } else { 1 },
            units,
            first,
            count,
            steps: 1,
            from_ring: (from_slot, from_slots),
            to_ring: (to_slot, to_slots),
            in_place,
            skew,
            seed,
            special: None,
        };
        (case, cuts)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_launch_in_any_rings((case, cuts) in any_case()) {
        let tiles = split(case.first..case.first + case.count, cuts);
        if case.ny == 1 {
            check_2d(&case, &tiles);
        } else {
            check_3d(&case, &tiles);
        }
    }
}

//! Each check accepts right results, and finds wrong ones.

pub(crate) mod injected;
mod injections;

use std::convert::Infallible;

use super::product::{Matrix, MatrixPart, Product, Verification};
use super::transform::{Complex, Transform};
use super::*;
use crate::codelet::Precision;

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

#[test]
fn numbers_are_read_as_they_are_stored_rounded() {
    let given = [1.0 + 0.5_f64.powi(9), 1.0 + 0.5_f64.powi(12), -65504.0];
    let stored = |element: Element| {
        let mut bytes = vec![0; 3 * element.bytes() as usize];
        element.store(given.into_iter(), &mut bytes);
        numbers(&bytes, element)
    };
    assert_eq!(stored(Element::F64), given);
    assert_eq!(stored(Element::F32), given);
    assert_eq!(stored(Element::F16), [given[0], 1.0, -65504.0]);
    assert_eq!(stored(Element::Bf16), [1.0, 1.0, -65536.0]);
}

fn single() -> Rounding {
    Rounding::from(Precision::F32)
}

#[test]
fn sums_have_the_places_of_numbers_that_are_not_finite() {
    let sum = |terms: &[(f64, f64)]| {
        let mut sum = Sum::default();
        terms.iter().for_each(|(a, b)| sum.add(*a, *b));
        sum
    };
    // The terms, right results and wrong ones.
    type Case<'a> = (&'a [(f64, f64)], &'a [f64], &'a [f64]);
    let cases: [Case; 8] = [
        (
            &[(2.0, 3.0), (1.0, -1.0)],
            &[5.0, 5.0000005],
            &[5.1, NAN, INF],
        ),
        (&[(NAN, 0.0), (1.0, 1.0)], &[NAN], &[1.0, INF]),
        (&[(INF, 2.0), (-1.0, 1.0)], &[INF], &[-INF, NAN, 1.0]),
        (&[(INF, 0.0)], &[NAN], &[0.0, INF]),
        (&[(INF, 1.0), (-INF, 1.0)], &[NAN], &[INF, 0.0]),
        // Finite in double precision, but not in single.
        (&[(1e30, 1e30), (-1e30, 1e30)], &[NAN, INF, 0.0], &[]),
        (&[(1e30, 1e30)], &[INF], &[3e38, 0.0]),
        // Products that a device replaces by zero.
        (&[(1e-30, 1e-30), (1e-20, 1e-20)], &[0.0, 1e-40], &[1e-30]),
    ];
    for (terms, right, wrong) in cases {
        let sum = sum(terms);
        for found in right {
            assert!(sum.error(*found, single()) <= 1.0, "{terms:?} {found}");
        }
        for found in wrong {
            assert!(sum.error(*found, single()) > 1.0, "{terms:?} {found}");
        }
    }
}

/// A product of single precision, in parts.
struct Case {
    size: [usize; 3],
    a: Vec<f32>,
    b: Vec<f32>,
    c: Vec<f32>,
}

impl Case {
    fn random(size: [usize; 3], seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let [rows, columns, depth] = size;
        let mut numbers =
            |count: usize| -> Vec<f32> { (0..count).map(|_| 2.0 * random.f32() - 1.0).collect() };
        let (a, b) = (numbers(rows * depth), numbers(depth * columns));
        let c = Vec::new();
        Self { size, a, b, c }.multiplied()
    }

    /// C is what plain loops in single precision give.
    fn multiplied(mut self) -> Self {
        let [rows, columns, depth] = self.size;
        self.c = vec![0.0; rows * columns];
        for i in 0..rows {
            for j in 0..columns {
                let terms = (0..depth).map(|k| self.a[i * depth + k] * self.b[k * columns + j]);
                self.c[i * columns + j] = terms.sum();
            }
        }
        self
    }

    fn verify(&self) -> Verification {
        let [rows, columns, depth] = self.size.map(|length| length as u64);
        let product = Product {
            rows,
            columns,
            depth,
            group: 8,
            rounding: single(),
            seed: 5,
        };
        let mut source = |matrix, act: &mut dyn FnMut(MatrixPart)| {
            let (of, height, width) = match matrix {
                Matrix::A => (&self.a, rows, depth),
                Matrix::B => (&self.b, depth, columns),
                Matrix::C => (&self.c, rows, columns),
            };
            for row in (0..height).step_by(7) {
                for column in (0..width).step_by(8) {
                    let (rows, columns) =
                        (row..(row + 7).min(height), column..(column + 8).min(width));
                    let places = rows.clone().flat_map(|row| {
                        columns
                            .clone()
                            .map(move |column| (row * width + column) as usize)
                    });
                    act(MatrixPart {
                        numbers: places.map(|place| of[place].into()).collect(),
                        rows,
                        columns,
                    });
                }
            }
            Ok::<bool, Infallible>(true)
        };
        let verified = product.verify(&mut source).expect("the numbers are there");
        verified.expect("nothing interrupts it")
    }
}

/// What IEEE 754 gives is right wherever numbers are not finite, overflow or underflow.
#[test]
fn products_of_any_numbers_are_right_and_each_other_result_is_not() {
    let size = [23, 30, 19];
    let special = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, 1e30, 1e-42];
    for seed in 0..60 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut case = Case::random(size, seed);
        for _ in 0..random.usize(0..6) {
            let (of, count) = match random.bool() {
                true => (&mut case.a, 23 * 19),
                false => (&mut case.b, 19 * 30),
            };
            of[random.usize(0..count)] = special[random.usize(0..special.len())];
        }
        let mut case = case.multiplied();
        let verification = case.verify();
        assert!(verification.right(), "seed {seed}: {verification:?}");
        // A number that is not finite is replaced, or one that is, by what it is not.
        let place = random.usize(0..23 * 30);
        let right = case.c[place];
        case.c[place] = match right.is_finite() {
            true => special[random.usize(0..3)],
            false => 1.0,
        };
        let wrong = case.verify();
        assert!(
            !wrong.right(),
            "seed {seed}: {right} became {}",
            case.c[place]
        );
        assert_eq!(wrong.error, INF);
    }
}

#[test]
fn scaled_products_are_right_and_wrong_ones_are_found() {
    for scale in [1.0, 1e-18, 1e-22, 1e-37, 1e18, 1e25] {
        let mut case = Case::random([40, 17, 33], 3);
        case.a.iter_mut().for_each(|number| *number *= scale);
        case.b.iter_mut().for_each(|number| *number *= scale);
        let mut case = case.multiplied();
        assert!(case.verify().right(), "{scale} {:?}", case.verify());
        // Below the smallest normal number, any is right.
        if scale > 1e-18 && scale < 1e20 {
            case.c[100] *= 1.001;
            assert!(!case.verify().right(), "{scale}");
        }
    }
}

#[test]
fn factors_are_compared_with_the_matrix() {
    // [[0, 1], [2, 1]], of which the rows are exchanged.
    let (lu, given) = ([2.0, 1.0, 0.0, 1.0], [2.0, 1.0, 0.0, 1.0]);
    let check = |lu: [f64; 4], given: [f64; 4]| {
        let rows = |of: [f64; 4]| {
            move |rows: std::ops::Range<u64>| {
                of[2 * rows.start as usize..2 * rows.end as usize].to_vec()
            }
        };
        factors::check(2, single(), 1, &mut rows(lu), &mut rows(given))
    };
    let right = check(lu, given);
    let figures = right.factors.expect("they are factors");
    assert_eq!(
        (right.wrong, figures.residual, figures.growth),
        (0, 0.0, 1.0)
    );
    assert!(check([2.0, 1.0, 0.1, 1.0], given).wrong > 0);
    assert!(check([2.0, 1.0, NAN, 1.0], given).wrong > 0);
    // Without exchanges, a small pivot makes rounding errors as large as the matrix, though
    // L U is a product as exact as its factors allow: [[1e-9, 1], [1, 1]].
    let unstable = check([1e-9, 1.0, 1e9, -1e9], [1e-9, 1.0, 1.0, 1.0]);
    assert!(unstable.wrong > 0);
    let figures = unstable.factors.expect("they are factors");
    assert!(
        figures.growth > 9e8 && figures.residual > 1e5,
        "{figures:?}"
    );
}

#[test]
fn orders_and_multisets_are_compared() {
    use sorted::{MultisetHash, ascends};
    let order = [
        f32::NEG_INFINITY,
        -1.0,
        -0.0,
        0.0,
        1e-40,
        2.0,
        f32::INFINITY,
        f32::NAN,
    ];
    for (at, one) in order.iter().enumerate() {
        for (other_at, other) in order.iter().enumerate() {
            let is_same = at == other_at;
            assert_eq!(
                ascends((*one).into(), (*other).into()),
                is_same || at < other_at,
                "{one} {other}"
            );
        }
    }
    let hash = |of: &[u64]| {
        let mut hash = MultisetHash::default();
        of.iter().for_each(|element| hash.add(*element));
        hash
    };
    assert_eq!(hash(&[1, 5, 5, 0]), hash(&[5, 0, 1, 5]));
    for other in [&[1, 5, 0][..], &[1, 5, 0, 0], &[1, 5, 4, 1], &[1, 1, 5, 0]] {
        assert_ne!(hash(&[1, 5, 5, 0]), hash(other));
    }
}

#[test]
fn transforms_are_compared_with_the_definition() {
    let (rows, columns) = (4, 8);
    let transform = Transform {
        rows,
        columns,
        rounding: single(),
    };
    // A wave has one frequency, in row 1 and column 3.
    let wave = |row: u64, column: u64| -> Complex {
        let turns = row as f64 / rows as f64 + 3.0 * column as f64 / columns as f64;
        let angle = std::f64::consts::TAU * turns;
        [angle.cos(), angle.sin()]
    };
    let right = |row: u64, column: u64| -> Complex {
        match (row, column) {
            (1, 3) => [32.0, 0.0],
            _ => [0.0; 2],
        }
    };
    let check = |given: &dyn Fn(u64, u64) -> Complex, found: &dyn Fn(u64, u64) -> Complex| {
        let mut checked = Checked::default();
        // Two blocks.
        for columns in [0..3, 3..columns] {
            let mut row = |row: u64, line: &mut [Complex]| {
                (0..)
                    .zip(line)
                    .for_each(|(column, to)| *to = given(row, column));
            };
            let places = (0..rows).flat_map(|row| columns.clone().map(move |column| (row, column)));
            let found: Vec<Complex> = places.map(|(row, column)| found(row, column)).collect();
            checked.add(&transform.compare((&(0..rows), &columns), 7, &mut row, &found));
        }
        checked
    };
    let right_one = check(&wave, &right);
    assert_eq!((right_one.wrong, right_one.numbers), (0, 32));
    let moved = |row, column: u64| right(row, (column + 7) % 8);
    // The row of a block is wrong as a whole.
    assert_eq!(check(&wave, &moved).wrong, 5);
    let halved = |row, column| right(row, column).map(|part| part / 2.0);
    assert_eq!(check(&wave, &halved).wrong, 5);
    // A number that is infinite reaches all of the result.
    let with_other = |row, column| match (row, column) {
        (2, 2) => [0.0, INF],
        _ => wave(row, column),
    };
    assert_eq!(check(&with_other, &|_, _| [NAN, 1.0]).wrong, 0);
    assert_eq!(check(&with_other, &right).wrong, 32);
    let one_is_none = |row, column| match (row, column) {
        (0, 7) => [0.0, NAN],
        _ => right(row, column),
    };
    assert_eq!(check(&wave, &one_is_none).wrong, 1);
}

/// A method adds the parts of a number before it scales their sum.
#[test]
fn transforms_that_overflow_in_between_are_not_wrong() {
    let transform = Transform {
        rows: 2,
        columns: 4,
        rounding: single(),
    };
    for (most, overflows) in [(3.4e38, true), (3e38, true), (1e38, true), (1e36, false)] {
        let mut row = |row: u64, line: &mut [Complex]| {
            line.fill([0.0; 2]);
            line[0][0] = if row == 0 { most } else { 0.0 };
        };
        let mut found = [[most, 0.0]; 8];
        found[5] = [INF, NAN];
        let checked = transform.compare((&(0..2), &(0..4)), 1, &mut row, &found);
        let right = match overflows {
            true => (4, 0, 1),
            false => (5, 1, 0),
        };
        let found = (checked.numbers, checked.wrong, checked.overflowed);
        assert_eq!(found, right, "{most}");
        // What is finite is compared all the same.
        let mut wrong = [[most, 0.0]; 8];
        wrong[2][1] = 1e-2 * most;
        let checked = transform.compare((&(0..2), &(0..4)), 1, &mut row, &wrong);
        assert_eq!(checked.wrong, 4, "{most}");
    }
}

/// The mean of numbers has nearly all of the norm in one frequency, and its column the rounding
/// of a row's sum.
#[test]
fn a_transform_may_round_its_greatest_column_more() {
    let side = 64u64;
    let transform = Transform {
        rows: side,
        columns: side,
        rounding: single(),
    };
    let all = (side * side) as f64;
    // Ones: the first frequency has all.
    let right = |row: u64, column: u64| match (row, column) {
        (0, 0) => [all, 0.0],
        _ => [0.0; 2],
    };
    let wrong = |changed: (u64, u64), by: f64| {
        let mut row = |_: u64, line: &mut [Complex]| line.fill([1.0, 0.0]);
        let found = |row: u64, column: u64| {
            let [re, im] = right(row, column);
            [re + if (row, column) == changed { by } else { 0.0 }, im]
        };
        let places = (0..side).flat_map(|row| (0..side).map(move |column| (row, column)));
        let found: Vec<Complex> = places.map(|(row, column)| found(row, column)).collect();
        (0..side)
            .map(|column| {
                let found: Vec<Complex> = found[column as usize..]
                    .iter()
                    .step_by(side as usize)
                    .copied()
                    .collect();
                let block = (&(0..side), &(column..column + 1));
                transform.compare(block, 3, &mut row, &found).wrong
            })
            .sum::<u64>()
    };
    let unit = single().unit;
    // A few roundings of the whole, and of the sum of a row over all rows.
    assert_eq!(wrong((0, 0), 4.0 * unit * all), 0);
    let of_column = unit * all.sqrt() * (side as f64).sqrt() * 100.0;
    assert_eq!(wrong((7, 0), of_column), 0);
    // As much in a column that has nothing is wrong, and so is much more anywhere.
    assert_eq!(wrong((7, 5), of_column), 1);
    assert_eq!(wrong((7, 0), 1e3 * of_column), 1);
    assert_eq!(wrong((0, 0), 1e-2 * all), 1);
}

#[test]
fn errors_are_never_none() {
    for (found, right) in [
        (NAN, 1.0),
        (1.0, NAN),
        (NAN, 0.0),
        (INF, NAN),
        (INF, -INF),
        (1.0, INF),
    ] {
        assert_eq!(
            checked::error(found, right, 0.5),
            INF,
            "{found} for {right}"
        );
    }
    for (found, right) in [(NAN, NAN), (INF, INF), (0.0, -0.0)] {
        assert_eq!(
            checked::error(found, right, 0.0),
            0.0,
            "{found} for {right}"
        );
    }
    assert_eq!(checked::error(1.5, 1.0, 0.25), 2.0);
    assert_eq!(checked::error(1.5, 1.0, 0.0), INF);
}

#[test]
fn a_compensated_sum_loses_nothing() {
    // A plain sum loses each of the small ones.
    let small = 1e-17;
    let numbers = std::iter::once(1.0).chain(std::iter::repeat_n(small, 1000));
    assert_eq!(numbers.clone().sum::<f64>(), 1.0);
    assert_eq!(compensated(numbers), 1.0 + 1000.0 * small);
    assert_eq!(compensated([1.0, 1e100, 1.0, -1e100]), 2.0);
}

//! The native kernel at every level of the processor, against the sequential reference.

use super::factors::Factors;
use super::fixtures::Plain;
use super::{Form, Options};
use crate::codelet::spmv::host;
use crate::codelet::{Level, Precision, Stores};
use crate::matrices::{awkward, matrix};
use crate::verify::Compared;

fn options(precision: Precision, form: Form, unit_weight: u64) -> Options {
    Options {
        precision,
        form,
        unit_weight: Some(unit_weight),
        ..Options::default()
    }
}

fn compute(level: Level, stores: Stores, plain: &mut Plain) {
    let factors = plain.spmv.factors(0.25);
    let precision = plain.spmv.options().precision;
    let args = plain.args(factors);
    let units = plain.spmv.arrangement().units();
    // Two tiles, the later one first.
    for tile in [units / 2..units, 0..units / 2] {
        // SAFETY: the level is the processor's, and the data are whole.
        unsafe { host::compute(level, stores, precision, &args, tile) }
    }
    plain.add_pieces();
}

#[test]
fn every_level_agrees_with_the_reference() {
    for level in Level::available() {
        for weight in [64, 2048] {
            for (name, matrix) in awkward() {
                agree(level, &matrix, weight, name);
            }
        }
    }
}

#[test]
fn equal_rows_agree_with_the_reference() {
    for level in Level::available() {
        for length in 0..=10 {
            let rows = 101 + length;
            let lengths = vec![length as u32; rows];
            let name = format!("{rows} rows of {length}");
            agree(level, &matrix(97, &lengths, 7), 2048, &name);
            // The number of entries alone does not tell.
            let mut unlike = lengths;
            if let [first, second, ..] = &mut unlike[..]
                && *first > 0
            {
                (*first, *second) = (*first - 1, *second + 1);
            }
            agree(level, &matrix(97, &unlike, 8), 2048, &name);
        }
    }
}

fn agree(level: Level, matrix: &crate::matrix::Csr, weight: u64, name: &str) {
    for precision in [Precision::F64, Precision::F32] {
        for stores in [Stores::Plain, Stores::Stream] {
            let mut plain = Plain::new(matrix.clone(), options(precision, Form::Product, weight));
            compute(level, stores, &mut plain);
            let Compared { error, right, .. } = plain.verify();
            let how = format!("{precision:?} {level:?} {stores:?} {weight}");
            assert!(right, "{name} {how}: {error:e}");
        }
    }
}

#[test]
fn units_sum_what_the_next_step_needs() {
    for level in Level::available() {
        let square = |(_, matrix): &(&str, crate::matrix::Csr)| matrix.rows() == matrix.columns();
        for (name, matrix) in awkward().into_iter().filter(square) {
            for form in [Form::Iteration, Form::Ranks] {
                let mut plain = Plain::new(matrix.clone(), options(Precision::F64, form, 64));
                compute(level, Stores::Plain, &mut plain);
                for (sums, right) in plain.unit_sums() {
                    for (sum, right) in sums.into_iter().zip(right) {
                        let near = (sum - right).abs() <= 1e-12 * right.abs();
                        let what = format!("{name} {form:?} {level:?}");
                        assert!(near || right.is_nan(), "{what}: {sum} {right}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_sum_is_scaled_and_shifted() {
    let matrix = matrix(40, &[17; 40], 3);
    let compute = |scale: f64| {
        let mut plain = Plain::new(matrix.clone(), options(Precision::F64, Form::Product, 64));
        let args = plain.args(Factors { scale, shift: 3.0 });
        let units = plain.spmv.arrangement().units();
        // SAFETY: the data are whole.
        unsafe { host::kernel(Precision::F64)(&args, 0, 0..units) };
        plain.y.into_iter().map(f64::from_bits).collect::<Vec<_>>()
    };
    let doubled: Vec<f64> = compute(1.0)
        .into_iter()
        .map(|y| 2.0 * (y - 3.0) + 3.0)
        .collect();
    for (found, right) in compute(2.0).into_iter().zip(doubled) {
        assert!(
            (found - right).abs() <= 1e-13 * (right.abs() + 3.0),
            "{found} {right}"
        );
    }
}

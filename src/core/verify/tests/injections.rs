//! Checks that can fail: errors are injected into results of each workload, and none escapes
//! ([`super::injected`] has their kinds); right results raise no alarm.

use std::convert::Infallible;
use std::sync::Arc;

use fastrand::Rng;

use super::injected::{Case, inject, tf32};
use crate::cluster::space::Block;
use crate::codelet::Precision;
use crate::graph::spec::scalar::Base;
use crate::matrices::matrix;
use crate::verify::product::{GROUPS, Matrix, MatrixPart, Product};
use crate::verify::transform::{Complex, Transform, fourier};
use crate::verify::*;
use crate::workload::Grid;
use crate::workload::cluster::{
    Check, ClusterWorkload, ConvolutionWorkload, Fill, Placement, sort_alone,
};
use crate::workload::kernel::compare;
use crate::workload::spmv::{Form, Options, Spmv};
use crate::workload::stencil::Stencil;

/// What one wrong number must exceed the bound of weighted sums by; several in a row, whose
/// weights hide them in both sums with a probability of the inverse square; and those of a
/// tile, of which each row must be hidden.
const WEIGHED: [f64; 3] = [2.0, 2048.0, 16.0];

/// Numbers with full mantissas.
fn numbers_of(random: &mut Rng, count: usize) -> Vec<f32> {
    (0..count).map(|_| 2.0 * random.f32() - 1.0).collect()
}

fn wide(of: &[f32]) -> Vec<f64> {
    of.iter().map(|number| f64::from(*number)).collect()
}

fn single() -> Rounding {
    Rounding::from(Precision::F32)
}

/// A product of matrices in memory.
#[derive(Clone)]
struct Factors {
    rows: usize,
    columns: usize,
    depth: usize,
    a: Vec<f64>,
    b: Vec<f64>,
    seed: u64,
}

impl Factors {
    fn of(&self) -> Product {
        Product {
            rows: self.rows as u64,
            columns: self.columns as u64,
            depth: self.depth as u64,
            group: (self.columns as u64).div_ceil(GROUPS as u64),
            rounding: single(),
            seed: self.seed,
        }
    }

    fn accepts(&self, c: &[f64]) -> bool {
        let group = self.of().group as usize;
        let mut source = |of, act: &mut dyn FnMut(MatrixPart)| {
            let (numbers, width) = match of {
                Matrix::A => (&*self.a, self.depth),
                Matrix::B => (&*self.b, self.columns),
                Matrix::C => (c, self.columns),
            };
            for begin in (0..width).step_by(group) {
                let end = (begin + group).min(width);
                let rows = numbers.chunks_exact(width);
                act(MatrixPart {
                    rows: 0..rows.len() as u64,
                    columns: begin as u64..end as u64,
                    numbers: rows.flat_map(|row| row[begin..end].to_vec()).collect(),
                });
            }
            Ok::<bool, Infallible>(true)
        };
        let verified = self.of().verify(&mut source).expect("numbers");
        verified.expect("nothing interrupts it").right()
    }

    /// The product in double precision.
    fn product(&self) -> Vec<f64> {
        let mut c = vec![0.0; self.rows * self.columns];
        for (a, c) in self.a.chunks(self.depth).zip(c.chunks_mut(self.columns)) {
            for (a, b) in a.iter().zip(self.b.chunks(self.columns)) {
                c.iter_mut().zip(b).for_each(|(c, b)| *c += a * b);
            }
        }
        c
    }

    /// How far two results differ, as a multiple of `8 u sqrt(k) |row| |columns|`.
    fn excess(&self, c: &[f64], other: &[f64]) -> f64 {
        let group = self.of().group as usize;
        let norm = |of: &mut dyn Iterator<Item = f64>| of.map(|n| n * n).sum::<f64>().sqrt();
        let columns =
            |at: usize| at / group * group..(at / group * group + group).min(self.columns);
        let of_group = |at: usize| {
            let rows = self.b.chunks(self.columns);
            norm(&mut rows.flat_map(|row| row[columns(at)].iter().copied()))
        };
        let groups: Vec<f64> = (0..self.columns).map(of_group).collect();
        let bound = 8.0 * single().unit * (self.depth as f64).sqrt();
        let differences = c.iter().zip(other).enumerate().map(|(at, (one, other))| {
            let row = &self.a[at / self.columns * self.depth..][..self.depth];
            let norms = norm(&mut row.iter().copied()) * groups[at % self.columns];
            (one - other).abs() / (bound * norms)
        });
        differences.fold(0.0, f64::max)
    }
}

fn sizes(random: &mut Rng) -> [usize; 3] {
    [(); 3].map(|()| random.usize(16..49))
}

/// C is what loops in single precision make of A and B.
fn loops(a: &[f32], b: &[f32], [depth, columns]: [usize; 2]) -> Vec<f32> {
    let mut c = vec![0.0; a.len() / depth * columns];
    for (a, c) in a.chunks(depth).zip(c.chunks_mut(columns)) {
        for (a, b) in a.iter().zip(b.chunks(columns)) {
            c.iter_mut().zip(b).for_each(|(c, b)| *c += a * b);
        }
    }
    c
}

fn matmul(seed: u64) -> Case<'static> {
    let mut random = Rng::with_seed(seed);
    let [rows, columns, depth] = sizes(&mut random);
    let mut a = numbers_of(&mut random, rows * depth);
    if random.bool() {
        a.iter_mut().for_each(|number| *number = number.abs());
    }
    let b = numbers_of(&mut random, depth * columns);
    let right = loops(&a, &b, [depth, columns]);
    let factors = Factors {
        rows,
        columns,
        depth,
        a: wide(&a),
        b: wide(&b),
        seed,
    };
    let (of_right, other) = (wide(&right), factors.clone());
    Case {
        name: "matmul",
        rows,
        columns,
        parts: 1,
        right,
        accepts: Box::new(move |c| factors.accepts(&wide(c))),
        excess: Box::new(move |c| other.excess(&wide(c), &of_right)),
        needed: WEIGHED,
    }
}

#[test]
fn wrong_products_are_found() {
    inject(&matmul);
    // Singles whose factors a device has rounded.
    let mut random = Rng::with_seed(super::injected::seed());
    for _ in 0..20 {
        let [rows, columns, depth] = sizes(&mut random);
        let a = numbers_of(&mut random, rows * depth);
        let b = numbers_of(&mut random, depth * columns);
        let rounded = [&a, &b].map(|of| of.iter().map(|n| tf32(*n)).collect::<Vec<_>>());
        let factors = Factors {
            rows,
            columns,
            depth,
            a: wide(&a),
            b: wide(&b),
            seed: random.u64(..),
        };
        let [of_a, of_b] = &rounded;
        let wrong = loops(of_a, of_b, [depth, columns]);
        assert!(!factors.accepts(&wide(&wrong)), "{rows} {columns} {depth}");
    }
}

/// The factor of a symmetric matrix in single precision, zeros above the diagonal.
fn cholesky_of(a: &[f32], size: usize) -> Vec<f32> {
    let mut l = vec![0.0f32; size * size];
    for row in 0..size {
        for column in 0..=row {
            let terms = (0..column).map(|k| l[row * size + k] * l[column * size + k]);
            let rest = terms.fold(a[row * size + column], |rest, term| rest - term);
            l[row * size + column] = match row == column {
                true => rest.sqrt(),
                false => rest / l[column * size + column],
            };
        }
    }
    l
}

/// L with itself, as factors of A.
fn squared(l: &[f32], size: usize, seed: u64) -> Factors {
    let mut lower = wide(l);
    for (row, numbers) in lower.chunks_mut(size).enumerate() {
        numbers[row + 1..].fill(0.0);
    }
    let across = (0..size).flat_map(|row| lower[row..].iter().step_by(size).copied());
    Factors {
        rows: size,
        columns: size,
        depth: size,
        b: across.collect(),
        a: lower,
        seed,
    }
}

fn cholesky(seed: u64) -> Case<'static> {
    let mut random = Rng::with_seed(seed);
    let size = random.usize(16..49);
    let mut a = numbers_of(&mut random, size * size);
    for row in 0..size {
        for column in 0..row {
            a[column * size + row] = a[row * size + column];
        }
        a[row * size + row] += 2.0 * (size as f32).sqrt() + 1.0;
    }
    let right = cholesky_of(&a, size);
    let (a, of_right) = (wide(&a), squared(&right, size, seed));
    let given = a.clone();
    Case {
        name: "cholesky",
        rows: size,
        columns: size,
        parts: 1,
        right,
        accepts: Box::new(move |l| squared(l, size, seed).accepts(&a)),
        excess: Box::new(move |l| {
            let found = squared(l, size, seed).product();
            match found.iter().all(|number| number.is_finite()) {
                true => of_right.excess(&found, &given),
                false => f64::INFINITY,
            }
        }),
        // A wrong number of L is wrong in a row and a column of the product.
        needed: [16.0, 2048.0, 16.0],
    }
}

#[test]
fn wrong_cholesky_factors_are_found() {
    inject(&cholesky);
}

/// Factors of P A in place, and P A.
fn lu_of(mut a: Vec<f32>, size: usize) -> (Vec<f32>, Vec<f32>) {
    let mut given = a.clone();
    for column in 0..size {
        let of = |row: &usize| a[row * size + column].abs();
        let pivot = (column..size).max_by(|one, other| of(one).total_cmp(&of(other)));
        let pivot = pivot.expect("a row");
        for at in 0..size {
            a.swap(column * size + at, pivot * size + at);
            given.swap(column * size + at, pivot * size + at);
        }
        for row in column + 1..size {
            a[row * size + column] /= a[column * size + column];
            for at in column + 1..size {
                a[row * size + at] -= a[row * size + column] * a[column * size + at];
            }
        }
    }
    (a, given)
}

/// The parts of factors.
fn of_lu(lu: &[f32], size: usize, seed: u64) -> Factors {
    let part = |is_in: &dyn Fn(usize, usize) -> bool, diagonal: Option<f64>| {
        let number = |at: usize| match (at / size, at % size) {
            (row, column) if row == column => diagonal.unwrap_or(lu[at].into()),
            (row, column) if is_in(row, column) => lu[at].into(),
            _ => 0.0,
        };
        (0..size * size).map(number).collect::<Vec<f64>>()
    };
    Factors {
        rows: size,
        columns: size,
        depth: size,
        a: part(&|row, column| row > column, Some(1.0)),
        b: part(&|row, column| row < column, None),
        seed,
    }
}

fn lu(seed: u64) -> Case<'static> {
    let mut random = Rng::with_seed(seed);
    let size = random.usize(16..49);
    let (right, given) = lu_of(numbers_of(&mut random, size * size), size);
    let (given, of_right) = (wide(&given), of_lu(&right, size, seed));
    let right_product = given.clone();
    Case {
        name: "lu",
        rows: size,
        columns: size,
        parts: 1,
        right,
        accepts: Box::new(move |lu| {
            let lu = wide(lu);
            let rows = |of: &[f64], rows: std::ops::Range<u64>| {
                of[rows.start as usize * size..rows.end as usize * size].to_vec()
            };
            let checked = factors::check(
                size as u64,
                single(),
                seed,
                &mut |band| rows(&lu, band),
                &mut |band| rows(&given, band),
            );
            checked.wrong == 0
        }),
        excess: Box::new(move |lu| {
            let found = of_lu(lu, size, seed).product();
            match found.iter().all(|number| number.is_finite()) {
                true => of_right.excess(&found, &right_product),
                false => f64::INFINITY,
            }
        }),
        needed: [16.0, 2048.0, 16.0],
    }
}

#[test]
fn wrong_lu_factors_are_found() {
    inject(&lu);
}

fn fft(seed: u64) -> Case<'static> {
    let mut random = Rng::with_seed(seed);
    let [rows, columns, _] = sizes(&mut random);
    let given: Vec<Complex> = numbers_of(&mut random, 2 * rows * columns)
        .as_chunks()
        .0
        .iter()
        .map(|[re, im]: &[f32; 2]| [f64::from(*re), f64::from(*im)])
        .collect();
    // Along rows, and then along columns.
    let of_rows: Vec<Complex> = given.chunks(columns).flat_map(fourier).collect();
    let mut right = vec![0.0; 2 * rows * columns];
    for column in 0..columns {
        let line: Vec<Complex> = of_rows[column..].iter().step_by(columns).copied().collect();
        for (row, number) in fourier(&line).into_iter().enumerate() {
            let at = 2 * (row * columns + column);
            right[at..at + 2].copy_from_slice(&number.map(|part| part as f32));
        }
    }
    let transform = Transform {
        rows: rows as u64,
        columns: columns as u64,
        rounding: single(),
    };
    let complex = |of: &[f32]| -> Vec<Complex> { wide(of).as_chunks().0.to_vec() };
    let (of_right, norm) = (complex(&right), {
        let squares = given.iter().flatten().map(|part| part * part);
        squares.sum::<f64>().sqrt()
    });
    Case {
        name: "fft",
        rows,
        columns,
        parts: 2,
        right,
        accepts: Box::new(move |found| {
            let mut row = |row: u64, line: &mut [Complex]| {
                line.copy_from_slice(&given[row as usize * columns..][..columns]);
            };
            let whole = (&(0..rows as u64), &(0..columns as u64));
            let checked = transform.compare(whole, seed, &mut row, &complex(found));
            checked.wrong == 0 && checked.numbers == (rows * columns) as u64
        }),
        excess: Box::new(move |found| {
            let size = (rows * columns) as f64;
            // The norms of rows are about those of all.
            let bound = 16.0 * single().unit * size.log2() * 3.0 * (columns as f64).sqrt() * norm;
            let differences = complex(found).into_iter().zip(&of_right);
            let differences = differences
                .map(|(one, other)| (one[0] - other[0]).hypot(one[1] - other[1]) / bound);
            differences.fold(0.0, f64::max)
        }),
        needed: WEIGHED,
    }
}

#[test]
fn wrong_transforms_are_found() {
    inject(&fft);
}

/// Contents of a space of so many columns.
fn filled(numbers: Vec<f32>, columns: u64, element: u64) -> Fill {
    Arc::new(move |block: &Block, bytes: &mut [u8]| {
        let all: &[u8] = bytemuck::cast_slice(&numbers);
        let width = (block.width() * element) as usize;
        for (row, to) in block.rows.clone().zip(bytes.chunks_exact_mut(width)) {
            let at = ((row * columns + block.columns.start) * element) as usize;
            to.copy_from_slice(&all[at..at + width]);
        }
        Ok(())
    })
}

/// Whether a workload's check of the whole result accepts it.
fn is_accepted(workload: &dyn ClusterWorkload, found: &[f32]) -> bool {
    let bytes: &[u8] = bytemuck::cast_slice(found);
    let whole = workload.spaces()[workload.result()].extent.whole();
    let checked = match workload.check() {
        Check::Blocks(check) => check(&whole, bytes, 5),
        Check::Whole(_, check) => check(&[bytes], 5),
    };
    checked.wrong == 0
}

fn convolution(seed: u64) -> Case<'static> {
    let mut random = Rng::with_seed(seed);
    let [rows, columns, _] = sizes(&mut random);
    let (channels, size) = (random.usize(1..4), 2 * random.usize(0..3) + 1);
    let image = numbers_of(&mut random, rows * columns * channels);
    let filter = numbers_of(&mut random, size * size);
    let mut right = Vec::new();
    for at in 0..rows * columns * channels {
        let (pixel, channel) = (at / channels, at % channels);
        let (row, column) = (pixel / columns + size, pixel % columns + size);
        let terms = filter.iter().enumerate().map(|(place, weight)| {
            let (y, x) = (
                row + place / size - size / 2,
                column + place % size - size / 2,
            );
            let is_inside = (size..rows + size).contains(&y) && (size..columns + size).contains(&x);
            let pixel = (y.max(size) - size) * columns + x.max(size) - size;
            if is_inside {
                weight * image[pixel * channels + channel]
            } else {
                0.0
            }
        });
        right.push(terms.sum::<f32>());
    }
    let norm = |of: &[f32]| wide(of).iter().map(|n| n * n).sum::<f64>().sqrt();
    let band = (size * columns * channels) as f64 / image.len() as f64;
    // The norms of the rows around a row are about those of all.
    let pixels = (size as f64 * band).sqrt() * norm(&image);
    let bound = 8.0 * single().unit * size as f64 * norm(&filter) * pixels;
    let of_right = right.clone();
    let workload = ConvolutionWorkload {
        rows: rows as u64,
        columns: columns as u64,
        channels: channels as u32,
        size: size as u32,
        placement: Placement::Rows,
        image: filled(image, columns as u64, 4 * channels as u64),
        filter: filled(filter, size as u64, 4),
    };
    let workload = workload.program(16);
    Case {
        name: "convolution",
        rows,
        columns,
        parts: channels,
        right,
        accepts: Box::new(move |found| is_accepted(&workload, found)),
        excess: Box::new(move |found| {
            let differences = found.iter().zip(&of_right);
            let differences = differences.map(|(one, other)| f64::from((one - other).abs()));
            differences.fold(0.0, f64::max) / bound
        }),
        needed: [4.0, 2048.0, 16.0],
    }
}

#[test]
fn wrong_convolutions_are_found() {
    inject(&convolution);
}

/// A check by which every number that differs is wrong, whatever the others are, unless the
/// difference is within the bound.
fn number_by_number(
    name: &'static str,
    [rows, columns]: [usize; 2],
    right: Vec<f32>,
    bounds: Vec<f64>,
    accepts: super::injected::Judges<'static, bool>,
) -> Case<'static> {
    let of_right = right.clone();
    Case {
        name,
        rows,
        columns,
        parts: 1,
        right,
        accepts,
        excess: Box::new(move |found| {
            let differences = found.iter().zip(&of_right).zip(&bounds);
            let differences =
                differences.map(|((one, other), bound)| f64::from((one - other).abs()) / bound);
            differences.fold(0.0, f64::max)
        }),
        // The right result has errors of its own.
        needed: [2.0; 3],
    }
}

#[test]
fn sorted_numbers_stay_in_their_rows() {
    let keys = vec![3.0, 1.0, 2.0, 6.0, 5.0, 4.0];
    let workload = sort_alone::<f32>(2, 3, &filled(keys, 3, 4));
    assert!(is_accepted(&workload, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    for wrong in [
        [1.0, 2.0, 4.0, 3.0, 5.0, 6.0],
        [4.0, 5.0, 6.0, 1.0, 2.0, 3.0],
        [1.0, 3.0, 2.0, 4.0, 5.0, 6.0],
    ] {
        assert!(!is_accepted(&workload, &wrong), "{wrong:?}");
    }
}

fn sort(seed: u64) -> Case<'static> {
    let mut random = Rng::with_seed(seed);
    let side = random.usize(16..49);
    let keys = numbers_of(&mut random, side * side);
    let mut right = keys.clone();
    right.sort_by(f32::total_cmp);
    let count = keys.len() as u64;
    let workload = sort_alone::<f32>(1, count, &filled(keys, count, 4));
    let exact = vec![0.0; right.len()];
    let accepts = Box::new(move |found: &[f32]| is_accepted(&workload, found));
    number_by_number("sort", [side, side], right, exact, accepts)
}

#[test]
fn wrong_orders_are_found() {
    inject(&sort);
}

/// A sparse matrix, and so many steps of a form. Results are of singles.
fn sparse(form: Form, steps: u32, seed: u64) -> Case<'static> {
    let mut random = Rng::with_seed(seed);
    let size = random.u32(16..65);
    let lengths: Vec<u32> = (0..size).map(|_| random.u32(1..9)).collect();
    let mut of = matrix(size, &lengths, seed);
    if form == Form::Iteration {
        // Terms that cancel make the bounds of all steps grow.
        let starts = of.row_starts().to_vec();
        let values: Vec<f64> = of.values().iter().map(|value| value.abs() + 0.1).collect();
        of = crate::matrix::Csr::new(size, size, starts, of.column_of().to_vec(), values)
            .expect("a matrix");
    }
    let options = Options {
        form,
        precision: Precision::F32,
        seed,
        ..Options::default()
    };
    let spmv = Spmv::new("test", Arc::new(of), options).expect("a square matrix");
    let expected = spmv.expected(steps);
    let right: Vec<f32> = expected.values.iter().map(|value| *value as f32).collect();
    let name = match form {
        Form::Product => "spmv",
        Form::Iteration => "spmv --iterate",
        Form::Ranks => "pagerank",
    };
    let accepts = Box::new(move |found: &[f32]| {
        let in_places = spmv.in_places(bytemuck::cast_slice(found));
        let words: Vec<u32> = bytemuck::pod_collect_to_vec(&in_places);
        let both = [
            spmv.check(steps, bytemuck::cast_slice(&words)).wrong == 0,
            spmv.verify(steps, bytemuck::cast_slice(&words)).right,
        ];
        assert_eq!(both[0], both[1], "both ways to count");
        both[0]
    });
    let places = [1, right.len()];
    // The length of an iteration's result does not count.
    let bounds = expected.errors.iter().map(|error| match form {
        Form::Iteration => 4.0 * error,
        _ => *error,
    });
    number_by_number(name, places, right, bounds.collect(), accepts)
}

#[test]
fn wrong_sparse_products_are_found() {
    inject(&|seed| sparse(Form::Product, 1, seed));
}

#[test]
fn wrong_iterations_are_found() {
    inject(&|seed| sparse(Form::Iteration, 3, seed));
}

#[test]
fn wrong_ranks_are_found() {
    inject(&|seed| sparse(Form::Ranks, 5, seed));
}

fn stencil(seed: u64) -> Case<'static> {
    let mut random = Rng::with_seed(seed);
    let [rows, columns, steps] = sizes(&mut random);
    let steps = steps as u32 / 10;
    let of = Stencil::new(columns as u64, rows as u64, None, Precision::F32, seed).expect("a grid");
    let mut right = vec![0.0f32; rows * columns];
    of.initial(0..rows as u64, bytemuck::cast_slice_mut(&mut right))
        .expect("it is random");
    for _ in 0..steps {
        let before = right.clone();
        for at in 0..right.len() {
            let (row, column) = (at / columns, at % columns);
            if (1..rows - 1).contains(&row) && (1..columns - 1).contains(&column) {
                let beside = (before[at - columns] + before[at + columns])
                    + (before[at - 1] + before[at + 1]);
                right[at] = (beside + before[at]) * (1.0f64 / 5.0) as f32;
            }
        }
    }
    let exact = vec![0.0; right.len()];
    let accepts = Box::new(move |found: &[f32]| {
        let bytes = bytemuck::cast_slice(found);
        let units = of.compare_units(steps, &(0..rows as u64), bytes);
        let is_right = of.verify(steps, None, bytes).right;
        assert_eq!(units.wrong == 0, is_right, "both ways to compare");
        is_right
    });
    number_by_number("stencil", [rows, columns], right, exact, accepts)
}

#[test]
fn wrong_grids_are_found() {
    inject(&stencil);
}

fn kernel(seed: u64) -> Case<'static> {
    let mut random = Rng::with_seed(seed);
    let [rows, columns, _] = sizes(&mut random);
    let reference = numbers_of(&mut random, rows * columns);
    let squares = wide(&reference).iter().map(|n| n * n).sum::<f64>();
    let typical = (squares / reference.len() as f64).sqrt();
    let bound = |number: &f32| 1e-4 * f64::from(number.abs()).max(typical);
    let bounds = reference.iter().map(bound).collect();
    // Another device's rounding.
    let right: Vec<f32> = (reference.iter())
        .map(|number| number * (1.0 + 1e-6 * random.f32()))
        .collect();
    let accepts = Box::new(move |found: &[f32]| {
        let (found, right) = (
            bytemuck::cast_slice(found),
            bytemuck::cast_slice(&reference),
        );
        compare::compare(Base::Float, found, right, false).right
    });
    number_by_number("kernel", [rows, columns], right, bounds, accepts)
}

#[test]
fn wrong_results_of_kernels_are_found() {
    inject(&kernel);
}

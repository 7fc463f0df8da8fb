//! Fourier transforms of lines by cuFFT.

use std::f64::consts::TAU;

use pdawl_api::codelet::fft::{Along, Fft};
use pdawl_api::codelet::{Precision, Value};

use super::Memories;
use super::{
    At, FFT, by_library, bytes, launch, numbers, places, random, served, sizes, with_fake_kernels,
};
use crate::library::fake;
use crate::machine::enqueue;
use pdawl_api::runtime::Command;

/// The transforms of some lines of a block, in the place of the block in `y`.
fn right(fft: &Fft, x: &[f64], (from, to): (At, At), lines: std::ops::Range<u64>, y: &mut [f64]) {
    let length = fft.length() as usize;
    let index = |at: At, line: usize, number: usize| match fft.along {
        Along::Rows => at.index(line, number),
        Along::Columns => at.index(number, line),
    };
    for line in lines.start as usize..lines.end as usize {
        for k in 0..length {
            let (mut real, mut imaginary) = (0.0, 0.0);
            for j in 0..length {
                let at = 2 * index(from, line, j);
                let (sin, cos) = (-TAU * (j * k % length) as f64 / length as f64).sin_cos();
                real += x[at] * cos - x[at + 1] * sin;
                imaginary += x[at] * sin + x[at + 1] * cos;
            }
            let at = 2 * index(to, line, k);
            (y[at], y[at + 1]) = (real, imaginary);
        }
    }
}

fn compare(got: &[f64], right: &[f64]) {
    for (index, (got, right)) in got.iter().zip(right).enumerate() {
        let same = got.is_nan() && right.is_nan();
        assert!(
            same || (got - right).abs() < 1e-4,
            "{index}: {got} for {right}"
        );
    }
}

#[test]
fn lines_are_transformed_from_one_block_to_another() {
    let _fake = fake();
    for along in [Along::Rows, Along::Columns] {
        for (rows, columns, units) in [(4, 8, 0..4), (16, 3, 1..3), (1, 2, 0..1), (8, 8, 3..7)] {
            let fft = Fft {
                rows,
                columns,
                along,
                precision: Precision::F32,
            };
            let (rows, columns) = (rows as usize, columns as usize);
            let from = At {
                first: 3,
                stride: columns + 1,
            };
            let to = At {
                first: 1,
                stride: columns + 2,
            };
            let x = random(1, 2 * from.room(rows));
            let mut expected = vec![f64::NAN; 2 * to.room(rows)];
            let codelet = with_fake_kernels(fft.codelet(), Precision::F32);
            let values: Vec<Value> = [
                &places([from.first])[..],
                &sizes([from.stride]),
                &places([to.first]),
                &sizes([to.stride, rows, columns]),
            ]
            .concat();
            let contents = [&x, &expected].map(|numbers| bytes(Precision::F32, numbers));
            let units = units.start..units.end.min(fft.units());
            let of_library = [u64::from(fft.length()), units.end - units.start, 1];
            let got = by_library(
                &codelet,
                (&of_library, FFT),
                units.clone(),
                &contents,
                &values,
            );
            right(&fft, &x, (from, to), units, &mut expected);
            compare(&numbers(Precision::F32, &got[1]), &expected);
        }
    }
}

#[test]
fn lines_are_transformed_in_place_and_again_with_the_same_plan() {
    let fake = fake();
    for along in [Along::Rows, Along::Columns] {
        let fft = Fft {
            rows: 8,
            columns: 4,
            along,
            precision: Precision::F32,
        };
        let at = At {
            first: 2,
            stride: 7,
        };
        let codelet = with_fake_kernels(fft.codelet(), Precision::F32);
        let of_library = [u64::from(fft.length()), fft.units(), 2];
        let (mut machine, queue) = served(&codelet, &of_library, FFT);
        let given = random(1, 2 * at.room(8));
        let memories = Memories::new(&mut machine, queue, &[bytes(Precision::F32, &given)]);
        let memory = memories.args[0];
        let values = [
            &[memory, memory][..],
            &places([at.first]),
            &sizes([at.stride]),
            &places([at.first]),
            &sizes([at.stride, 8, 4]),
        ]
        .concat();
        let handles = fake.handles();
        for _ in 0..2 {
            let command = Command::Launch(launch(&codelet, 0..fft.units(), values.clone()));
            enqueue(&mut machine, queue, command, &[]);
        }
        assert_eq!(fake.handles(), handles + 1, "a plan");
        let got = memories.read(&mut machine, queue);
        let mut once = given.clone();
        right(&fft, &given, (at, at), 0..fft.units(), &mut once);
        let mut twice = once.clone();
        right(&fft, &once, (at, at), 0..fft.units(), &mut twice);
        compare(&numbers(Precision::F32, &got[0]), &twice);
    }
}

//! The kernels of tile operations compared with loops in double precision, on tiles
//! with gaps between their rows.

use std::sync::Arc;

use half::{bf16, f16};
use pdawl_api::codelet::tile::{GemmTile, PotrfTile, SyrkTile, TrsmTile};
use pdawl_api::codelet::{Memory, NumberFormat, Precision, Value};

use super::harness::{Bench, contents, launch, read, write};
use crate::tile_cases::{Case, Layout, Number, Real};

/// Multiples of 16 bytes.
const LAYOUT: Layout = Layout { first: 8, gap: 4 };

/// Launches a case, and returns the result.
fn run<F: Number, T: Real>(bench: &mut Bench, case: &Case) -> Vec<T> {
    let queue = bench.queue();
    let mut args = Vec::new();
    let (inputs, result) = case.memories::<F, T>(LAYOUT);
    let inputs: Vec<_> = inputs.iter().map(|input| bench.host(input)).collect();
    let result = bench.host(&result);
    let mut buffer = None;
    for host in inputs.iter().chain([&result]) {
        let of_host = bench.buffer(host.bytes);
        bench.submit(queue, write(host, of_host), &[]);
        args.push(Value::Memory(Memory::Device(of_host)));
        buffer = Some(of_host);
    }
    args.extend(case.values(LAYOUT));
    let codelet = Arc::new(case.codelet.clone());
    bench.submit(queue, launch(&codelet, case.units, args), &[]);
    let buffer = buffer.expect("a matrix");
    let event = bench.submit(queue, read(buffer, &result), &[]);
    bench.done(event);
    bench.backend.free_queue(queue);
    contents(&result)
}

fn check<T: Real>(bench: &mut Bench, case: &Case) {
    case.check(LAYOUT, &run::<T, T>(bench, case));
}

/// Sizes that groups divide, that are multiples of 16 bytes, and others.
const PRODUCTS: [[u32; 3]; 4] = [[128, 64, 48], [68, 132, 20], [65, 130, 33], [1, 3, 1]];

fn products<T: Real>() {
    let mut bench = Bench::of_buffers();
    for [m, n, k] in PRODUCTS {
        let tile = GemmTile::new(T::PRECISION, m, n, k);
        check::<T>(&mut bench, &Case::gemm(tile));
        check::<T>(&mut bench, &Case::gemm(tile.factors(0.5, -2.0)));
        check::<T>(
            &mut bench,
            &Case::gemm(tile.transposed().factors(-1.0, 1.0)),
        );
    }
}

#[test]
fn products_of_single_precision_are_right() {
    products::<f32>();
}

#[test]
fn products_of_double_precision_are_right() {
    products::<f64>();
}

fn products_of_format<F: Number>(format: NumberFormat) {
    let mut bench = Bench::of_buffers();
    for [m, n, k] in &PRODUCTS[..3] {
        let tile = GemmTile::new(format, *m, *n, *k);
        for tile in [
            tile,
            tile.factors(0.5, -2.0),
            tile.transposed().factors(-1.0, 1.0),
        ] {
            let case = Case::gemm(tile);
            case.check(LAYOUT, &run::<F, f32>(&mut bench, &case));
        }
    }
    // 264 groups of 128 x 128.
    let case = Case::gemm(GemmTile::new(format, 127, 264 * 128 - 1, 9));
    case.check(LAYOUT, &run::<F, f32>(&mut bench, &case));
}

#[test]
fn products_of_half_precision_are_right() {
    products_of_format::<f16>(NumberFormat::F16);
}

#[test]
fn products_of_bfloat16_are_right() {
    products_of_format::<bf16>(NumberFormat::Bf16);
}

#[test]
fn products_of_tf32_are_right() {
    products_of_format::<f32>(NumberFormat::Tf32);
}

#[test]
fn products_of_many_groups_are_right() {
    let mut bench = Bench::of_buffers();
    // 264 groups of 128 x 128, and 900 of 64 x 64.
    let tile = GemmTile::new(Precision::F32, 127, 264 * 128 - 1, 9);
    check::<f32>(&mut bench, &Case::gemm(tile.factors(-1.0, 1.0)));
    let tile = GemmTile::new(Precision::F64, 63, 900 * 64 - 1, 17);
    check::<f64>(&mut bench, &Case::gemm(tile.factors(-1.0, 1.0)));
}

fn syrk<T: Real>(bench: &mut Bench, rows: u32, depth: u32) {
    for (alpha, beta) in [(-1.0, 1.0), (0.5, 0.0)] {
        let tile = SyrkTile {
            precision: T::PRECISION,
            rows,
            depth,
            alpha,
            beta,
            aligned: true,
        };
        check::<T>(bench, &Case::syrk(tile));
    }
}

#[test]
fn symmetric_updates_are_right() {
    let mut bench = Bench::of_buffers();
    for (rows, depth) in [(192, 64), (131, 35), (1, 1)] {
        syrk::<f32>(&mut bench, rows, depth);
        syrk::<f64>(&mut bench, rows, depth);
    }
}

fn trsm<T: Real>(bench: &mut Bench, rows: u32, columns: u32) {
    let tile = TrsmTile {
        precision: T::PRECISION,
        rows,
        columns,
    };
    check::<T>(bench, &Case::trsm(tile));
}

#[test]
fn triangular_solutions_are_right() {
    let mut bench = Bench::of_buffers();
    for (rows, columns) in [(128, 96), (131, 71), (15, 163), (1, 1)] {
        trsm::<f32>(&mut bench, rows, columns);
        trsm::<f64>(&mut bench, rows, columns);
    }
}

fn potrf<T: Real>(bench: &mut Bench, rows: u32) {
    let precision = T::PRECISION;
    check::<T>(bench, &Case::potrf(PotrfTile { precision, rows }));
}

#[test]
fn cholesky_factors_are_right() {
    let mut bench = Bench::of_buffers();
    for rows in [1, 2, 31, 33, 64, 97, 160, 227] {
        potrf::<f32>(&mut bench, rows);
        potrf::<f64>(&mut bench, rows);
    }
}

/// A case with the kernel for devices whose groups are small.
fn small(mut case: Case) -> Case {
    let kernel = case.codelet.opencl.take().expect("a kernel");
    case.codelet.opencl = Some(kernel.source.smaller().expect("a smaller one").clone());
    case
}

#[test]
fn operations_in_small_groups_are_right() {
    let mut bench = Bench::of_buffers();
    let gemm = |precision| GemmTile::new(precision, 68, 132, 20).factors(0.5, -2.0);
    check::<f32>(&mut bench, &small(Case::gemm(gemm(Precision::F32))));
    check::<f64>(
        &mut bench,
        &small(Case::gemm(gemm(Precision::F64).transposed())),
    );
    let precision = Precision::F32;
    let (rows, columns) = (131, 71);
    let (alpha, beta) = (-1.0, 1.0);
    let syrk = SyrkTile {
        precision,
        rows,
        depth: 35,
        alpha,
        beta,
        aligned: true,
    };
    let trsm = TrsmTile {
        precision,
        rows,
        columns,
    };
    for case in [
        Case::syrk(syrk),
        Case::trsm(trsm),
        Case::potrf(PotrfTile { precision, rows }),
    ] {
        check::<f32>(&mut bench, &small(case));
    }
}

#[test]
fn a_matrix_without_a_factor_leaves_numbers_that_are_not_finite() {
    let (precision, rows) = (Precision::F64, 65);
    let case = Case::without_factor(PotrfTile { precision, rows });
    let result = run::<f64, f64>(&mut Bench::of_buffers(), &case);
    assert!(!case.at(LAYOUT, &result, 64, 64).is_finite());
}

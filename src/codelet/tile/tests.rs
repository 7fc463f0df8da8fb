//! Every operation in both precisions, against loops in double precision.

use super::*;
use crate::codelet::HostValue;
use crate::codelet::host::run_on_threads;
use crate::tile_cases::{Case, Layout, Real};

/// Sizes around those of blocks and leaves.
const SIZES: [u32; 9] = [1, 2, 31, 33, 64, 65, 97, 130, 163];

const LAYOUT: Layout = Layout { first: 5, gap: 3 };

/// Runs a case, some units at once and not in their order, and returns the result.
fn run<T: Real>(case: &Case) -> Vec<T> {
    let mut memories = case.memories::<T>(LAYOUT);
    let mut args: Vec<HostValue> = (memories.iter_mut())
        .map(|memory| HostValue::Memory {
            address: memory.as_mut_ptr().cast(),
            bytes: size_of_val(&memory[..]) as u64,
        })
        .collect();
    let values = case.values(LAYOUT);
    args.extend(values.iter().map(|value| value.plain().unwrap()));
    let host = case.codelet.host.as_ref().unwrap();
    let (first, last) = (case.units / 3, 2 * case.units / 3);
    for tile in [last..case.units, 0..first, first..last] {
        // SAFETY: the memories hold the matrices, and no other thread uses them.
        unsafe { host.run(&args, 0, tile) }
    }
    memories.pop().unwrap()
}

fn check<T: Real>(case: &Case) {
    case.check(LAYOUT, &run::<T>(case));
}

/// As [`check`], by threads of a pool.
fn check_on_threads<T: Real>(case: &Case) {
    let mut memories = case.memories::<T>(LAYOUT);
    let mut args: Vec<HostValue> = (memories.iter_mut())
        .map(|memory| HostValue::Memory {
            address: memory.as_mut_ptr().cast(),
            bytes: size_of_val(&memory[..]) as u64,
        })
        .collect();
    let values = case.values(LAYOUT);
    args.extend(values.iter().map(|value| value.plain().unwrap()));
    let Some(HostCode::Shared(kernel)) = case.codelet.host else {
        panic!("it divides its work by itself");
    };
    run_on_threads(kernel, &args, case.units, THREADS);
    case.check(LAYOUT, &memories.pop().unwrap());
}

const THREADS: usize = 3;

/// Three sizes, of which each takes every value.
fn sizes() -> impl Iterator<Item = [u32; 3]> {
    (0..SIZES.len())
        .flat_map(|i| [(i, i), (i + 4, i + 7), (i + 1, i + 3)].map(|(j, k)| [i, j, k]))
        .map(|of| of.map(|at| SIZES[at % SIZES.len()]))
}

/// Factors of products; the first leaves C unread.
const FACTORS: [(f64, f64); 3] = [(1.0, 0.0), (-1.0, 1.0), (0.5, -2.0)];

fn gemm<T: Real>() {
    for [m, n, k] in sizes() {
        for (alpha, beta) in FACTORS {
            let tile = GemmTile::new(T::PRECISION, m, n, k).factors(alpha, beta);
            check::<T>(&Case::gemm(tile));
            check::<T>(&Case::gemm(tile.transposed()));
        }
    }
}

fn syrk<T: Real>() {
    for ([rows, depth, _], (alpha, beta)) in sizes().zip(FACTORS.into_iter().cycle()) {
        check::<T>(&Case::syrk(SyrkTile {
            precision: T::PRECISION,
            rows,
            depth,
            alpha,
            beta,
        }));
    }
}

fn trsm<T: Real>() {
    for [rows, columns, _] in sizes() {
        check::<T>(&Case::trsm(TrsmTile {
            precision: T::PRECISION,
            rows,
            columns,
        }));
    }
}

fn potrf<T: Real>() {
    for rows in SIZES {
        let precision = T::PRECISION;
        check::<T>(&Case::potrf(PotrfTile { precision, rows }));
    }
}

/// Sizes that are large enough to be divided.
fn on_threads<T: Real>() {
    let precision = T::PRECISION;
    for (rows, columns, depth) in [(301, 257, 211), (33, 900, 400), (900, 33, 400)] {
        let tile = GemmTile::new(precision, rows, columns, depth);
        check_on_threads::<T>(&Case::gemm(tile));
        check_on_threads::<T>(&Case::gemm(tile.transposed().factors(0.5, -2.0)));
    }
    check_on_threads::<T>(&Case::syrk(SyrkTile {
        precision,
        rows: 331,
        depth: 157,
        alpha: -1.0,
        beta: 1.0,
    }));
    check_on_threads::<T>(&Case::trsm(TrsmTile {
        precision,
        rows: 333,
        columns: 245,
    }));
    let rows = 515;
    check_on_threads::<T>(&Case::potrf(PotrfTile { precision, rows }));
}

#[test]
fn operations_divided_among_threads_are_right() {
    on_threads::<f32>();
    on_threads::<f64>();
}

#[test]
fn products_are_right() {
    gemm::<f32>();
    gemm::<f64>();
}

#[test]
fn symmetric_updates_are_right() {
    syrk::<f32>();
    syrk::<f64>();
}

#[test]
fn triangular_solutions_are_right() {
    trsm::<f32>();
    trsm::<f64>();
}

#[test]
fn cholesky_factors_are_right() {
    potrf::<f32>();
    potrf::<f64>();
}

#[test]
fn a_matrix_without_a_factor_leaves_numbers_that_are_not_finite() {
    let (precision, rows) = (Precision::F64, 65);
    let case = Case::without_factor(PotrfTile { precision, rows });
    let found = case.at(LAYOUT, &run::<f64>(&case), 64, 64);
    assert!(!found.is_finite());
}

#[test]
fn operations_are_counted_as_lapack_counts_them() {
    let (precision, n) = (Precision::F64, 100);
    // A factorisation of 2 x 2 tiles has the operations of one of twice the rows.
    let whole = PotrfTile {
        precision,
        rows: 2 * n,
    };
    let parts = 2.0 * PotrfTile { precision, rows: n }.cost().flops
        + TrsmTile {
            precision,
            rows: n,
            columns: n,
        }
        .cost()
        .flops
        + SyrkTile {
            precision,
            rows: n,
            depth: n,
            alpha: -1.0,
            beta: 1.0,
        }
        .cost()
        .flops;
    assert!((whole.cost().flops / parts - 1.0).abs() < 1e-12);
}

//! Operations on tiles by the host: each in both precisions, against loops in double precision.

use half::{bf16, f16};
use pdawl_api::codelet::tile::{GemmTile, PotrfTile, SyrkTile, TrsmTile};
use pdawl_api::codelet::{HostValue, NumberFormat, Precision};

use crate::tile_cases::{Case, Layout, Number, Real};

/// Sizes around those of blocks and leaves.
const SIZES: [u32; 9] = [1, 2, 31, 33, 64, 65, 97, 130, 163];

const LAYOUT: Layout = Layout { first: 5, gap: 3 };

/// A memory as an argument.
fn argument<T>(memory: &mut [T]) -> HostValue {
    HostValue::Memory {
        address: memory.as_mut_ptr().cast(),
        bytes: size_of_val(memory) as u64,
    }
}

/// The arguments of a case.
fn arguments<F: Number, T: Real>(
    case: &Case,
    (inputs, result): (&mut [Vec<F>], &mut [T]),
) -> Vec<HostValue> {
    let values = case.values(LAYOUT);
    (inputs.iter_mut().map(|input| argument(input)))
        .chain([argument(result)])
        .chain(values.iter().map(|value| value.plain().unwrap()))
        .collect()
}

/// Runs a case with inputs of F, some units at once and not in their order, and returns the
/// result.
fn run<F: Number, T: Real>(case: &Case) -> Vec<T> {
    let (mut inputs, mut result) = case.memories::<F, T>(LAYOUT);
    let args = arguments(case, (&mut inputs, &mut result));
    let host = case.codelet.host.as_ref().unwrap();
    let (first, last) = (case.units / 3, 2 * case.units / 3);
    for tile in [last..case.units, 0..first, first..last] {
        // SAFETY: the memories hold the matrices, and no other thread uses them.
        unsafe { host.run(&args, 0, tile) }
    }
    result
}

fn check<T: Real>(case: &Case) {
    case.check(LAYOUT, &run::<T, T>(case));
}

/// As [`check`], by threads of a pool.
fn check_on_threads<F: Number, T: Real>(case: &Case) {
    let (mut inputs, mut result) = case.memories::<F, T>(LAYOUT);
    let args = arguments(case, (&mut inputs, &mut result));
    let host = case.codelet.host.as_ref().unwrap();
    assert!(host.is_shared(), "it divides its work by itself");
    let args = Arguments(args);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(THREADS);
    let pool = pool.build().expect("threads");
    // SAFETY: the memories hold the matrices, and no other thread uses them.
    pool.install(|| unsafe { host.run_with(args.get(), 0, 0..case.units, THREADS) });
    case.check(LAYOUT, &result);
}

/// Arguments that threads may have.
struct Arguments(Vec<HostValue>);

// SAFETY: their memories are there until the threads return.
unsafe impl Sync for Arguments {}

impl Arguments {
    fn get(&self) -> &[HostValue] {
        &self.0
    }
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
            aligned: true,
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
        check_on_threads::<T, T>(&Case::gemm(tile));
        check_on_threads::<T, T>(&Case::gemm(tile.transposed().factors(0.5, -2.0)));
    }
    check_on_threads::<T, T>(&Case::syrk(SyrkTile {
        precision,
        rows: 331,
        depth: 157,
        alpha: -1.0,
        beta: 1.0,
        aligned: true,
    }));
    check_on_threads::<T, T>(&Case::trsm(TrsmTile {
        precision,
        rows: 333,
        columns: 245,
    }));
    let rows = 515;
    check_on_threads::<T, T>(&Case::potrf(PotrfTile { precision, rows }));
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

/// Products of a format, whose depth may be several panels.
fn gemm_of_format<F: Number>(format: NumberFormat) {
    let deep = [[3, 5, 512], [2, 1, 1030], [33, 20, 700]];
    for [m, n, k] in sizes().chain(deep) {
        for (alpha, beta) in FACTORS {
            let tile = GemmTile::new(format, m, n, k).factors(alpha, beta);
            for tile in [tile, tile.transposed()] {
                let case = Case::gemm(tile);
                case.check(LAYOUT, &run::<F, f32>(&case));
            }
        }
    }
    for (rows, columns, depth) in [(301, 257, 611), (33, 900, 400)] {
        let tile = GemmTile::new(format, rows, columns, depth);
        check_on_threads::<F, f32>(&Case::gemm(tile));
        check_on_threads::<F, f32>(&Case::gemm(tile.transposed().factors(0.5, -2.0)));
    }
}

#[test]
fn products_of_formats_of_fewer_bits_are_right() {
    gemm_of_format::<f16>(NumberFormat::F16);
    gemm_of_format::<bf16>(NumberFormat::Bf16);
    gemm_of_format::<f32>(NumberFormat::Tf32);
}

#[test]
fn products_of_tf32_have_rounded_factors() {
    let case = Case::gemm(GemmTile::new(NumberFormat::Tf32, 40, 40, 40));
    let of_f32 = Case::gemm(GemmTile::new(NumberFormat::F32, 40, 40, 40));
    let [found, right] = [&case, &of_f32].map(run::<f32, f32>);
    let is_far = |(found, right): (&f32, &f32)| (found - right).abs() > 1e-5;
    assert!(found.iter().zip(&right).any(is_far));
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
    let found = case.at(LAYOUT, &run::<f64, f64>(&case), 64, 64);
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
            aligned: true,
        }
        .cost()
        .flops;
    assert!((whole.cost().flops / parts - 1.0).abs() < 1e-12);
}

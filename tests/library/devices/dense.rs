//! Dense matrices on the host and on OpenCL: every variant of every codelet
//! compared with the reference in double precision, for sizes that are multiples
//! of a tile and others.

use pdawl_api::codelet::NumberFormat;
use pdawl_api::codelet::add_norm::AddNorm;
use pdawl_api::codelet::gemm::Gemm;
use pdawl_api::codelet::softmax::Softmax;
use pdawl_api::codelet::transpose::Transpose;
use pdawl_api::runtime::{DeviceId, Devices};

use crate::codelet_cases::Case;
use crate::pocl::open;

/// Computes cases on the host and on the OpenCL device with device memory.
fn right(cases: Vec<Case>) {
    let mut runtime = open("host:1,cpu:1=own");
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    for case in cases {
        for device in 0..runtime.devices().len() {
            case.assert_right(&mut runtime, DeviceId(device), seed);
        }
    }
}

/// A product with only the tiles that products choose by their size. How elements
/// are read and written depends on the product's sizes, but not on the tile, whose
/// index arithmetic is tested with every tile on sizes that need all guards.
fn with_few_tiles(gemm: Gemm) -> Case {
    let mut case = Case::gemm(gemm);
    let all = std::mem::take(&mut case.variants).into_iter();
    case.variants = all.skip(2).step_by(3).collect();
    case
}

#[test]
fn products_are_right_with_every_tile() {
    // A multiple of most tiles; a multiple of four only; and odd, different sizes.
    right(vec![
        Case::gemm(Gemm::square(128)),
        with_few_tiles(Gemm::square(60).batch(2)),
        Case::gemm(Gemm {
            rows: 67,
            columns: 131,
            depth: 29,
            ..Gemm::square(1).batch(2)
        }),
    ]);
}

#[test]
fn products_with_a_transposed_operand_are_right() {
    right(vec![
        with_few_tiles(Gemm::square(128).transposed()),
        with_few_tiles(Gemm::square(36).batch(3).transposed().common_a()),
        Case::gemm(Gemm {
            rows: 1,
            columns: 37,
            depth: 129,
            ..Gemm::square(1).transposed()
        }),
    ]);
}

#[test]
fn a_product_of_single_numbers_is_right() {
    right(vec![Case::gemm(Gemm::square(1))]);
}

/// A product with the tile that it chooses: formats differ in how elements are read and written.
fn with_chosen_tile(gemm: Gemm) -> Case {
    let mut case = Case::gemm(gemm);
    case.variants.retain(|variant| variant.chosen);
    case
}

#[test]
fn products_of_every_format_are_right() {
    for format in [NumberFormat::F16, NumberFormat::Bf16, NumberFormat::Tf32] {
        // Without guards, with guards of fours, and of single numbers.
        let gemm = Gemm::square(128).format(format);
        let fours = Gemm {
            rows: 60,
            columns: 60,
            depth: 36,
            ..gemm.batch(3).common_a()
        };
        let odd = Gemm {
            rows: 67,
            columns: 131,
            depth: 529,
            ..gemm.batch(2)
        };
        right(vec![
            with_chosen_tile(gemm),
            with_chosen_tile(gemm.transposed()),
            with_chosen_tile(fours),
            with_chosen_tile(odd),
            with_chosen_tile(odd.transposed()),
        ]);
    }
}

#[test]
fn rows_and_transpositions_are_right() {
    for format in NumberFormat::ALL {
        rows_and_transpositions_of(format);
    }
}

fn rows_and_transpositions_of(format: NumberFormat) {
    let softmax = |rows, width, factor| {
        Case::softmax(Softmax {
            format,
            rows,
            width,
            factor,
        })
    };
    let transpose = |rows, columns, batch| {
        Case::transpose(Transpose {
            format,
            rows,
            columns,
            batch,
        })
    };
    let add_norm = |rows, width, stacks: &[u32]| {
        Case::add_norm(AddNorm {
            format,
            rows,
            width,
            stacks: stacks.to_vec(),
        })
    };
    right(vec![
        softmax(1, 1, 1.0),
        softmax(7, 64, 0.125),
        // These overflow unless the greatest value is subtracted.
        softmax(3, 131, 300.0),
        transpose(1, 1, 1),
        transpose(37, 64, 2),
        transpose(101, 3, 1),
        add_norm(1, 1, &[1]),
        add_norm(5, 67, &[1, 3, 2]),
        add_norm(4, 300, &[1; 64]),
    ]);
}

//! All codelets that have kernels, with every option that changes them.

use std::collections::BTreeSet;

use crate::codelet::add_norm::AddNorm;
use crate::codelet::convolution;
use crate::codelet::fft::{Along, Fft};
use crate::codelet::gemm::{Gemm, TILES};
use crate::codelet::lu::{LuExchange, LuPanel, LuRow};
use crate::codelet::mix::Mix;
use crate::codelet::stencil::{self, Dimensions, Rule};
use crate::codelet::tile::{GemmTile, PotrfTile, SyrkTile, TrsmTile};
use crate::codelet::{
    Codelet, NumberFormat, Precision, copy, rows, softmax, spmv, transpose, zeros,
};

const PRECISIONS: [Precision; 2] = [Precision::F32, Precision::F64];

/// The codelets, and the bytes of each of their kernels' arguments.
pub(super) fn all() -> Vec<(Codelet, Vec<u64>)> {
    let mut all = vec![
        (copy::codelet(), of("mmu")),
        (rows::codelet(), of("mmUUUUUU")),
        (zeros::codelet(), of("mU")),
    ];
    for precision in PRECISIONS {
        add_of_precision(precision, &mut all);
    }
    for format in NumberFormat::ALL {
        add_of_format(format, &mut all);
    }
    for tile in &TILES {
        for gemm in [Gemm::square(512), Gemm::square(101).transposed()] {
            all.push((gemm.codelet_with(tile), of("mmmuuuUUUUU")));
        }
    }
    // Guards, and rows that begin at multiples of four.
    all.push((Gemm::square(100).codelet(), of("mmmuuuUUUUU")));
    for (size, channels) in [(1, 1), (5, 3), (31, 4), (63, 4)] {
        all.push((convolution::codelet(size, channels), of("mmmUuUuuuuuuuuu")));
    }
    for along in [Along::Rows, Along::Columns] {
        for (length, precision) in [(2, Precision::F32), (64, Precision::F64)]
            .into_iter()
            .chain([Precision::F32, Precision::F64].map(|precision| (4096, precision)))
        {
            let fft = Fft {
                rows: length,
                columns: length,
                along,
                precision,
            };
            all.push((fft.codelet(), of("mmUuUuuu")));
        }
    }
    let mix = Mix {
        reads: 1,
        updates: 2,
        writes: 1,
    };
    all.push((mix.codelet(), of("UuumUmUmUmU")));
    all
}

/// Products whose factors are stored in a format, with and without guards and gaps.
fn add_of_format(format: NumberFormat, all: &mut Vec<(Codelet, Vec<u64>)>) {
    for size in [512, 510, 4096] {
        let tile = GemmTile::new(format, size, size, size);
        for tile in [tile, tile.transposed(), tile.unaligned()] {
            all.push((tile.codelet(), of("mmmuuuuuuUUUuu")));
        }
    }
    all.push((softmax::codelet(format), of("mmuu")));
    all.push((transpose::codelet(format), of("mmuu")));
    for stacks in [vec![1], vec![3, 1]] {
        let more = ["m", "mm"][stacks.len() - 1].to_owned() + ["u", "uu"][stacks.len() - 1];
        let codelet = AddNorm {
            format,
            rows: 3,
            width: 5,
            stacks,
        };
        all.push((codelet.codelet(), of(&format!("mmuuU{more}"))));
    }
    for size in [512, 510, 101] {
        let gemm = Gemm::square(size).format(format);
        for gemm in [gemm, gemm.transposed()] {
            all.push((gemm.codelet(), of("mmmuuuUUUUU")));
        }
    }
}

fn add_of_precision(precision: Precision, all: &mut Vec<(Codelet, Vec<u64>)>) {
    let real = match precision {
        Precision::F32 => "u",
        Precision::F64 => "U",
    };
    let with_reals = |kinds: &str| of(&kinds.replace('r', real));
    for dimensions in [Dimensions::Two, Dimensions::Three] {
        let numbers = "r".repeat(dimensions.neighbourhood().len());
        for (rule, numbers) in [(Rule::Mean, "r"), (Rule::Weighted, &*numbers)] {
            let codelet = stencil::codelet(dimensions, precision, rule);
            all.push((codelet, with_reals(&format!("mmuuuuuuuuu{numbers}"))));
            let codelet = stencil::changes(dimensions, precision, rule);
            all.push((codelet, with_reals(&format!("mmuuuuuuuuu{numbers}m"))));
            let codelet = stencil::fold_changes(dimensions, precision, rule);
            all.push((codelet, of("mmuu")));
        }
    }
    all.push((spmv::codelet(precision), with_reals("mmmmmmmmUuuurru")));
    all.push((LuPanel::codelet(precision), of("mmuuuUuUm")));
    all.push((LuRow::codelet(precision), of("mmmuuuuUuUUu")));
    all.push((LuExchange::codelet(precision), of("mmuuuUUum")));
    // Few and many groups, with and without guards and gaps.
    for size in [512, 510, 4096] {
        let tile = GemmTile::new(precision, size, size, size);
        for tile in [tile, tile.transposed(), tile.unaligned()] {
            all.push((tile.codelet(), with_reals("mmmuuuuuuUUUrr")));
        }
        let syrk = SyrkTile {
            precision,
            rows: size,
            depth: size,
            alpha: -1.0,
            beta: 1.0,
            aligned: true,
        };
        all.push((syrk.codelet(), with_reals("mmuuuuUUrr")));
    }
    let trsm = TrsmTile {
        precision,
        rows: 64,
        columns: 64,
    };
    all.push((trsm.codelet(), of("mmuuuuUU")));
    let potrf = PotrfTile {
        precision,
        rows: 64,
    };
    all.push((potrf.codelet(), of("muuU")));
}

/// Bytes of arguments: of memory (`m`), and of numbers of 32 (`u`) and 64 bits (`U`).
fn of(kinds: &str) -> Vec<u64> {
    kinds
        .chars()
        .map(|kind| if kind == 'u' { 4 } else { 8 })
        .collect()
}

/// No kernel of the project is forgotten here.
#[test]
fn every_source_is_a_codelets() {
    let used: BTreeSet<String> = all()
        .iter()
        .map(|(codelet, _)| codelet.opencl.as_ref().expect("it has a kernel"))
        .map(|opencl| opencl.source.file().to_owned())
        .collect();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernels");
    let files = std::fs::read_dir(folder).expect("the project's kernels");
    let files: BTreeSet<String> = files
        .map(|file| {
            file.expect("a file")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .filter(|name| name.ends_with(".cl"))
        .map(|name| format!("kernels/{name}"))
        .collect();
    assert_eq!(used, files);
}

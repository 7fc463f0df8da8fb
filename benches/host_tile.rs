//! Operations on tiles of 960 rows on one core, in operations a second: the product
//! of the tasks of Gonthier et al. and the operations of a Cholesky factorisation.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pdawl_api::codelet::tile::{GemmTile, PotrfTile, SyrkTile, TrsmTile};
use pdawl_api::codelet::{Codelet, Cost, HostValue, Precision, Value};

const ROWS: u32 = 960;

/// What is measured.
struct Work {
    name: &'static str,
    codelet: Codelet,
    units: u64,
    cost: Cost,
    /// Rows and columns of each memory.
    sizes: Vec<(u32, u32)>,
    values: Vec<Value>,
}

fn works(precision: Precision) -> Vec<Work> {
    let rows = ROWS;
    let gemm = |name, depth, transposed| {
        let mut tile = GemmTile::new(precision, rows, rows, depth).factors(-1.0, 1.0);
        tile.transposed = transposed;
        Work {
            name,
            codelet: tile.codelet(),
            units: tile.units(),
            cost: tile.cost(),
            sizes: vec![(rows, depth), (depth, rows), (rows, rows)],
            values: tile.values().to_vec(),
        }
    };
    let syrk = SyrkTile {
        precision,
        rows,
        depth: rows,
        alpha: -1.0,
        beta: 1.0,
        aligned: true,
    };
    let trsm = TrsmTile {
        precision,
        rows,
        columns: rows,
    };
    let potrf = PotrfTile { precision, rows };
    let square = (rows, rows);
    vec![
        gemm("gemm 2-D", 4 * rows, false),
        gemm("gemm", rows, false),
        gemm("gemm nt", rows, true),
        Work {
            name: "syrk",
            codelet: syrk.codelet(),
            units: syrk.units(),
            cost: syrk.cost(),
            sizes: vec![square; 2],
            values: syrk.values().to_vec(),
        },
        Work {
            name: "trsm",
            codelet: trsm.codelet(),
            units: trsm.units(),
            cost: trsm.cost(),
            sizes: vec![square; 2],
            values: trsm.values().to_vec(),
        },
        Work {
            name: "potrf",
            codelet: potrf.codelet(),
            units: 1,
            cost: potrf.cost(),
            sizes: vec![square],
            values: potrf.values().to_vec(),
        },
    ]
}

/// A tile with a large diagonal, which every operation leaves finite.
fn tile(precision: Precision, (rows, columns): (u32, u32)) -> Vec<u64> {
    let number = |at: usize| match at.is_multiple_of(columns as usize + 1) {
        true => 1e4,
        false => (at % 7) as f64 / 100.0,
    };
    let count = rows as usize * columns as usize;
    match precision {
        Precision::F64 => (0..count).map(|at| number(at).to_bits()).collect(),
        Precision::F32 => {
            let singles: Vec<f32> = (0..count).map(|at| number(at) as f32).collect();
            bytemuck::pod_collect_to_vec(&singles)
        }
    }
}

fn rates(c: &mut Criterion) {
    let mut group = c.benchmark_group("host_tile");
    group.sample_size(10);
    for precision in [Precision::F32, Precision::F64] {
        for work in works(precision) {
            let first: Vec<Vec<u64>> = (work.sizes.iter())
                .map(|size| tile(precision, *size))
                .collect();
            let mut memories = first.clone();
            let memory = memories.iter_mut().map(|memory| HostValue::Memory {
                address: memory.as_mut_ptr().cast(),
                bytes: size_of_val(&memory[..]) as u64,
            });
            let mut args: Vec<HostValue> = memory.collect();
            args.extend(work.values.iter().filter_map(|value| value.plain()));
            let host = work.codelet.host.as_ref().expect("a host implementation");
            group.throughput(Throughput::Elements(work.cost.flops as u64));
            group.bench_function(BenchmarkId::new(work.name, precision.name()), |bencher| {
                bencher.iter(|| {
                    // Operations in place begin with the same numbers each time.
                    let (last, first) = (memories.last_mut(), first.last());
                    if let (Some(last), Some(first)) = (last, first) {
                        last.copy_from_slice(first);
                    }
                    // SAFETY: the memories hold the tiles, and only this call uses
                    // them.
                    unsafe { host.run(black_box(&args), 0, 0..work.units) }
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, rates);
criterion_main!(benches);

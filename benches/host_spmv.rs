//! Products beside the copy that bounds them: matrices of several hundred
//! megabytes, on one and on all cores, one pinned thread a core.
//!
//! Both are reported in bytes a second, those that must be read and written at
//! least: an entry's column and value, a row's end and result, and the vector
//! once. A last line, from alternating runs, prints the product's part of the
//! copy's bandwidth.

use std::hint::black_box;
use std::ops::Range;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use memmap2::{Advice, MmapMut};
use pdawl::codelet::{Codelet, HostValue, copy, spmv};
use pdawl::matrix::Csr;
use pdawl::workload::Divisible;
use pdawl::workload::spmv::{Options, Spmv};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

const ENTRIES: u64 = 36 << 20;
const COPY_UNIT: u64 = 64 << 10;
const COPY_UNITS: u64 = 4096;

/// A matrix of rows of these lengths in turns, `spread` columns apart around
/// the diagonal.
fn banded(lengths: &[u32], spread: u32) -> Csr {
    let mean = lengths.iter().sum::<u32>() as u64 / lengths.len() as u64;
    let rows = (ENTRIES / mean) as u32;
    let (mut starts, mut columns) = (vec![0], Vec::new());
    for row in 0..rows {
        let length = lengths[row as usize % lengths.len()];
        let first = (row.saturating_sub(length / 2 * spread)).min(rows - length * spread);
        columns.extend((0..length).map(|i| first + i * spread));
        starts.push(columns.len() as u64);
    }
    let values = vec![1.0 / 3.0; columns.len()];
    Csr::new(rows, rows, starts, columns, values).expect("a matrix")
}

/// Memory in huge pages where the system has them.
fn memory(bytes: u64) -> MmapMut {
    let mut map = MmapMut::map_anon(bytes.max(1) as usize).expect("memory");
    #[cfg(target_os = "linux")]
    let _ = map.advise(Advice::HugePage);
    map.fill(1);
    map
}

/// A codelet with its arguments, and the memory that they name.
struct Case {
    name: &'static str,
    codelet: Codelet,
    args: Vec<HostValue>,
    units: u64,
    bytes: f64,
    _memory: Vec<MmapMut>,
}

fn value(map: &mut MmapMut) -> HostValue {
    HostValue::Memory {
        address: map.as_mut_ptr(),
        bytes: map.len() as u64,
    }
}

fn copying() -> Case {
    let mut maps = vec![
        memory(COPY_UNIT * COPY_UNITS),
        memory(COPY_UNIT * COPY_UNITS),
    ];
    let mut args: Vec<HostValue> = maps.iter_mut().map(value).collect();
    args.push(HostValue::U32(COPY_UNIT as u32));
    Case {
        name: "copy",
        codelet: copy::codelet(),
        args,
        units: COPY_UNITS,
        bytes: copy::cost(COPY_UNITS, COPY_UNIT as u32).bytes,
        _memory: maps,
    }
}

fn product(name: &'static str, matrix: Csr) -> Case {
    let spmv = Spmv::new(name, Arc::new(matrix), Options::default()).expect("a product");
    let (matrix, arrangement) = (spmv.matrix(), spmv.arrangement());
    let (rows, entries) = (u64::from(matrix.rows()), matrix.nonzeros());
    let units = arrangement.units();
    let sizes = [
        rows * 8,
        rows * 8,
        entries * 4,
        entries * 8,
        rows * 2,
        (units + 1) * 8,
        (units + 1) * 4,
        units * 8,
    ];
    let mut maps: Vec<MmapMut> = sizes.into_iter().map(memory).collect();
    spmv.write_first(0..rows, &mut maps[0]);
    let (mut columns, mut values) = (vec![0; entries as usize], vec![0; entries as usize * 8]);
    spmv.write_columns(0..units, &mut columns);
    spmv.write_values(0..units, &mut values);
    maps[2].copy_from_slice(bytemuck::cast_slice(&columns));
    maps[3].copy_from_slice(&values);
    spmv.write_ends(0..units, bytemuck::cast_slice_mut(&mut maps[4]));
    maps[5].copy_from_slice(bytemuck::cast_slice(arrangement.unit_entries()));
    maps[6].copy_from_slice(bytemuck::cast_slice(arrangement.unit_rows()));
    let mut args: Vec<HostValue> = maps.iter_mut().map(value).collect();
    args.extend([
        HostValue::U64(entries),
        HostValue::U32(rows as u32),
        HostValue::U32(arrangement.pieces()),
        HostValue::U32(0),
        HostValue::F64(1.0),
        HostValue::U32(0),
    ]);
    Case {
        name,
        codelet: spmv::codelet(spmv.options().precision),
        args,
        units,
        bytes: spmv.cost(&(0..units)).bytes,
        _memory: maps,
    }
}

/// Arguments that several threads may read.
struct Args<'a>(&'a [HostValue]);

// SAFETY: the memory behind the arguments outlives the threads, which write
// disjoint parts of it.
unsafe impl Sync for Args<'_> {}

/// The time that a pinned thread on each of `cores` takes for a pass over all
/// units, from the first one's begin to the last one's end.
fn pass(case: &Case, cores: &[usize]) -> Duration {
    let kernel = case.codelet.host.expect("a native kernel");
    let barrier = Barrier::new(cores.len());
    let epoch = Instant::now();
    let args = Args(&case.args);
    let tile = |i: usize| -> Range<u64> {
        let at = |i: usize| case.units * i as u64 / cores.len() as u64;
        at(i)..at(i + 1)
    };
    let spans: Vec<(Duration, Duration)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (cores.iter().enumerate())
            .map(|(i, core)| {
                let (barrier, args, tile) = (&barrier, &args, tile(i));
                scope.spawn(move || {
                    let mut set = CpuSet::new();
                    set.set(*core);
                    sched_setaffinity(None, &set).expect("pinning to an allowed core");
                    barrier.wait();
                    let began = epoch.elapsed();
                    // SAFETY: the arguments are the codelet's, the memory is as
                    // long as they say, and tiles are disjoint.
                    unsafe { kernel(args.0, 0, tile) };
                    (began, epoch.elapsed())
                })
            })
            .collect();
        (workers.into_iter())
            .map(|worker| worker.join().expect("a pass"))
            .collect()
    });
    let began = spans.iter().map(|span| span.0).min().unwrap_or_default();
    let ended = spans.iter().map(|span| span.1).max().unwrap_or_default();
    black_box(ended - began)
}

fn products_and_copy(criterion: &mut Criterion) {
    let allowed = sched_getaffinity(None).expect("the affinity mask");
    let cores: Vec<usize> = (0..CpuSet::MAX_CPU)
        .filter(|cpu| allowed.is_set(*cpu))
        .collect();
    let copy = copying();
    let products = [
        product("rows-of-12", banded(&[12], 3)),
        product("rows-of-64", banded(&[64], 3)),
        product("rows-of-3", banded(&[3], 1)),
        product(
            "rows-of-1-to-9",
            banded(&[5, 1, 9, 2, 8, 3, 7, 4, 6, 5, 5], 2),
        ),
    ];
    let mut counts = vec![1, cores.len()];
    counts.dedup();
    let mut group = criterion.benchmark_group("host-spmv-f64");
    group.sample_size(10);
    for threads in counts.iter().copied() {
        for case in products.iter().chain([&copy]) {
            group.throughput(Throughput::Bytes(case.bytes as u64));
            group.bench_function(BenchmarkId::new(case.name, threads), |bencher| {
                bencher
                    .iter_custom(|passes| (0..passes).map(|_| pass(case, &cores[..threads])).sum());
            });
        }
    }
    group.finish();
    for threads in counts {
        for case in &products {
            let mut rates = [Vec::new(), Vec::new()];
            for _ in 0..11 {
                for (rates, case) in rates.iter_mut().zip([&copy, case]) {
                    rates.push(case.bytes / pass(case, &cores[..threads]).as_secs_f64());
                }
            }
            let [copied, computed] = rates.map(|mut rates| {
                rates.sort_by(f64::total_cmp);
                rates[rates.len() / 2]
            });
            println!(
                "{threads} threads: {} at {:.3} of the copy's bandwidth ({:.1} of {:.1} GB/s)",
                case.name,
                computed / copied,
                computed / 1e9,
                copied / 1e9,
            );
        }
    }
}

criterion_group!(benches, products_and_copy);
criterion_main!(benches);

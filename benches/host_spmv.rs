//! Sparse matrix products on the host compared with memory bandwidth: matrices of
//! nearly a gigabyte, on one and on all cores, with one pinned thread a core.
//!
//! All are reported in bytes a second, counting the bytes that must be read and
//! written at least: an entry's column and value, a row's end and result, and the
//! vector once. Nearly all of them are read, while a copy writes half of its bytes
//! past the caches without waiting; so the upper bound is a plain read of memory.
//! The last lines, from alternating runs, print the product's speed relative to a
//! read and to a copy.

use std::hint::black_box;
use std::ops::Range;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use memmap2::{Advice, MmapMut};
use pdawl_api::codelet::{Codelet, HostCode, HostValue, copy, spmv};
use pdawl_api::matrix::Csr;
use pdawl_api::workload::Divisible;
use pdawl_api::workload::spmv::{Options, Spmv};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// More than the caches hold, even if they have 300 MiB.
const ENTRIES: u64 = 64 << 20;
const COPY_UNIT: u64 = 64 << 10;
const COPY_UNITS: u64 = 4096;

/// Half a page: loads and stores at equal offsets within pages delay each other.
const SHIFT: usize = 2048;

/// Distance of prefetches, in bytes.
const AHEAD: usize = 4096;

/// Reads the units of a memory.
///
/// # Safety
/// That of a codelet's kernel; the arguments are a memory and a unit's bytes.
unsafe fn read(args: &[HostValue], _first: u64, units: Range<u64>) {
    let (HostValue::Memory { address, .. }, HostValue::U32(unit)) = (args[0], args[1]) else {
        unreachable!("a memory and the bytes of a unit")
    };
    let unit = unit as usize;
    let length = (units.end - units.start) as usize * unit;
    // SAFETY: the memory has the units; the fastest vectors are not needed, and
    // a prefetch reads nothing that the program sees.
    let bytes = unsafe {
        std::slice::from_raw_parts(
            address.add(units.start as usize * unit).cast::<u64>(),
            length / 8,
        )
    };
    let mut sums = [0u64; 8];
    for line in bytes.chunks_exact(sums.len()) {
        #[cfg(target_arch = "x86_64")]
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast::<i8>().wrapping_add(AHEAD));
        }
        for (sum, number) in sums.iter_mut().zip(line) {
            *sum = sum.wrapping_add(*number);
        }
    }
    black_box(sums);
}

/// A matrix whose rows have these lengths in turn, with entries `spread` columns
/// apart around the diagonal.
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
        // Begins half a page after the vector, as in runs of the program.
        rows * 8 + SHIFT as u64,
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
    args[1] = HostValue::Memory {
        address: maps[1][SHIFT..].as_mut_ptr(),
        bytes: rows * 8,
    };
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

/// The time of a pass over all units with a pinned thread on each of `cores`, from
/// the first thread's start to the last one's end.
fn pass(case: &Case, cores: &[usize]) -> Duration {
    let host = case.codelet.host.as_ref().expect("a native kernel");
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
                    unsafe { host.run(args.0, 0, tile) };
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

fn reading() -> Case {
    let mut maps = vec![memory(COPY_UNIT * COPY_UNITS * 2)];
    let mut args: Vec<HostValue> = maps.iter_mut().map(value).collect();
    args.push(HostValue::U32(COPY_UNIT as u32));
    Case {
        name: "read",
        codelet: Codelet {
            name: "read".into(),
            host: Some(HostCode::Kernel(read)),
            opencl: None,
            library: None,
        },
        args,
        units: 2 * COPY_UNITS,
        bytes: (2 * COPY_UNITS * COPY_UNIT) as f64,
        _memory: maps,
    }
}

/// The offsets of a stencil's entries from the diagonal, in a grid of rows of
/// 400 and planes of 400 x 400.
fn stencil(most: i64) -> Vec<i64> {
    let near = -1i64..=1;
    let all = near.clone().flat_map(|z| {
        let near = near.clone();
        near.clone()
            .flat_map(move |y| near.clone().map(move |x| (x, y, z)))
    });
    all.filter(|(x, y, z)| x.abs() + y.abs() + z.abs() <= most)
        .map(|(x, y, z)| x + 400 * y + 160_000 * z)
        .collect()
}

/// A matrix of the diagonals at `offsets`, which rise; the first and last rows
/// have the same ones as their neighbours.
fn diagonals(offsets: &[i64]) -> Csr {
    let rows = ENTRIES as i64 / offsets.len() as i64;
    let (first, last) = (-offsets[0], rows - 1 - offsets[offsets.len() - 1]);
    let (mut starts, mut columns) = (vec![0], Vec::new());
    for row in 0..rows {
        let row = row.clamp(first, last);
        columns.extend(offsets.iter().map(|offset| (row + offset) as u32));
        starts.push(columns.len() as u64);
    }
    let values = vec![1.0 / 3.0; columns.len()];
    Csr::new(rows as u32, rows as u32, starts, columns, values).expect("a matrix")
}

/// Builds a product by name; only one is in memory at a time.
type Make = fn() -> Case;

const PRODUCTS: [Make; 9] = [
    || product("band-of-3", banded(&[3], 1)),
    || product("stencil-of-7", diagonals(&stencil(1))),
    || product("band-of-9", banded(&[9], 1)),
    || product("rows-of-12", banded(&[12], 3)),
    || product("band-of-17", banded(&[17], 1)),
    || product("stencil-of-27", diagonals(&stencil(3))),
    || product("band-of-101", banded(&[101], 1)),
    || product("rows-of-64", banded(&[64], 3)),
    || {
        product(
            "rows-of-1-to-9",
            banded(&[5, 1, 9, 2, 8, 3, 7, 4, 6, 5, 5], 2),
        )
    },
];

fn products_and_bounds(criterion: &mut Criterion) {
    let allowed = sched_getaffinity(None).expect("the affinity mask");
    let cores: Vec<usize> = (0..CpuSet::MAX_CPU)
        .filter(|cpu| allowed.is_set(*cpu))
        .collect();
    let bounds = [reading(), copying()];
    let mut counts = vec![1, cores.len()];
    counts.dedup();
    let mut lines = Vec::new();
    for make in PRODUCTS {
        let case = make();
        let mut group = criterion.benchmark_group("host-spmv-f64");
        group.sample_size(10);
        group.throughput(Throughput::Bytes(case.bytes as u64));
        for threads in counts.iter().copied() {
            group.bench_function(BenchmarkId::new(case.name, threads), |bencher| {
                bencher.iter_custom(|passes| {
                    (0..passes).map(|_| pass(&case, &cores[..threads])).sum()
                });
            });
            lines.push(beside_bounds(&case, &bounds, &cores[..threads]));
        }
        group.finish();
    }
    lines.iter().for_each(|line| println!("{line}"));
}

/// Prints a product's speed relative to its bounds, from alternating runs.
fn beside_bounds(case: &Case, [read, copy]: &[Case; 2], cores: &[usize]) -> String {
    let mut rates = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..11 {
        for (rates, case) in rates.iter_mut().zip([read, copy, case]) {
            rates.push(case.bytes / pass(case, cores).as_secs_f64());
        }
    }
    let [read, copied, computed] = rates.map(|mut rates| {
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    });
    format!(
        "{} threads: {} at {:.3} of reading and {:.3} of copying ({:.1} of {:.1} and {:.1} GB/s)",
        cores.len(),
        case.name,
        computed / read,
        computed / copied,
        computed / 1e9,
        read / 1e9,
        copied / 1e9,
    )
}

criterion_group!(benches, products_and_bounds);
criterion_main!(benches);

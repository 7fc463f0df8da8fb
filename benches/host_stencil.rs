//! The 5-point stencil on the host compared with a copy, its upper bound: 8192 x
//! 8192 doubles in huge pages, on one and on all cores, with one pinned thread a
//! core.
//!
//! Both are reported in bytes read and written a second, 16 a point: the stencil's
//! throughput divided by the copy's is the part of the memory bandwidth that it
//! uses. The last line, from alternating runs, prints it.

use std::hint::black_box;
use std::ops::Range;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use memmap2::{Advice, MmapMut};
use pdawl::codelet::stencil::{self, Dimensions, Precision, Rule};
use pdawl::codelet::{Codelet, HostValue, copy};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

const N: u64 = 8192;
const ROW: u64 = N * 8;

/// Memory for a grid, in huge pages where the system has them.
fn grid() -> MmapMut {
    let mut map = MmapMut::map_anon((N * ROW) as usize).expect("memory for a grid");
    #[cfg(target_os = "linux")]
    let _ = map.advise(Advice::HugePage);
    for (i, value) in bytemuck::cast_slice_mut::<u8, f64>(&mut map)
        .iter_mut()
        .enumerate()
    {
        *value = (i % 1000) as f64;
    }
    map
}

/// Two grids, and a kernel's arguments over them.
struct Bench {
    from: MmapMut,
    to: MmapMut,
    cores: Vec<usize>,
}

impl Bench {
    fn new() -> Self {
        let allowed = sched_getaffinity(None).expect("the affinity mask");
        Self {
            from: grid(),
            to: grid(),
            cores: (0..CpuSet::MAX_CPU)
                .filter(|cpu| allowed.is_set(*cpu))
                .collect(),
        }
    }

    fn memories(&mut self) -> [HostValue; 2] {
        [&mut self.from, &mut self.to].map(|map| HostValue::Memory {
            address: map.as_mut_ptr(),
            bytes: map.len() as u64,
        })
    }

    /// The time of a pass over all rows with `threads` pinned threads, from the
    /// first thread's start to the last one's end.
    fn pass(&mut self, codelet: &Codelet, args: &[HostValue], threads: usize) -> Duration {
        let kernel = codelet.host.as_ref().expect("a native kernel");
        let barrier = Barrier::new(threads);
        let epoch = Instant::now();
        let args = Args(args);
        let spans: Vec<(Duration, Duration)> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads)
                .map(|i| {
                    let (barrier, args, core) = (&barrier, &args, self.cores[i]);
                    scope.spawn(move || {
                        let mut set = CpuSet::new();
                        set.set(core);
                        sched_setaffinity(None, &set).expect("pinning to an allowed core");
                        barrier.wait();
                        let began = epoch.elapsed();
                        // SAFETY: the arguments are the codelet's, the grids
                        // as long as they say, and tiles disjoint.
                        unsafe { kernel.run(args.0, 0, tile(i, threads)) };
                        (began, epoch.elapsed())
                    })
                })
                .collect();
            workers
                .into_iter()
                .map(|worker| worker.join().expect("a pass"))
                .collect()
        });
        let began = spans.iter().map(|span| span.0).min().unwrap_or_default();
        let ended = spans.iter().map(|span| span.1).max().unwrap_or_default();
        black_box(&self.to[0]);
        ended - began
    }
}

/// Arguments that several threads may read.
struct Args<'a>(&'a [HostValue]);

// SAFETY: the memory behind the arguments outlives the threads, which write
// disjoint parts of it.
unsafe impl Sync for Args<'_> {}

fn tile(i: usize, threads: usize) -> Range<u64> {
    let at = |i: usize| N * i as u64 / threads as u64;
    at(i)..at(i + 1)
}

fn stencil_args([from, to]: [HostValue; 2]) -> Vec<HostValue> {
    let number = |n: u64| HostValue::U32(n as u32);
    let ring = [0, N, 0, N].map(number);
    let shape = [0, N, N, N, 1].map(number);
    [&[from, to][..], &ring, &shape, &[HostValue::F64(0.2)]].concat()
}

fn stencil_and_copy(criterion: &mut Criterion) {
    let mut bench = Bench::new();
    let memories = bench.memories();
    let stencil = (
        stencil::codelet(Dimensions::Two, Precision::F64, Rule::Mean),
        stencil_args(memories),
    );
    let copy = (
        copy::codelet(),
        [&memories[..], &[HostValue::U32(ROW as u32)]].concat(),
    );
    let mut group = criterion.benchmark_group("host-8192-f64");
    group
        .sample_size(20)
        .throughput(Throughput::Bytes(2 * N * ROW));
    let mut counts = vec![1, bench.cores.len()];
    counts.dedup();
    for threads in counts.iter().copied() {
        for (codelet, args) in [&copy, &stencil] {
            group.bench_function(
                BenchmarkId::new(codelet.name.as_str(), threads),
                |bencher| {
                    bencher.iter_custom(|passes| {
                        (0..passes)
                            .map(|_| bench.pass(codelet, args, threads))
                            .sum()
                    });
                },
            );
        }
    }
    group.finish();
    for threads in counts {
        let mut runs = [Vec::new(), Vec::new()];
        for _ in 0..21 {
            for (times, (codelet, args)) in runs.iter_mut().zip([&copy, &stencil]) {
                times.push(bench.pass(codelet, args, threads).as_secs_f64());
            }
        }
        let [copy, stencil] = runs.map(|mut times| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        });
        println!(
            "{threads} threads: stencil at {:.3} of the copy's bandwidth ({:.2} Gpoint/s, copy {:.1} GB/s)",
            copy / stencil,
            (N * N) as f64 / stencil / 1e9,
            (2 * N * ROW) as f64 / copy / 1e9,
        );
    }
}

criterion_group!(benches, stencil_and_copy);
criterion_main!(benches);

//! The 5-point stencil on the host compared with a copy, its upper bound: 8192 x
//! 8192 doubles in huge pages, on one and on all cores, with one pinned thread a
//! core.
//!
//! Both are reported in bytes read and written a second, 16 a point: the stencil's
//! throughput divided by the copy's is the part of the memory bandwidth that it
//! uses. A line from alternating runs prints it.
//!
//! Then single steps compared with supersteps, in 2-D and 3-D (512^3 doubles): points and
//! steps a second, medians of alternating runs.
//!
//! Then launches that find their largest change compared with those that do not, also of a
//! grid that stays in the last-level cache.
//!
//! `cargo bench --bench host_stencil -- copy`, `supersteps` or `changes` runs one of the three.

use std::hint::black_box;
use std::ops::Range;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use memmap2::{Advice, MmapMut};
use pdawl_api::codelet::stencil::{self, Dimensions, Precision, Rule};
use pdawl_api::codelet::{Codelet, HostValue, copy};
use rayon::{ThreadPool, ThreadPoolBuilder};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

const N: u64 = 8192;
const ROW: u64 = N * 8;
/// Points along each axis in 3-D.
const N_3D: u64 = 512;
/// Points along each axis of a 2-D grid that stays in the cache.
const N_CACHED: u64 = 1024;
const STEPS: [u32; 6] = [1, 2, 4, 8, 16, 32];

/// Memory for a grid, in huge pages where the system has them.
fn grid(points: u64) -> MmapMut {
    let mut map = MmapMut::map_anon(points as usize * 8).expect("memory for a grid");
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
    units: u64,
    cores: Vec<usize>,
}

impl Bench {
    fn new(points: u64, units: u64) -> Self {
        let allowed = sched_getaffinity(None).expect("the affinity mask");
        Self {
            from: grid(points),
            to: grid(points),
            units,
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
        let units = self.units;
        let barrier = Barrier::new(threads);
        let epoch = Instant::now();
        let args = Args(args);
        let spans: Vec<(Duration, Duration)> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads)
                .map(|i| {
                    let (barrier, args, core) = (&barrier, &args, self.cores[i]);
                    scope.spawn(move || {
                        pin(core);
                        barrier.wait();
                        let began = epoch.elapsed();
                        // SAFETY: the arguments are the codelet's, the grids
                        // as long as they say, and tiles disjoint.
                        unsafe { kernel.run(args.get(), 0, tile(units, i, threads)) };
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

    /// The time of a superstep on the pool's threads.
    fn superstep(&mut self, codelet: &Codelet, args: &[HostValue], pool: &ThreadPool) -> Duration {
        let kernel = codelet.host.as_ref().expect("a native kernel");
        let (args, units) = (&Args(args), self.units);
        let threads = pool.current_num_threads();
        let began = Instant::now();
        // SAFETY: the arguments are the codelet's, and the grids as long as they say.
        pool.install(|| unsafe { kernel.run_with(args.get(), 0, 0..units, threads) });
        black_box(&self.to[0]);
        began.elapsed()
    }

    /// Numbers of threads: one, and one a core.
    fn threads(&self) -> Vec<usize> {
        let mut counts = vec![1, self.cores.len()];
        counts.dedup();
        counts
    }

    /// A pool of pinned threads.
    fn pool(&self, threads: usize) -> ThreadPool {
        let cores = self.cores.clone();
        ThreadPoolBuilder::new()
            .num_threads(threads)
            .start_handler(move |i| pin(cores[i]))
            .build()
            .expect("threads")
    }
}

/// Binds the calling thread to a core.
fn pin(core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).expect("pinning to an allowed core");
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Arguments that several threads may read.
struct Args<'a>(&'a [HostValue]);

// SAFETY: the memory behind the arguments outlives the threads, which write
// disjoint parts of it.
unsafe impl Sync for Args<'_> {}

impl Args<'_> {
    fn get(&self) -> &[HostValue] {
        self.0
    }
}

fn tile(units: u64, i: usize, threads: usize) -> Range<u64> {
    let at = |i: usize| units * i as u64 / threads as u64;
    at(i)..at(i + 1)
}

/// Arguments of a whole grid whose rows have as many points as there are units.
fn stencil_args([from, to]: [HostValue; 2], n: u64, ny: u64, weight: f64) -> Vec<HostValue> {
    let number = |n: u64| HostValue::U32(n as u32);
    let ring = [0, n, 0, n].map(number);
    let shape = [0, n, n, n, ny].map(number);
    [&[from, to][..], &ring, &shape, &[HostValue::F64(weight)]].concat()
}

/// Whether a part of this bench is to run: its name contains the filter of the command line,
/// if there is one.
fn is_wanted(part: &str) -> bool {
    let mut filters = std::env::args().skip(1).filter(|arg| !arg.starts_with('-'));
    filters.next().is_none_or(|filter| part.contains(&filter))
}

fn stencil_and_copy(criterion: &mut Criterion) {
    if !is_wanted("copy") {
        return;
    }
    let mut bench = Bench::new(N * N, N);
    let memories = bench.memories();
    let stencil = (
        stencil::codelet(Dimensions::Two, Precision::F64, Rule::Mean),
        stencil_args(memories, N, 1, 0.2),
    );
    let copy = (
        copy::codelet(),
        [&memories[..], &[HostValue::U32(ROW as u32)]].concat(),
    );
    let mut group = criterion.benchmark_group("host-8192-f64");
    group
        .sample_size(20)
        .throughput(Throughput::Bytes(2 * N * ROW));
    for threads in bench.threads() {
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
    for threads in bench.threads() {
        let mut runs = [Vec::new(), Vec::new()];
        for _ in 0..21 {
            for (times, (codelet, args)) in runs.iter_mut().zip([&copy, &stencil]) {
                times.push(bench.pass(codelet, args, threads).as_secs_f64());
            }
        }
        let [copy, stencil] = runs.map(median);
        println!(
            "{threads} threads: stencil at {:.3} of the copy's bandwidth ({:.2} Gpoint/s, copy {:.1} GB/s)",
            copy / stencil,
            (N * N) as f64 / stencil / 1e9,
            (2 * N * ROW) as f64 / copy / 1e9,
        );
    }
}

fn single_steps_and_supersteps(_: &mut Criterion) {
    if !is_wanted("supersteps") {
        return;
    }
    for (dimensions, n, ny, weight) in [
        (Dimensions::Two, N, 1, 1.0 / 5.0),
        (Dimensions::Three, N_3D, N_3D, 1.0 / 7.0),
    ] {
        let points = n * n * ny;
        let mut bench = Bench::new(points, n);
        let args = stencil_args(bench.memories(), n, ny, weight);
        let single = stencil::codelet(dimensions, Precision::F64, Rule::Mean);
        let several = stencil::superstep(dimensions, Precision::F64, Rule::Mean);
        for threads in bench.threads() {
            let pool = bench.pool(threads);
            let mut runs = STEPS.map(|_| Vec::new());
            for _ in 0..7 {
                for (times, steps) in runs.iter_mut().zip(STEPS) {
                    let time = if steps == 1 {
                        bench.pass(&single, &args, threads)
                    } else {
                        let args = [&args[..], &[HostValue::U32(steps)]].concat();
                        bench.superstep(&several, &args, &pool)
                    };
                    times.push(time.as_secs_f64());
                }
            }
            println!("{}, {threads} threads", several.name);
            println!("| steps | Gpoint/s | of single steps |\n|---|---|---|");
            let rates = runs.map(|times| points as f64 / median(times) / 1e9);
            for (steps, rate) in STEPS.into_iter().zip(rates) {
                let rate = rate * f64::from(steps);
                println!("| {steps} | {rate:.2} | {:.2} |", rate / rates[0]);
            }
        }
    }
}

fn without_and_with_changes(_: &mut Criterion) {
    if !is_wanted("changes") {
        return;
    }
    println!(
        "| grid | steps | threads | plain, Gpoint/s | with change, Gpoint/s | time with change |"
    );
    println!("|---|---|---|---|---|---|");
    for (dimensions, n, ny, weight) in [
        (Dimensions::Two, N, 1, 1.0 / 5.0),
        (Dimensions::Two, N_CACHED, 1, 1.0 / 5.0),
        (Dimensions::Three, N_3D, N_3D, 1.0 / 7.0),
    ] {
        let points = n * n * ny;
        let mut bench = Bench::new(points, n);
        let args = stencil_args(bench.memories(), n, ny, weight);
        let mut cells = vec![0u64; stencil::change_cells(dimensions, n, ny, n) as usize];
        let cells = HostValue::Memory {
            address: cells.as_mut_ptr().cast(),
            bytes: size_of_val(&cells[..]) as u64,
        };
        for steps in [1, 16] {
            let (plain, changes, args) = if steps == 1 {
                (
                    stencil::codelet as Kind,
                    stencil::changes as Kind,
                    args.clone(),
                )
            } else {
                let args = [&args[..], &[HostValue::U32(steps)]].concat();
                (
                    stencil::superstep as Kind,
                    stencil::superstep_changes as Kind,
                    args,
                )
            };
            let with_cells = [&args[..], &[cells]].concat();
            let launches = [(plain, &args), (changes, &with_cells)]
                .map(|(kind, args)| (kind(dimensions, Precision::F64, Rule::Mean), args));
            for threads in bench.threads() {
                let pool = bench.pool(threads);
                let mut runs = [Vec::new(), Vec::new()];
                for _ in 0..11 {
                    for (times, (codelet, args)) in runs.iter_mut().zip(&launches) {
                        let time = if steps == 1 {
                            bench.pass(codelet, args, threads)
                        } else {
                            bench.superstep(codelet, args, &pool)
                        };
                        times.push(time.as_secs_f64());
                    }
                }
                let [plain, changes] = runs.map(median);
                let rate = |time| (points * u64::from(steps)) as f64 / time / 1e9;
                println!(
                    "| {} {n} | {steps} | {threads} | {:.2} | {:.2} | {:.3} |",
                    launches[0].0.name,
                    rate(plain),
                    rate(changes),
                    changes / plain,
                );
            }
        }
    }
}

/// Makes the codelet of a stencil.
type Kind = fn(Dimensions, Precision, Rule) -> Codelet;

criterion_group!(
    benches,
    stencil_and_copy,
    single_steps_and_supersteps,
    without_and_with_changes
);
criterion_main!(benches);

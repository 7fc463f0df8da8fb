//! Cost of the decisions of policies for tasks that share data: a 2-D product of 300
//! times 300 tasks and a 3-D product of 46 times 46 times 46, on four devices with room
//! for 35 or 1000 data. A machine in virtual time executes them. The goal is a median
//! decision of at most 3 us and a worst one of at most 50 us.
//!
//! Criterion measures all calls of the policy for each task. Before, the bench prints
//! the median and the worst of `next` and of the other calls. Each call is timed in
//! several equal runs, of which the fastest counts, because others use the machine.

use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pdawl_api::machine::DeviceKind;
use pdawl_api::policy::{
    Darts, DartsOptions, Datum, DeviceModel, Dmdar, Finished, Links, ListOptions, Locality, Policy,
    Problem, Task, WINDOW,
};

// The executor of the policies' tests.
#[path = "../src/core/policy/fixtures/executor.rs"]
mod executor;
#[path = "../src/core/policy/fixtures/memory.rs"]
mod memory;
#[path = "../src/core/policy/fixtures/products.rs"]
mod products;

/// Runs of which the fastest call counts.
const RUNS: usize = 5;

/// A policy whose calls are timed.
struct Timed {
    policy: Box<dyn Policy>,
    next: Vec<Duration>,
    others: Vec<Duration>,
    setup: Duration,
}

impl Timed {
    fn new(policy: Box<dyn Policy>) -> Self {
        Self {
            policy,
            next: Vec::new(),
            others: Vec::new(),
            setup: Duration::ZERO,
        }
    }

    fn other<T>(&mut self, call: impl FnOnce(&mut dyn Policy) -> T) -> T {
        let begin = Instant::now();
        let result = call(self.policy.as_mut());
        self.others.push(begin.elapsed());
        result
    }

    fn total(&self) -> Duration {
        self.next.iter().chain(&self.others).sum()
    }
}

impl Policy for Timed {
    fn name(&self) -> &'static str {
        self.policy.name()
    }

    fn may_run(&self, component: usize, device: usize) -> bool {
        self.policy.may_run(component, device)
    }

    fn window(&self) -> Option<usize> {
        self.policy.window()
    }

    fn begin(&mut self) {
        let begin = Instant::now();
        self.policy.begin();
        self.setup += begin.elapsed();
    }

    fn ready(&mut self, component: usize, now: u64) {
        let begin = Instant::now();
        self.policy.ready(component, now);
        self.setup += begin.elapsed();
    }

    fn next(&mut self, device: usize, now: u64) -> Option<usize> {
        let begin = Instant::now();
        let next = self.policy.next(device, now);
        self.next.push(begin.elapsed());
        next
    }

    fn finished(&mut self, finished: &Finished) {
        self.other(|policy| policy.finished(finished));
    }

    fn lost(&mut self, device: usize) {
        self.policy.lost(device);
    }

    fn returned(&mut self, device: usize) {
        self.policy.returned(device);
    }

    fn arrived(&mut self, device: usize, datum: usize) {
        self.other(|policy| policy.arrived(device, datum));
    }

    fn evicted(&mut self, device: usize, datum: usize) {
        self.other(|policy| policy.evicted(device, datum));
    }

    fn victim(&mut self, device: usize, evictable: &dyn Fn(usize) -> bool) -> Option<usize> {
        self.other(|policy| policy.victim(device, evictable))
    }
}

/// The median and the worst, in microseconds.
fn figures(times: &mut [Duration]) -> (f64, f64) {
    times.sort_unstable();
    let micros = |time: Option<&Duration>| time.map_or(0.0, |time| time.as_secs_f64() * 1e6);
    (micros(times.get(times.len() / 2)), micros(times.last()))
}

fn print(name: &str, problem: &Problem, make: &dyn Fn() -> Box<dyn Policy>) {
    let mut fastest: Option<Timed> = None;
    let mut loads = 0;
    for _ in 0..RUNS {
        let mut timed = Timed::new(make());
        loads = executor::execute(&mut timed, problem).loads;
        if let Some(fastest) = &mut fastest {
            let least = |all: &mut Vec<Duration>, these: &[Duration]| {
                for (least, this) in all.iter_mut().zip(these) {
                    *least = *this.min(least);
                }
            };
            least(&mut fastest.next, &timed.next);
            least(&mut fastest.others, &timed.others);
            fastest.setup = fastest.setup.min(timed.setup);
        } else {
            fastest = Some(timed);
        }
    }
    let mut timed = fastest.expect("a run");
    let per_task = |time: Duration| time.as_secs_f64() * 1e6 / problem.tasks.len() as f64;
    let (all, setup) = (per_task(timed.total()), per_task(timed.setup));
    let (median, worst) = figures(&mut timed.next);
    let (other_median, other_worst) = figures(&mut timed.others);
    println!(
        "{name}: next {median:.2} us, worst {worst:.1}; other calls {other_median:.2}, \
         worst {other_worst:.1}; {all:.2} a task, {setup:.2} to begin; {loads} loads"
    );
}

/// The problem on devices that copy directly from each other, twice as fast as from the
/// host.
fn linked(problem: &Problem) -> Problem {
    let devices = problem.devices.len();
    let bandwidth = problem.devices[0].bandwidth.map(|host| 2.0 * host);
    Problem {
        views: Default::default(),
        results: Default::default(),
        links: Links {
            host: None,
            bus: problem.devices[0].bandwidth,
            peers: vec![vec![bandwidth; devices]; devices],
        },
        ..problem.clone()
    }
}

fn decisions(c: &mut Criterion) {
    let mut group = c.benchmark_group("policy");
    group.sample_size(10);
    for room in [35, 1000] {
        let sets = [
            ("2d", products::product(300, products::gpus(4, room))),
            ("3d", products::product_3d(46, products::gpus(4, room))),
        ];
        for (shape, problem) in sets {
            group.throughput(Throughput::Elements(problem.tasks.len() as u64));
            let darts = |three_inputs, opti| {
                let options = DartsOptions {
                    three_inputs,
                    opti,
                    ..DartsOptions::default()
                };
                Darts::new(problem.clone(), options)
            };
            let dmdar = || Dmdar::new(problem.clone(), ListOptions::default());
            type Make<'a> = Box<dyn Fn() -> Box<dyn Policy> + 'a>;
            let policies: [(&str, Make); 5] = [
                (
                    "locality",
                    Box::new(|| Box::new(Locality::new(linked(&problem), WINDOW, 1))),
                ),
                ("darts+luf", Box::new(|| Box::new(darts(false, false)))),
                (
                    "darts+luf+3inputs",
                    Box::new(|| Box::new(darts(true, false))),
                ),
                ("darts+luf+opti", Box::new(|| Box::new(darts(false, true)))),
                ("dmdar", Box::new(|| Box::new(dmdar()))),
            ];
            for (name, make) in policies {
                let name = format!("{name}/{shape}/{room}");
                print(&name, &problem, make.as_ref());
                group.bench_function(&name, |bencher| {
                    bencher.iter_custom(|iterations| {
                        let run = |_| {
                            let mut timed = Timed::new(make());
                            executor::execute(&mut timed, &problem);
                            timed.total()
                        };
                        (0..iterations).map(run).sum()
                    });
                });
            }
        }
    }
    group.finish();
}

criterion_group!(benches, decisions);
criterion_main!(benches);

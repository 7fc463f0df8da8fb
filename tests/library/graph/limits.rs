//! Which data are copied, which graphs are refused, and interrupted runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fastrand::Rng;
use pdawl_api::codelet::{Codelet, Cost, HostCode, KernelSource, NdRange, OpenClKernel, Shape};
use pdawl_api::engine::graph::kernel_seconds::KernelSeconds;
use pdawl_api::engine::graph::reference::reference;
use pdawl_api::engine::graph::{
    Control, Division, GraphRunError, Options, PreparedGraph, search, times,
};
use pdawl_api::graph::{Argument, Components, Contents, Datum, GraphBuilder, Kernel, TaskGraph};
use pdawl_api::machine::Device;
use pdawl_api::policy::{Adaptive, Clustering, Eager, Finished, Policy, Search, Space};
use pdawl_api::quantity::Bytes;
use pdawl_api::runtime::sim::{Sim, SimDevice, SimOptions};
use pdawl_api::runtime::{Devices, RuntimeError};

use super::random::{Case, case};
use super::run::{check_results, numbers, once, options, policy, prepared};
use super::simulated::{machine, seeds};
use crate::pocl::open;
use crate::tight_runtime::TightRuntime;

fn nothing() -> Arc<Codelet> {
    Arc::new(Codelet {
        name: "nothing".into(),
        host: Some(HostCode::Kernel(|_, _, _| {})),
        opencl: Some(OpenClKernel {
            source: KernelSource::new("", "none", "nothing", ""),
            fp64: false,
            shape: Shape::Of(|_, _| NdRange::new(vec![1])),
        }),
        library: None,
    })
}

/// A chain of kernels that begins with one given datum; the last result is wanted.
fn chain(kernels: usize, bytes: u64, codelet: &Arc<Codelet>) -> TaskGraph {
    chain_of(&vec![bytes; kernels + 1], codelet)
}

/// A chain of kernels whose data have these lengths.
fn chain_of(bytes: &[u64], codelet: &Arc<Codelet>) -> TaskGraph {
    let mut graph = GraphBuilder::default();
    let mut last = graph.datum(Datum::new("given", bytes[0]).with(Contents::zeros()));
    let kernels = bytes.len() - 1;
    for kernel in 0..kernels {
        let mut out = Datum::new(format!("made {kernel}"), bytes[kernel + 1]);
        out.wanted = kernel == kernels - 1;
        let out = graph.datum(out);
        graph.kernel(Kernel {
            name: format!("link {kernel}").into(),
            codelet: Arc::clone(codelet),
            units: 0..1,
            arguments: vec![Argument::Input(last), Argument::FullOutput(out)],
            cost: Cost {
                flops: 1e6,
                bytes: 1e6,
            },
            prefers: None,
        });
        last = out;
    }
    graph.build().expect("a graph")
}

fn of(graph: TaskGraph, parts: usize) -> Case {
    let kernels = graph.kernels().len();
    let components = Components::by(&graph, |k| k.0 * parts / kernels).expect("components");
    Case {
        graph: Arc::new(graph),
        components: Arc::new(components),
        expected: Vec::new(),
    }
}

fn sim(devices: &[&str]) -> Sim {
    let device = |name: &&str| match *name {
        "host" => SimDevice::Host { cores: Some(4) },
        name => SimDevice::Named(name.into()),
    };
    let options = SimOptions {
        devices: Some(devices.iter().map(device).collect()),
        ..SimOptions::default()
    };
    Sim::new(&machine(), options).expect("a simulator")
}

/// Runs a chain of six kernels twice, divided into one component for each entry of
/// `map`, which is its device. Returns each device's numbers of writes and reads
/// in the first and the second run.
fn copies(devices: &[&str], map: Vec<usize>, keep: bool) -> [Vec<(u64, u64)>; 2] {
    let mut sim = sim(devices);
    let case = of(chain(6, 4096, &nothing()), map.len());
    let mut policy = Clustering::new(numbers(&sim, &case), map).expect("a map");
    let mut prepared = prepared(&mut sim, &case);
    let options = Options {
        keep,
        ..Options::queues(vec![2; devices.len()])
    };
    [0, 1].map(|_| {
        let run = once(&mut prepared, &mut sim, &mut policy, &options).expect("a run");
        let copies = run.uses.iter().map(|used| (used.writes, used.reads));
        copies.collect()
    })
}

#[test]
fn data_of_a_component_never_leave_their_device() {
    assert_eq!(copies(&["gpu0"], vec![0], false), [[(1, 1)], [(1, 1)]]);
    // Nor do data between two components that are both mapped to this device.
    assert_eq!(copies(&["gpu0"], vec![0, 0], false)[0], [(1, 1)]);
    let two = copies(&["gpu0", "gpu1"], vec![0, 1, 0], false);
    assert_eq!(two[0], [(2, 2), (1, 1)]);
    let with_host = copies(&["host", "gpu0"], vec![0, 1, 0], false);
    assert_eq!(with_host[0], [(0, 0), (1, 1)]);
    // With `keep`, inputs from the host stay for the next run.
    assert_eq!(copies(&["gpu0"], vec![0], true), [[(1, 1)], [(0, 1)]]);
}

#[test]
fn memory_that_is_not_there_is_named() {
    let mut sim = sim(&["gpu0"]);
    let has = sim.devices()[0].memory;
    let case = of(chain(3, has / 3, &nothing()), 1);
    let mut policy = Eager::new(numbers(&sim, &case));
    let mut prepared = prepared(&mut sim, &case);
    let error = once(
        &mut prepared,
        &mut sim,
        &mut policy,
        &Options::queues(vec![1]),
    );
    let error = error.expect_err("it has too little");
    assert!(matches!(&error, GraphRunError::Memory { needed, .. } if *needed > has));
    let text = error.to_string();
    assert!(
        text.contains("gpu0") && text.contains(&Bytes(has).to_string()),
        "{text}"
    );
}

#[test]
fn a_driver_with_less_memory_than_it_said_suffices_for_the_largest_component() {
    for seed in seeds() {
        let mut rng = Rng::with_seed(seed);
        let simulated = SimOptions {
            seed,
            data: true,
            devices: Some(vec![SimDevice::Named("gpu0".into())]),
            ..SimOptions::default()
        };
        let case = case(&mut rng, 12);
        let mut sim = Sim::new(&machine(), simulated).expect("a simulator");
        let least = prepared(&mut sim, &case).least_memory();
        let mut runtime = TightRuntime::new(sim, least * rng.u64(10..16) / 10);
        let mut policy = policy(&mut rng, numbers(&runtime, &case));
        let options = options(&mut rng, 1);
        let mut prepared = prepared(&mut runtime, &case);
        for run in 0..2 {
            let what = format!("seed {seed}, run {run}, {}", policy.name());
            once(&mut prepared, &mut runtime, policy.as_mut(), &options)
                .unwrap_or_else(|error| panic!("{what}: {error}"));
            check_results(&prepared, &mut runtime, &case, &what);
        }
        prepared.release(&mut runtime);
        assert!(runtime.is_bare(), "seed {seed}");
    }
}

#[test]
fn a_driver_with_less_memory_than_it_said_gets_unused_buffers_back() {
    let sim = sim(&["gpu0"]);
    let case = of(chain_of(&[64, 64, 192], &nothing()), 2);
    let mut policy = Eager::with_window(numbers(&sim, &case), 2);
    let mut runtime = TightRuntime::new(sim, 256);
    let mut prepared = prepared(&mut runtime, &case);
    let options = Options::queues(vec![1]);
    for _ in 0..2 {
        once(&mut prepared, &mut runtime, &mut policy, &options).expect("a run");
    }
}

#[test]
fn a_kernel_that_does_not_compile_is_an_error_before_anything_runs() {
    let broken = Arc::new(Codelet {
        name: "broken".into(),
        host: None,
        opencl: Some(OpenClKernel {
            source: KernelSource::new(
                "__kernel void broken(__global int *a) { a[0] = missing; }".to_owned(),
                "mine.cl",
                "broken",
                "",
            ),
            fp64: false,
            shape: Shape::Of(|_, _| NdRange::new(vec![1])),
        }),
        library: None,
    });
    let mut runtime = open("cpu:1=own");
    let case = of(chain(2, 64, &broken), 1);
    let mut policy = Eager::new(numbers(&runtime, &case));
    let mut prepared = prepared(&mut runtime, &case);
    let error = once(
        &mut prepared,
        &mut runtime,
        &mut policy,
        &Options::queues(vec![1]),
    );
    let error = error.expect_err("it does not compile");
    assert!(matches!(
        &error,
        GraphRunError::Runtime(RuntimeError::Build { log, .. }) if log.contains("missing")
    ));
    assert!(error.to_string().contains("mine.cl"), "{error}");
}

#[test]
fn a_stopped_run_ends_and_says_so() {
    let mut sim = sim(&["host"]);
    let case = of(chain(6, 4096, &nothing()), 6);
    let mut policy = Adaptive::new(numbers(&sim, &case));
    let mut prepared = prepared(&mut sim, &case);
    let stop = AtomicBool::new(false);
    let mut control = Control {
        stop: &stop,
        progress: &mut |done, _| stop.store(done == 2, Ordering::Relaxed),
    };
    let options = Options::queues(vec![1]);
    let outcome = prepared.run(&mut sim, &mut policy, &options, &mut control);
    let outcome = outcome.expect("no error");
    assert!(outcome.interrupted);
    assert!((2..6).contains(&outcome.placements.len()));
    // The plan can run again, from the beginning.
    stop.store(false, Ordering::Relaxed);
    let again = once(&mut prepared, &mut sim, &mut policy, &options).expect("a run");
    assert_eq!(again.placements.len(), 6);
}

/// A policy that gives the same invalid answer.
struct Nonsense(usize);

impl Policy for Nonsense {
    fn name(&self) -> &'static str {
        "nonsense"
    }
    fn may_run(&self, _: usize, _: usize) -> bool {
        true
    }
    fn begin(&mut self) {}
    fn ready(&mut self, _: usize, _: u64) {}
    fn next(&mut self, _: usize, _: u64) -> Option<usize> {
        Some(self.0)
    }
    fn finished(&mut self, _: &Finished) {}
    fn lost(&mut self, _: usize) {}
    fn returned(&mut self, _: usize) {}
}

#[test]
fn a_policy_that_makes_no_sense_is_an_error_and_no_hang() {
    // A component that is not ready, and one that is none.
    for component in [1, 99] {
        let mut sim = sim(&["host"]);
        let case = of(chain(2, 64, &nothing()), 2);
        let mut prepared = prepared(&mut sim, &case);
        let mut policy = Nonsense(component);
        let error = once(
            &mut prepared,
            &mut sim,
            &mut policy,
            &Options::queues(vec![1]),
        );
        let text = error.expect_err("nonsense").to_string();
        assert!(text.contains("`nonsense`") && text.contains('2'), "{text}");
    }
}

#[test]
fn every_kernel_is_timed_on_every_device() {
    let mut rng = Rng::with_seed(5);
    let case = case(&mut rng, 12);
    let mut sim = sim(&["host", "gpu0"]);
    let times = times::measure(
        &mut sim,
        &case.graph,
        None,
        2,
        &|_| true,
        &AtomicBool::new(false),
    );
    let (times, _) = times.expect("times");
    assert_eq!(times.len(), case.graph.kernels().len());
    assert!(
        times.iter().flatten().all(|t| t.is_some_and(|t| t > 0.0)),
        "{times:?}"
    );
}

/// Tasks that are known of one device are measured on another one when that is asked for, and so is
/// what a command takes a device with memory of its own.
#[test]
fn tasks_are_measured_on_the_devices_that_lack_them() {
    let case = case(&mut Rng::with_seed(6), 12);
    let (mut sim, stop) = (sim(&["host", "gpu0"]), AtomicBool::new(false));
    let mut seconds = KernelSeconds::default();
    let mut learn = |shares: bool| {
        let on = |device: &Device| device.shares_host_memory == shares;
        let learnt = seconds.learn(&mut sim, &case.graph, &on, &stop);
        learnt.expect("it runs");
        seconds.clone()
    };
    let of_gpu = learn(false);
    let times = of_gpu.of(&case.graph);
    assert!(times.iter().all(|of| of[0].is_none() && of[1].is_some()));
    let of_both = learn(true).of(&case.graph);
    assert!(of_both.iter().all(|of| of[0].is_some()));
    let gpu = |times: &[Vec<Option<f64>>]| times.iter().map(|of| of[1]).collect::<Vec<_>>();
    assert_eq!(gpu(&of_both), gpu(&times));
    let components = Components::single_kernels(&case.graph);
    let mut problem = Division::problem(&sim, &case.graph, &components, &of_both, None);
    for device in &mut problem.devices {
        device.costs.enqueue = 1.0;
    }
    of_gpu.set_commands(&mut problem);
    assert_eq!(problem.devices[0].costs.enqueue, 1.0);
    assert!(problem.devices[1].costs.enqueue < 1e-3);
}

#[test]
fn measuring_and_comparing_end_on_request() {
    let case = case(&mut Rng::with_seed(5), 12);
    let mut sim = sim(&["host", "gpu0"]);
    let stop = AtomicBool::new(true);
    let times = times::measure(&mut sim, &case.graph, None, 2, &|_| true, &stop);
    let (times, _) = times.expect("no times");
    assert!(times.iter().flatten().all(Option::is_none), "{times:?}");
    let made = reference(&mut sim, &case.graph, 0, &stop).expect("no reference");
    assert!(made.is_none());
}

#[test]
fn a_search_ends_with_the_best_that_it_tried() {
    let mut runtime = open("host:1,cpu:1=own");
    let mut rng = Rng::with_seed(fastrand::u64(..));
    println!("seed {}", rng.get_seed());
    let case = case(&mut rng, 8);
    let problem = numbers(&runtime, &case);
    let mut prepared: PreparedGraph = prepared(&mut runtime, &case);
    let space = Space {
        q_gpu: vec![1],
        q_cpu: vec![1, 3],
        h_cpu: vec![1, 2],
        widths: vec![1],
    };
    let stop = AtomicBool::new(false);
    let mut runs = 0;
    let mut control = Control {
        stop: &stop,
        progress: &mut |done, _| runs = done,
    };
    let tried = Search::new(space.configurations(2), 2);
    let base = Options::queues(vec![1, 1]);
    let found = search::search(
        &mut runtime,
        &mut prepared,
        &problem,
        tried,
        &base,
        &mut control,
    );
    let found = found.expect("a search");
    let (best, seconds) = found.best.expect("a best");
    assert!(found.all.iter().any(|(c, s)| *c == best && *s == seconds));
    assert!(runs > found.all.len());
    check_results(&prepared, &mut runtime, &case, "after a search");
}

//! Opens sub-devices, runs kernels on them, and computes the undivided reference.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use pdawl_api::balance::Strategy;
use pdawl_api::codelet::{Codelet, Cost, KernelSource, NdRange, OpenClKernel, Shape, Value};
use pdawl_api::engine::Outcome;
use pdawl_api::engine::corun::kernel::{Examined, SliceTrials, examine};
use pdawl_api::engine::corun::{Control, Corun, CorunError, Options, Stream, Tracing};
use pdawl_api::expression::{Number, Symbols};
use pdawl_api::graph::spec::{Kernel, KernelSpec};
use pdawl_api::runtime::opencl::{self, Selected};
use pdawl_api::runtime::union::Union;
use pdawl_api::runtime::{Command, DeviceId, Launch, Memory, Runtime, Status};
use pdawl_api::workload::Supersteps;
use pdawl_api::workload::kernel::{Sink, UserKernel};

use super::suite::Case;
use crate::pocl::cpu_device;

/// The written buffers: positions and bytes.
pub type Results = Vec<(usize, Vec<u8>)>;

/// Opens sub-devices of the OpenCL CPU device, of one compute unit each; `own`
/// says which of them have device memory, as a GPU has.
pub fn open(own: &[bool]) -> Union {
    let cpu = cpu_device();
    let selected: Vec<Selected> = (own.iter())
        .map(|own| Selected {
            platform: cpu.platform,
            device: cpu.device,
            units: Some(1),
            own_memory: *own,
        })
        .collect();
    let (sender, receiver) = crossbeam_channel::unbounded();
    let epoch = Instant::now();
    let backend = opencl::open(&selected, sender, epoch).expect("the sub-devices open");
    Union::new(vec![backend], receiver, epoch)
}

/// The case's kernel, read from its files.
pub fn kernel(case: &Case) -> (KernelSpec, Kernel) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("kernel.cl"), case.source).expect("the source");
    let file = folder.path().join("kernel.json");
    std::fs::write(&file, case.spec()).expect("the specification");
    let spec = KernelSpec::load(&file).unwrap_or_else(|e| panic!("{}: {e}", case.name));
    let symbols: Symbols = (case.symbols.iter())
        .map(|(name, n)| ((*name).to_owned(), Number::Int(*n)))
        .collect();
    let kernel = spec
        .resolve(&symbols, None)
        .unwrap_or_else(|e| panic!("{}: {e}", case.name));
    (spec, kernel)
}

/// The case as a workload.
pub fn user(case: &Case, seed: u64) -> UserKernel {
    let (spec, kernel) = kernel(case);
    let (info, _) =
        (spec.agrees_with_source(&kernel)).unwrap_or_else(|e| panic!("{}: {e}", case.name));
    UserKernel::new(kernel, info, seed)
}

/// Examines the case on the first device, slices too, however long one run takes: a pause of the
/// machine must not change what is found.
pub fn examined(runtime: &mut dyn Runtime, case: &Case, seed: u64) -> Examined {
    let stop = AtomicBool::new(false);
    let found = examine(runtime, 0, user(case, seed), SliceTrials::Always, &stop);
    found.unwrap_or_else(|e| panic!("{}: {e}", case.name))
}

/// Runs steps, with verification; returns the outcome and the results.
pub fn corun(
    runtime: &mut dyn Runtime,
    user: &UserKernel,
    strategy: &Strategy,
    steps: u32,
) -> Result<(Outcome, Results), CorunError> {
    run(runtime, user, strategy, steps, true)
}

/// Runs steps. `verify` is false where a fault could hit the verification's
/// commands.
pub fn run(
    runtime: &mut dyn Runtime,
    user: &UserKernel,
    strategy: &Strategy,
    steps: u32,
    verify: bool,
) -> Result<(Outcome, Results), CorunError> {
    let taken: Arc<Mutex<Results>> = Arc::default();
    let sink = Arc::clone(&taken);
    let user = user.clone().with_sink(Sink::new(move |position, bytes| {
        sink.lock()
            .expect("nobody panicked")
            .push((position, bytes.to_vec()));
    }));
    let options = Options {
        tolerance: None,
        supersteps: Supersteps::new(steps, 1),
        gpu_memory: None,
        stream: Stream::default(),
        verify,
        trace: Tracing::Commands,
        each_step: None,
    };
    let mut control = Control {
        stop: &AtomicBool::new(false),
        progress: &mut |_, _| {},
    };
    let corun = Corun::open(runtime, &user, &options)?;
    let balancer = strategy
        .build(corun.setup())
        .expect("a strategy that suits");
    let outcome = corun.run(balancer, &mut control)?;
    let results = std::mem::take(&mut *taken.lock().expect("nobody panicked"));
    Ok((outcome, results))
}

/// The reference results: the unchanged source, in one launch a step, on the first
/// device.
pub fn undivided(runtime: &mut dyn Runtime, case: &Case, seed: u64, steps: u32) -> Results {
    let user = user(case, seed);
    let kernel = user.kernel();
    let sizes = |sizes: &[u64]| -> Vec<usize> { sizes.iter().map(|n| *n as usize).collect() };
    let range = NdRange::new(sizes(&kernel.global));
    let range = match user.local() {
        Some(local) => range.exactly(sizes(local)),
        None => range,
    };
    let codelet = Arc::new(Codelet {
        name: "undivided".into(),
        host: None,
        opencl: Some(OpenClKernel {
            source: KernelSource::new(
                kernel.text.clone(),
                "kernel.cl",
                kernel.name.clone(),
                kernel.options.clone(),
            ),
            fp64: user.info().fp64,
            shape: Shape::with(move |_, _| range.clone()),
        }),
        library: None,
    });
    let queue = runtime.queue(DeviceId(0)).expect("a queue");
    let mut memories = Vec::new();
    let shares = runtime.devices()[0].shares_host_memory;
    assert!(shares, "the reference runs in host memory");
    for (position, buffer) in user.buffers() {
        let memory = runtime.alloc_host(buffer.bytes()).expect("memory");
        let bytes = runtime.host_bytes(memory).expect("idle");
        user.fill(position, &mut bytes[..buffer.bytes() as usize]);
        memories.push((position, buffer.clone(), memory));
    }
    let hosts: Vec<Memory> = memories.iter().map(|(_, _, m)| Memory::Host(*m)).collect();
    let args: Vec<Value> = user.args(&hosts);
    for _ in 0..steps {
        // Buffers that are only written begin each step with zeros.
        for (_, buffer, memory) in &memories {
            if !buffer.direction.reads() {
                runtime.host_bytes(*memory).expect("idle").fill(0);
            }
        }
        let command = Command::Launch(Launch {
            codelet: Arc::clone(&codelet),
            units: 0..1,
            args: args.clone(),
            cost: Cost::default(),
        });
        runtime.enqueue(queue, command, &[]).expect("submitted");
        while let Some(completion) = runtime.wait(None).expect("completions") {
            assert_eq!(completion.status, Status::Done, "{}", case.name);
        }
    }
    let mut results = Vec::new();
    for (position, buffer, memory) in memories {
        if buffer.direction.writes() {
            let bytes = runtime.host_bytes(memory).expect("idle");
            results.push((position, bytes[..buffer.bytes() as usize].to_vec()));
        }
        runtime.free_host(memory);
    }
    runtime.free_queue(queue);
    results
}

/// A random seed, or PDAWL_TEST_SEED; printed so that a failure can be repeated.
pub fn seed() -> u64 {
    let seed = std::env::var("PDAWL_TEST_SEED")
        .ok()
        .and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    println!("PDAWL_TEST_SEED={seed}");
    seed
}

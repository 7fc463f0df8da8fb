//! Models of made-up runs: as long as physics says, or times a factor that
//! depends on the configuration.

#![allow(dead_code, reason = "each user takes a part of this module")]

use std::sync::atomic::AtomicBool;

use pdawl::codelet::stencil::Precision;
use pdawl::engine::corun::Stream;
use pdawl::engine::corun::place::{Division, memory_limit};
use pdawl::machine::{MachineFile, Shelf};
use pdawl::model::training::{About, Request, bundle, fit_all};
use pdawl::model::{Case, Descriptors, Part, Work, prior, record};
use pdawl::workload::stencil::Stencil;
use pdawl_profiler::Sample;
use pdawl_profiler::bundle::Bundle;
use pdawl_profiler::dataset::Provenance;
use pdawl_profiler::train::{Family, Recipe};

pub const CODELET: &str = "stencil5-f64";

/// A shipped machine.
pub fn machine(name: &str) -> MachineFile {
    // A directory that does not exist: only what is shipped.
    Shelf::at("/nonexistent").find(name).unwrap()
}

/// A step of a grid of doubles.
pub fn work(nx: u64, ny: u64) -> Work {
    Work::of(&Stencil::new(nx, ny, None, Precision::F64, 1).unwrap())
}

/// The host's part: a whole grid, by so many workers and in chunks of so many
/// rows.
pub fn on_host(machine: &MachineFile, work: Work, workers: u32, chunk: u64) -> Case {
    let part = Part::Host {
        workers,
        sockets: machine.host.sockets,
        units: work.units,
        chunk: chunk.min(work.units),
    };
    Case { work, part }
}

/// The first GPU's part: a whole grid, held as far as 2 GiB reach.
pub fn on_gpu(machine: &MachineFile, work: Work, stream: Stream) -> Case {
    let memory = machine.devices[0].memory;
    let limit = memory_limit(memory, Some(2 << 30));
    let division = Division::of(work.units, work.unit_bytes, limit, memory, stream).unwrap();
    let held = division.capacity.min(work.units);
    let part = Part::Own {
        held,
        slots: division.slots,
        streamed: work.units - held,
        chunk: division.chunk,
        queues: division.queues,
        solo: held == work.units,
    };
    Case { work, part }
}

/// Runs up to 24000 points along an axis, each as long as physics says times
/// `factor` of its case.
pub fn samples(machine: &MachineFile, factor: impl Fn(&Case) -> f64) -> Vec<Sample> {
    let mut samples = Vec::new();
    let mut add = |kind: &str, case: Case| {
        let device = (kind == "gpu").then(|| &machine.devices[0]);
        let descriptors = Descriptors::of(machine, device, CODELET, true);
        samples.push(Sample {
            machine: machine.name.clone(),
            simulated: true,
            device: kind.into(),
            kind: kind.into(),
            codelet: CODELET.into(),
            configuration: format!("{kind} {} {:?}", case.work.unit_points, case.part),
            repeat: 0,
            counters: "none".into(),
            steps: 1,
            seconds: factor(&case) * prior::seconds(&case, &descriptors),
            features: record::features(&case, &descriptors),
        });
    };
    let cores = machine.host.cores;
    for size in (1..=24).map(|i| 1000 * i) {
        for (nx, ny) in [(size, size), (size, 2 * size / 3)] {
            for (workers, chunk) in [(1, u64::MAX), (cores / 2, 128), (cores, u64::MAX)] {
                add("cpu", on_host(machine, work(nx, ny), workers, chunk));
            }
            for (chunk, queues) in [(None, None), (Some(64), None), (Some(64), Some(2))] {
                let stream = Stream { chunk, queues };
                add("gpu", on_gpu(machine, work(nx, ny), stream));
            }
        }
    }
    samples
}

/// What these families learn of such runs, quickly.
pub fn model(machine: &MachineFile, samples: &[Sample], families: &[Family]) -> Bundle {
    let recipe = Recipe {
        families: families.to_vec(),
        clusters: 5..=5,
        folds: 5,
        inner_folds: 2,
        ..Recipe::default()
    };
    trained(machine, samples, &recipe)
}

/// What a recipe makes of runs of the CPU and the GPU.
pub fn trained(machine: &MachineFile, samples: &[Sample], recipe: &Recipe) -> Bundle {
    let request = Request {
        machine: &machine.name,
        samples,
        codelet: Some(CODELET),
        kinds: &["cpu", "gpu"],
        recipe,
    };
    let models = fit_all(&request, &mut |_, _, _| {}, &AtomicBool::new(false)).unwrap();
    let about = About {
        name: "learned",
        machine,
        simulated: true,
        trained_at: 1_700_000_000,
        provenance: Provenance::default(),
    };
    bundle(&models.groups, about).unwrap()
}

/// A model of `k40` that has learned what physics says.
pub fn of_physics(name: &str) -> Bundle {
    let machine = machine("k40");
    let samples = samples(&machine, |_| 1.0);
    let mut model = model(&machine, &samples, &[Family::PriorConstant]);
    model.name = name.to_owned();
    model
}

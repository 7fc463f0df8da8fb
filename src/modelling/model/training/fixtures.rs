//! Test fixtures: synthetic runs, whose times are the prior's with a factor and noise,
//! and models of them.

use std::sync::atomic::AtomicBool;

use pdawl_profiler::Sample;
use pdawl_profiler::bundle::Bundle;
use pdawl_profiler::dataset::Provenance;
use pdawl_profiler::train::{Family, Recipe};

use super::{ModelDescription, TrainingRequest, fit_all};
use crate::machine::{MachineFile, MachineStore};
use crate::model::{Case, Descriptors, DevicePart, StepWork, prior, record};

pub const CODELET: &str = "stencil5-f64";

/// A shipped machine.
pub fn machine(name: &str) -> MachineFile {
    MachineStore::at("/nonexistent").find(name).unwrap()
}

/// A step of `units` rows of 1000 doubles.
pub fn work(units: u64) -> StepWork {
    StepWork {
        matrix: None,
        superstep: None,
        units,
        unit_bytes: 8000,
        unit_points: 1000,
        element_bytes: 8,
        dimensions: 2,
        unit_flops: 5000.0,
        unit_traffic: 16000.0,
    }
}

/// Runs on a machine's host: 10 sizes on 1 to 4 workers, twice each.
pub fn samples(machine: &MachineFile) -> Vec<Sample> {
    let descriptors = Descriptors::of(machine, None, CODELET, true);
    let mut samples = Vec::new();
    for (i, (units, workers)) in (1..=10)
        .flat_map(|i| [1, 2, 4].map(|workers| (100 * i, workers)))
        .enumerate()
    {
        let case = Case {
            work: work(units),
            part: DevicePart::Host {
                workers,
                sockets: 1,
                units,
                chunk: units,
            },
        };
        for repeat in 0..2 {
            let noise = 0.02 * ((7 * i + 3 * repeat as usize) % 11) as f64 / 10.0;
            let factor = 1.2 + 0.05 * f64::from(workers) + noise;
            samples.push(Sample {
                machine: machine.name.clone(),
                simulated: true,
                device: format!("host:{workers}"),
                kind: "cpu".into(),
                codelet: CODELET.into(),
                configuration: format!("1000x{units} f64; host:{workers}"),
                repeat,
                counters: "none".into(),
                steps: 5,
                seconds: 5.0 * factor * prior::seconds(&case, &descriptors),
                features: record::features(&case, &descriptors),
            });
        }
    }
    samples
}

/// A recipe that is fast to fit.
pub fn recipe() -> Recipe {
    Recipe {
        families: vec![Family::PriorConstant, Family::PriorLinear, Family::Linear],
        clusters: 2..=3,
        folds: 5,
        inner_folds: 2,
        ..Recipe::default()
    }
}

/// A model of these runs on a machine's host.
pub fn model(name: &str, machine: &MachineFile, samples: &[Sample]) -> Bundle {
    let request = TrainingRequest {
        machine: &machine.name,
        samples,
        codelet: Some(CODELET),
        kinds: &["cpu"],
        recipe: &recipe(),
    };
    let models = fit_all(&request, &mut |_, _, _| {}, &AtomicBool::new(false)).unwrap();
    let about = ModelDescription {
        name,
        machine,
        simulated: true,
        trained_at: 1_700_000_000,
        provenance: Provenance::default(),
        adapted: None,
    };
    about.bundle(models.entries()).unwrap()
}

//! A foreign machine's model, corrected for this one by a few runs: which runs to make,
//! and what they change. Pure; the caller makes the runs.
//!
//! Features include the machine's own figures, so a model that multiplies the prior
//! already adjusts to another machine. Calibration runs give the rest. See
//! [`pdawl_profiler::adapt`].

use pdawl_profiler::adapt::{self, AdaptError, Calibration, Residual, Terms};
use pdawl_profiler::bundle::CodeletModel;
use thiserror::Error;

use super::case::Case;
use super::command;
use super::descriptors::Descriptors;
use super::features::{self, Facts};
/// What a correction depends on: the parts of a step's time that each resource
/// takes.
const TERMS: [&str; 4] = [
    "prior.compute_ratio",
    "prior.memory_ratio",
    "prior.link_ratio",
    "prior.overhead_ratio",
];

/// The least relative variation of a run that is assumed.
const LEAST_NOISE: f64 = 0.01;

/// The errors of an adaptation.
#[derive(Debug, Error)]
pub enum AdaptationError {
    #[error(
        "{codelet} on {kind}: the model wants `{feature}`, which is not known of this machine \
         before a run; complete the machine file, or train here: pdawl train{}",
        command::options(.codelet)
    )]
    Unknown {
        kind: String,
        codelet: String,
        feature: String,
    },

    #[error("{codelet} on {kind}: {source}")]
    Fit {
        kind: String,
        codelet: String,
        source: AdaptError,
    },
}

/// A run that may calibrate the entry of a model, before it is made: its seconds are 0.
///
/// # Errors
/// An input of the model that is not known of the machine.
pub fn candidate(
    entry: &CodeletModel,
    case: &Case,
    descriptors: &Descriptors,
) -> Result<Calibration, AdaptationError> {
    let mut facts = Facts::of(case, descriptors);
    let prior = facts.prior_seconds();
    let mut figure = |name: &str| {
        (features::index(name).map(|index| facts.value(index)))
            .filter(|value| !value.is_nan())
            .ok_or_else(|| AdaptationError::Unknown {
                kind: entry.kind.clone(),
                codelet: entry.codelet.clone(),
                feature: name.to_owned(),
            })
    };
    let plain = &entry.fitted.inputs[..entry.fitted.regressor.inputs()];
    Ok(Calibration {
        values: (plain.iter())
            .map(|input| figure(&input.name))
            .collect::<Result<_, _>>()?,
        terms: (TERMS.iter())
            .map(|name| figure(name))
            .collect::<Result<_, _>>()?,
        prior,
        seconds: 0.0,
    })
}

/// The candidates to run, by their places; one may be chosen several times.
pub fn choose(entry: &CodeletModel, candidates: &[Calibration], runs: usize) -> Vec<usize> {
    let terms = Terms::of(&entry.fitted, &TERMS);
    let candidates = candidates.iter().map(|run| terms.values(&run.terms));
    let candidates: Vec<Vec<f64>> = candidates.collect();
    adapt::choose(&candidates, runs, noise(entry), &terms.deviations())
}

/// The entry corrected by runs, each with its seconds of a step, and the errors of the
/// runs before and after.
///
/// # Errors
/// No runs, and impossible times.
pub fn correct(
    entry: &CodeletModel,
    runs: &[Calibration],
) -> Result<(CodeletModel, Vec<Residual>), AdaptationError> {
    let adapted = adapt::fit(&entry.fitted, &TERMS, runs, noise(entry));
    let adapted = adapted.map_err(|source| AdaptationError::Fit {
        kind: entry.kind.clone(),
        codelet: entry.codelet.clone(),
        source,
    })?;
    let entry = CodeletModel {
        fitted: adapted.fitted,
        explaining: None,
        ..entry.clone()
    };
    Ok((entry, adapted.residuals))
}

fn noise(entry: &CodeletModel) -> f64 {
    entry.fitted.spread.max(LEAST_NOISE)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use pdawl_profiler::Sample;
    use pdawl_profiler::bundle::{Adapted, Bundle};
    use pdawl_profiler::dataset::Provenance;

    use super::*;
    use crate::codelet::stencil::Precision;
    use crate::machine::MachineFile;
    use crate::model::Predictor;
    use crate::model::training::fixtures::{CODELET, machine, recipe};
    use crate::model::training::{ModelDescription, TrainingRequest, fit_all};
    use crate::profile::design::DesignRequest;
    use crate::profile::{
        Configuration, ModelKind, ProfileRun, ProfiledMachine, Settings, Space, design, stencil,
    };

    /// Configurations of a kind, without the first ones.
    fn configurations(machine: &MachineFile, kind: ModelKind, skip: usize) -> Vec<Configuration> {
        let profiled = ProfiledMachine::simulated(machine.clone(), 0.02);
        let request = DesignRequest {
            dimensions: 2,
            precision: Precision::F64,
            sizes: Vec::new(),
            most: Some(4000),
        };
        let (host, topology) = (&machine.host, profiled.topology().clone());
        let gpus = profiled.gpus(None, true);
        let space = Space::of(host, topology, gpus, host.memory, false, &request).unwrap();
        design(&space, kind, skip + 40).split_off(skip)
    }

    /// Runs them; a machine's file may say other figures than it has.
    fn runs(
        machine: &MachineFile,
        file: &MachineFile,
        configurations: &[Configuration],
    ) -> Vec<(Case, Descriptors, Sample)> {
        let mut profiled = ProfiledMachine::simulated(machine.clone(), 0.02);
        let described = ProfiledMachine::simulated(file.clone(), 0.02);
        let settings = Settings::default();
        let stop = AtomicBool::new(false);
        (configurations.iter())
            .map(|configuration| {
                let run = ProfileRun {
                    configuration: configuration.clone(),
                    repeat: 0,
                };
                let prepared = stencil::prepare(&described, &run, settings).unwrap();
                let real = stencil::prepare(&profiled, &run, settings).unwrap();
                let sample = real.measure(&mut profiled, 0, &stop).unwrap().unwrap();
                (prepared.case, prepared.descriptors, sample)
            })
            .collect()
    }

    fn foreign() -> Bundle {
        let machine = machine("k20-32");
        let samples: Vec<Sample> = [ModelKind::Cpu, ModelKind::Gpu]
            .into_iter()
            .flat_map(|kind| runs(&machine, &machine, &configurations(&machine, kind, 0)))
            .map(|(_, _, sample)| sample)
            .collect();
        let request = TrainingRequest {
            machine: &machine.name,
            samples: &samples,
            codelet: Some(CODELET),
            kinds: &["cpu", "gpu"],
            recipe: &recipe(),
        };
        let models = fit_all(&request, &mut |_, _, _| {}, &AtomicBool::new(false)).unwrap();
        let about = ModelDescription {
            name: "k20-32",
            machine: &machine,
            simulated: true,
            trained_at: 0,
            provenance: Provenance::default(),
            adapted: None,
        };
        about.bundle(models.entries()).unwrap()
    }

    /// Mean absolute error of a bundle on runs of a machine.
    fn error(bundle: &Bundle, runs: &[(Case, Descriptors, Sample)]) -> f64 {
        let off = runs.iter().map(|(case, descriptors, sample)| {
            let predictor = Predictor::new(bundle, CODELET, *descriptors).unwrap();
            let predicted = predictor.step_seconds(case);
            (predicted / sample.step_seconds() - 1.0).abs()
        });
        off.sum::<f64>() / runs.len() as f64
    }

    #[test]
    fn eight_runs_tell_what_a_machine_file_does_not() {
        let foreign = foreign();
        let file = machine("k40");
        let mut truth = file.clone();
        truth.host.efficiency.insert("stencil5".into(), 0.8);
        let device = &mut truth.devices[0];
        device.efficiency.insert("stencil5".into(), 0.7);
        let link = device.link.as_mut().unwrap();
        link.h2d *= 0.9;
        link.d2h *= 0.9;
        link.both_ways *= 0.9;

        let mut entries = Vec::new();
        let mut held = Vec::new();
        for kind in [ModelKind::Cpu, ModelKind::Gpu] {
            let entry = foreign.find(&kind.to_string(), CODELET).unwrap();
            let candidates = configurations(&file, kind, 0);
            let of = |(case, descriptors, sample): (Case, Descriptors, Sample)| Calibration {
                seconds: sample.step_seconds(),
                ..candidate(entry, &case, &descriptors).unwrap()
            };
            let possible = runs(&file, &file, &candidates).into_iter().map(of);
            let possible: Vec<Calibration> = possible.collect();
            let chosen: Vec<Configuration> = (choose(entry, &possible, 4).iter())
                .map(|place| candidates[*place].clone())
                .collect();
            let made = runs(&truth, &file, &chosen).into_iter().map(of);
            let made: Vec<Calibration> = made.collect();
            entries.push(correct(entry, &made).unwrap().0);
            held.push(runs(&truth, &file, &configurations(&file, kind, 40)));
        }
        let about = ModelDescription {
            name: "k40-from-k20-32",
            machine: &file,
            simulated: true,
            trained_at: 0,
            provenance: Provenance::default(),
            adapted: Some(Adapted {
                machine: foreign.machine.clone(),
                checksum: foreign.checksum().unwrap(),
                runs: 8,
            }),
        };
        let adapted = about.bundle(entries).unwrap();
        let text = adapted.to_text().unwrap();
        assert_eq!(Bundle::parse(&text, "adapted").unwrap(), adapted);
        for (held, least, most) in [(&held[0], 0.15, 0.02), (&held[1], 0.1, 0.05)] {
            let (before, after) = (error(&foreign, held), error(&adapted, held));
            assert!(
                before > least && after < most,
                "{before} before, {after} after"
            );
        }
    }
}

//! A foreign machine's model, corrected for this one by a few runs: which runs,
//! and what they change. Pure; whoever asks makes the runs.
//!
//! Features carry the machine's own figures, so a model that multiplies physics
//! already expects other times of another machine. Runs tell what its figures
//! do not. See [`pdawl_profiler::adapt`].

use pdawl_profiler::Fitted;
use pdawl_profiler::adapt::{self, AdaptError, Calibration, Expectation, Residual, Terms};
use pdawl_profiler::bundle::{Adapted, Bundle, BundleError, Entry};
use pdawl_profiler::dataset::Provenance;
use thiserror::Error;

use super::case::Case;
use super::descriptors::Descriptors;
use super::features;
use crate::machine::MachineFile;

/// What a correction depends on: the parts of a step's time that each resource
/// takes.
const TERMS: [&str; 4] = [
    "prior.compute_ratio",
    "prior.memory_ratio",
    "prior.link_ratio",
    "prior.overhead_ratio",
];

/// A run varies by this much at least, whatever the model's validation says: a
/// fraction.
const LEAST_NOISE: f64 = 0.01;

/// What could be run, or was.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    pub case: Case,
    pub descriptors: Descriptors,
}

/// Why a model cannot be adapted.
#[derive(Debug, Error)]
pub enum AdaptationError {
    #[error(
        "{codelet} on {kind}: the model wants `{feature}`, which is not known of this machine \
         before a run; complete the machine file, or train here: pdawl train"
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

    #[error(transparent)]
    Bundle(#[from] BundleError),

    #[error("the machine's description cannot be kept in a model: {0}")]
    Machine(#[from] serde_json::Error),
}

/// Which of the probes to run, by their places; one may be chosen several
/// times.
///
/// # Errors
/// An input of the model that is not known of the machine.
pub fn choose(entry: &Entry, probes: &[Probe], runs: usize) -> Result<Vec<usize>, AdaptationError> {
    let terms = Terms::of(&entry.fitted, &TERMS);
    let candidates = (probes.iter())
        .map(|probe| Ok(terms.values(&calibration(entry, probe, 0.0)?.terms)))
        .collect::<Result<Vec<_>, AdaptationError>>()?;
    let deviations = terms.deviations(Expectation::default());
    Ok(adapt::choose(&candidates, runs, noise(entry), &deviations))
}

/// The entry corrected by runs, each with its seconds of a step, and how far
/// off the runs are before and after.
///
/// # Errors
/// As [`choose`]; no runs, and times that cannot be.
pub fn correct(
    entry: &Entry,
    runs: &[(Probe, f64)],
) -> Result<(Entry, Vec<Residual>), AdaptationError> {
    let calibrations = (runs.iter())
        .map(|(probe, seconds)| calibration(entry, probe, *seconds))
        .collect::<Result<Vec<_>, AdaptationError>>()?;
    let adapted = adapt::fit(
        &entry.fitted,
        &TERMS,
        &calibrations,
        noise(entry),
        Expectation::default(),
    )
    .map_err(|source| AdaptationError::Fit {
        kind: entry.kind.clone(),
        codelet: entry.codelet.clone(),
        source,
    })?;
    let entry = Entry {
        fitted: adapted.fitted,
        // Counters of another machine's cores explain nothing here.
        explaining: None,
        ..entry.clone()
    };
    Ok((entry, adapted.residuals))
}

/// What a model of another machine becomes.
#[derive(Clone, Debug)]
pub struct Target<'a> {
    pub name: &'a str,
    pub machine: &'a MachineFile,
    pub simulated: bool,
    /// Seconds since 1970 in UTC.
    pub adapted_at: u64,
    /// Where the calibration runs come from.
    pub provenance: Provenance,
}

/// The content of the adapted model's file, of entries that [`correct`] gave
/// by so many runs in all.
///
/// # Errors
/// A foreign model or a machine that cannot be written as JSON.
pub fn bundle(
    foreign: &Bundle,
    entries: Vec<Entry>,
    runs: usize,
    target: Target,
) -> Result<Bundle, AdaptationError> {
    Ok(Bundle {
        name: target.name.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        machine: target.machine.name.clone(),
        simulated: target.simulated,
        fingerprint: target.machine.fingerprint.clone(),
        trained_at: target.adapted_at,
        provenance: target.provenance,
        adapted: Some(Adapted {
            machine: foreign.machine.clone(),
            checksum: foreign.checksum()?,
            runs,
        }),
        machine_file: serde_json::to_value(target.machine)?,
        models: entries,
    })
}

/// A run as the correction wants it.
fn calibration(entry: &Entry, probe: &Probe, seconds: f64) -> Result<Calibration, AdaptationError> {
    let values = features::values(&probe.case, &probe.descriptors);
    let figure = |name: &str| {
        (features::index(name).map(|place| values[place]))
            .filter(|value| !value.is_nan())
            .ok_or_else(|| AdaptationError::Unknown {
                kind: entry.kind.clone(),
                codelet: entry.codelet.clone(),
                feature: name.to_owned(),
            })
    };
    let plain: Fitted = entry.fitted.clone().without_correction();
    Ok(Calibration {
        values: (plain.inputs.iter())
            .map(|input| figure(&input.name))
            .collect::<Result<_, _>>()?,
        terms: TERMS
            .iter()
            .map(|name| figure(name))
            .collect::<Result<_, _>>()?,
        prior: values[features::PRIOR],
        seconds,
    })
}

fn noise(entry: &Entry) -> f64 {
    entry.fitted.spread.max(LEAST_NOISE)
}

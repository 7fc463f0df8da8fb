//! `pdawl model adapt`.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pdawl_api::codelet::stencil::{self, Dimensions};
use pdawl_api::model::ModelStore;
use pdawl_api::model::adapt::{candidate, choose, correct};
use pdawl_api::model::training::ModelDescription;
use pdawl_api::profile::{
    Configuration, PreparedRun, ProfileRun, ProfiledMachine, Settings, stencil as stencil_run,
};
use pdawl_api::report::model::AdaptReport;
use pdawl_api::report::model::adapted::{AdaptedGroup, CalibrationRun};
use pdawl_profiler::adapt::Calibration;
use pdawl_profiler::bundle::{Adapted, Bundle, CodeletModel};

use super::Source;
use crate::args::{Format, noise};
use crate::failure::Failure;
use crate::grid::PrecisionArg;
use crate::profile::{self, Budget, ProfileOptions, SessionOptions};
use crate::size::integer;
use crate::{interrupt, saved_report, terminal};

/// Configurations of a kind that the runs are chosen from.
const CANDIDATES: u32 = 200;

/// Steps of a calibration run: as many as the longest runs of a profile, to reduce the
/// noise of few runs.
const STEPS: u32 = 30;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The other machine's model, as `pdawl model list` shows it, or a file
    #[arg(value_name = "FOREIGN")]
    foreign: String,

    /// The machine that it should be of; simulated unless it is this one
    /// [default: this one]
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,

    /// Calibration runs of each codelet, shared by CPU and GPU
    #[arg(long, value_name = "N", default_value_t = 8, allow_negative_numbers = true,
          value_parser = integer(2u32..=1000))]
    runs: u32,

    /// What to call the adapted model [default: MACHINE-from-FOREIGN]
    #[arg(long, value_name = "MODEL")]
    name: Option<String>,

    /// Of a simulation's noise
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = integer(0..=u64::MAX),
          allow_negative_numbers = true)]
    seed: u64,

    /// Relative standard deviation of simulated times [default: 0.02]
    #[arg(long, value_name = "FRACTION", value_parser = noise, allow_negative_numbers = true)]
    noise: Option<f64>,

    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub fn run(store: &ModelStore, args: &Args) -> Result<(), Failure> {
    let foreign = Source::find(store, &args.foreign)?;
    if let Some(name) = &args.name {
        // Runs take a while, so an invalid name is refused first.
        store.path(name).map_err(Failure::of)?;
    }
    let stop = interrupt::listen()?;
    let mut notes = Vec::new();
    let mut calibration = Calibrating::open(args, &mut notes)?;
    let name = match &args.name {
        Some(name) => name.clone(),
        None => format!(
            "{}-from-{}",
            calibration.profiled.machine().name,
            foreign.name
        ),
    };
    store.path(&name).map_err(Failure::of)?;

    let mut groups = Vec::new();
    let mut entries = Vec::new();
    for codelet in codelets(&foreign.bundle) {
        for (entry, group) in calibration.adapt(&foreign.bundle, codelet, stop)? {
            entries.push(entry);
            groups.push(group);
        }
    }
    notes.append(&mut calibration.notes);
    notes.extend_from_slice(calibration.profiled.notes());
    let about = ModelDescription {
        name: &name,
        machine: calibration.profiled.machine(),
        simulated: calibration.profiled.is_simulated(),
        trained_at: saved_report::now(),
        provenance: profile::provenance(&calibration.profiled),
        adapted: Some(Adapted {
            machine: foreign.bundle.machine.clone(),
            checksum: foreign.bundle.checksum().map_err(Failure::of)?,
            runs: groups.iter().map(|group| group.runs.len()).sum(),
        }),
    };
    let adapted = about.bundle(entries).map_err(Failure::of)?;
    let file = store.save(&adapted).map_err(Failure::of)?;
    let report = AdaptReport {
        foreign: foreign.name,
        foreign_machine: foreign.bundle.machine,
        model: name,
        file: file.display().to_string(),
        machine: adapted.machine,
        simulated: adapted.simulated,
        groups,
        notes,
    };
    terminal::print_report(args.format, &report, |report| report.render())
}

/// The codelets that a model is of, each once.
fn codelets(bundle: &Bundle) -> Vec<&str> {
    let mut names: Vec<&str> = bundle.models.iter().map(|e| e.codelet.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The machine that runs are made on.
struct Calibrating<'a> {
    args: &'a Args,
    profiled: ProfiledMachine,
    settings: Settings,
    notes: Vec<String>,
}

/// What a run was, and what it tells.
type Done = (String, Calibration);

impl<'a> Calibrating<'a> {
    fn open(args: &'a Args, notes: &mut Vec<String>) -> Result<Self, Failure> {
        let wanted = wanted(args, 2, PrecisionArg::F64);
        let (profiled, found) = profile::machine::find(&wanted.session)?;
        notes.extend(found);
        Ok(Self {
            args,
            profiled,
            settings: Settings {
                steps: Some(STEPS),
                seed: args.seed,
            },
            notes: Vec::new(),
        })
    }

    /// Adapts a codelet's entries on every kind of device that the machine has.
    fn adapt(
        &mut self,
        foreign: &Bundle,
        name: &str,
        stop: &AtomicBool,
    ) -> Result<Vec<(CodeletModel, AdaptedGroup)>, Failure> {
        let Some((dims, precision)) = of_stencil(name) else {
            self.notes
                .push(format!("{name} is left out: this program cannot run it"));
            return Ok(Vec::new());
        };
        let wanted = wanted(self.args, dims, precision);
        let designs = wanted.design_for(&self.profiled, &mut self.notes)?;
        let designs: Vec<(&CodeletModel, &[Configuration])> = (designs.iter())
            .filter_map(|design| {
                let kind = design.first()?.device_use.kind.to_string();
                Some((foreign.find(&kind, name)?, &design[..]))
            })
            .collect();
        let kinds = designs.len().max(1);
        let mut adapted = Vec::new();
        for (place, (entry, design)) in designs.into_iter().enumerate() {
            let runs = (self.args.runs as usize + kinds - 1 - place) / kinds;
            let done = self.calibrate(entry, design, runs, stop)?;
            adapted.push(corrected(entry, done)?);
        }
        Ok(adapted)
    }

    /// Makes the most informative runs of an entry.
    fn calibrate(
        &mut self,
        entry: &CodeletModel,
        design: &[Configuration],
        runs: usize,
        stop: &AtomicBool,
    ) -> Result<Vec<Done>, Failure> {
        let (mut prepared_runs, mut candidates) = (Vec::new(), Vec::new());
        for configuration in design {
            let run = ProfileRun {
                configuration: configuration.clone(),
                repeat: 0,
            };
            // A configuration that does not fit the device's memory is no candidate.
            if let Ok(prepared) = stencil_run::prepare(&self.profiled, &run, self.settings) {
                let run = candidate(entry, &prepared.case, &prepared.descriptors);
                prepared_runs.push(prepared);
                candidates.push(run.map_err(Failure::of)?);
            }
        }
        let chosen = choose(entry, &candidates, runs);
        let what = format!("{} on {}", entry.codelet, entry.kind);
        let bar = terminal::progress(self.args.format, chosen.len() as u64, &what);
        let mut repeats: HashMap<usize, u32> = HashMap::new();
        let mut done = Vec::new();
        for place in chosen {
            let prepared: &mut PreparedRun = &mut prepared_runs[place];
            let repeat = repeats.entry(place).or_default();
            prepared.repeat = *repeat;
            *repeat += 1;
            let sample = prepared.measure(&mut self.profiled, self.settings.seed, stop);
            let Some(sample) = sample.map_err(Failure::of)? else {
                bar.finish_and_clear();
                terminal::warn("interrupted: no model was written");
                return Err(Failure::Interrupted);
            };
            bar.inc(1);
            let run = Calibration {
                seconds: sample.step_seconds(),
                ..candidates[place].clone()
            };
            done.push((sample.configuration, run));
        }
        bar.finish_and_clear();
        Ok(done)
    }
}

/// An entry and its report after these runs.
fn corrected(
    entry: &CodeletModel,
    done: Vec<Done>,
) -> Result<(CodeletModel, AdaptedGroup), Failure> {
    let runs: Vec<Calibration> = done.iter().map(|(_, run)| run.clone()).collect();
    let (after, residuals) = correct(entry, &runs).map_err(Failure::of)?;
    let mean = |of: &dyn Fn(usize) -> f64| {
        let sum: f64 = (0..residuals.len()).map(|run| of(run).abs()).sum();
        sum / residuals.len().max(1) as f64
    };
    let group = AdaptedGroup {
        kind: entry.kind.clone(),
        codelet: entry.codelet.clone(),
        before: mean(&|run| residuals[run].before),
        after: mean(&|run| residuals[run].after),
        left_out: mean(&|run| residuals[run].left_out),
        runs: (done.into_iter().zip(&residuals))
            .map(|((configuration, run), residual)| CalibrationRun {
                configuration,
                measured: run.seconds,
                before: run.seconds * (1.0 + residual.before),
                after: run.seconds * (1.0 + residual.after),
                left_out: run.seconds * (1.0 + residual.left_out),
            })
            .collect(),
    };
    Ok((after, group))
}

/// Dimensions and precision of a stencil's codelet, as users say them.
fn of_stencil(codelet: &str) -> Option<(u8, PrecisionArg)> {
    let (dimensions, precision) = stencil::named(codelet)?;
    let dims = match dimensions {
        Dimensions::Two => 2,
        Dimensions::Three => 3,
    };
    let precision = precision.choose(PrecisionArg::F32, PrecisionArg::F64);
    Some((dims, precision))
}

/// The options of a profile of the same machine: for its design.
fn wanted(args: &Args, dims: u8, precision: PrecisionArg) -> ProfileOptions {
    ProfileOptions {
        session: SessionOptions {
            machine: args.machine.clone(),
            budget: Budget(Duration::MAX),
            fitting: Duration::ZERO,
            kinds: Vec::new(),
            steps: None,
            seed: args.seed,
            precision,
            gpu_memory: None,
            host_memory: None,
            noise: args.noise,
            out: None,
            fresh: false,
        },
        repeats: 1,
        configurations: CANDIDATES,
        sizes: Vec::new(),
        max_size: None,
        dims,
    }
}

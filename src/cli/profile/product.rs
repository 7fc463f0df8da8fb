//! What users say of a profile of products, and doing it.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use clap::Args;
use pdawl::codelet::spmv;
use pdawl::machine::Host;
use pdawl::matrix::MatrixSource;
use pdawl::profile::product::{Ears, Plan, SessionProgress, design};
use pdawl::profile::{ModelKind, ProfileError, ProfiledMachine};
use pdawl::report::profile::{KindReport, ProfileReport, Rows, SCHEMA};
use pdawl::workload::spmv::{Options, arrange};
use pdawl_profiler::counters::availability;

use super::wanted::KindArg;
use super::{Budget, ProfileOptions, file, machine};
use crate::cli::args::{Format, noise};
use crate::cli::failure::Failure;
use crate::cli::grid::PrecisionArg;
use crate::cli::integer::integer;
use crate::cli::product::fraction;
use crate::cli::size::ByteSize;
use crate::cli::terminal;

/// Runs of a product, at most, where nobody has said how many: matrices tell
/// more than repeats.
const MOST_REPEATS: u32 = 2;

/// What products are to be profiled, and how long.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Profile")]
pub struct ProductProfileOptions {
    /// A machine by name; simulated unless it is this one [default: this one]
    ///
    /// This machine is measured first if there is no file of it.
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,

    /// Time that it may take: 90s, 5m, 1h30m
    #[arg(
        long,
        value_name = "TIME",
        default_value = "5m",
        allow_hyphen_values = true
    )]
    budget: Budget,

    /// Runs of each matrix on each device in each way
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = integer(1u32..=1000),
          allow_negative_numbers = true)]
    repeats: u32,

    /// Which devices: cpu, gpu [default: both, where there are both]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_enum)]
    kinds: Vec<KindArg>,

    /// Steps of each run [default: 10 in a simulation, else as many as 80 ms
    /// allow, 3 to 100]
    #[arg(long, value_name = "N", value_parser = integer(1u32..=100_000),
          allow_negative_numbers = true)]
    steps: Option<u32>,

    /// Of the matrices, the order of runs, and a simulation's noise
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = integer(0..=u64::MAX),
          allow_negative_numbers = true)]
    seed: u64,

    /// Matrices instead of the design's 50, separated by spaces: files,
    /// look-alikes or generators
    ///
    /// With matrices of their own held-out runs are made, to try a model on.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ' ',
        help_heading = "Workload"
    )]
    matrices: Vec<MatrixSource>,

    /// So many matrices of the design
    #[arg(long, value_name = "N", conflicts_with = "matrices", value_parser = integer(1u32..=50),
          default_value_t = 50, allow_negative_numbers = true, help_heading = "Workload")]
    count: u32,

    /// The part of the rows, the longest, that may be ordered for the CPU first
    /// [default: 0.3, and in the design some others, too]
    #[arg(long, value_name = "FRACTION", value_parser = fraction, allow_negative_numbers = true,
          help_heading = "Workload")]
    irregular: Option<f64>,

    /// Floating-point type
    #[arg(long, value_enum, default_value_t, help_heading = "Workload")]
    precision: PrecisionArg,

    /// Use at most this much of each GPU's memory: 2GiB, 512MiB
    #[arg(
        long,
        value_name = "SIZE",
        allow_negative_numbers = true,
        help_heading = "Machine"
    )]
    gpu_memory: Option<ByteSize>,

    /// Memory of the host that may be used [default: what is free]
    #[arg(
        long,
        value_name = "SIZE",
        allow_negative_numbers = true,
        help_heading = "Machine"
    )]
    host_memory: Option<ByteSize>,

    /// Relative standard deviation of simulated times [default: 0.02]
    #[arg(long, value_name = "FRACTION", value_parser = noise, allow_negative_numbers = true,
          help_heading = "Machine")]
    noise: Option<f64>,

    /// The dataset [default: the machine's, in the directory of datasets]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    out: Option<PathBuf>,

    /// Measure everything again; what was there is kept as FILE.bak
    #[arg(long, help_heading = "Output")]
    fresh: bool,
}

impl ProductProfileOptions {
    /// The design's products, as far as who profiles stencils can say it.
    pub fn of(wanted: &ProfileOptions) -> Self {
        Self {
            machine: wanted.machine.clone(),
            budget: wanted.budget,
            repeats: wanted.repeats.min(MOST_REPEATS),
            kinds: wanted.kinds.clone(),
            steps: wanted.steps,
            seed: wanted.seed,
            matrices: Vec::new(),
            count: wanted.configurations.min(design::TRAINING.len() as u32),
            irregular: None,
            precision: wanted.precision,
            gpu_memory: wanted.gpu_memory,
            host_memory: wanted.host_memory,
            noise: wanted.noise,
            out: wanted.out.clone(),
            fresh: wanted.fresh,
        }
    }

    /// The same as who profiles stencils says it, as far as it is the same.
    fn wanted(&self) -> ProfileOptions {
        ProfileOptions {
            machine: self.machine.clone(),
            budget: self.budget,
            repeats: self.repeats,
            configurations: 1,
            kinds: self.kinds.clone(),
            steps: self.steps,
            seed: self.seed,
            sizes: Vec::new(),
            max_size: None,
            dims: 2,
            precision: self.precision,
            gpu_memory: self.gpu_memory,
            host_memory: self.host_memory,
            noise: self.noise,
            out: self.out.clone(),
            fresh: self.fresh,
        }
    }

    /// The design's matrices, each with a seed of its own, or those asked for.
    fn sources(&self) -> Result<Vec<MatrixSource>, Failure> {
        let seeded = |(number, source): (usize, MatrixSource)| MatrixSource {
            seed: self.seed.wrapping_add(number as u64),
            memory: self.host_memory.map(|size| size.0),
            ..source
        };
        if !self.matrices.is_empty() {
            return Ok(self
                .matrices
                .iter()
                .cloned()
                .enumerate()
                .map(seeded)
                .collect());
        }
        let design = design::TRAINING.iter().take(self.count as usize);
        let sources: Result<Vec<MatrixSource>, _> = design.map(|text| text.parse()).collect();
        let sources = sources.map_err(Failure::of)?;
        Ok(sources.into_iter().enumerate().map(seeded).collect())
    }

    /// Measures what is wanted and not yet there, with a bar for people.
    ///
    /// # Errors
    /// When there is no such machine, nothing to run on it, no time for it, or
    /// no place to keep it.
    pub fn carry_out(&self, format: Format, stop: &AtomicBool) -> Result<ProfileReport, Failure> {
        let wanted = self.wanted();
        let matrices = self.sources()?;
        let (mut profiled, mut notes) = machine::find(&wanted)?;
        let plan = self.plan(matrices, &profiled, &mut notes)?;
        let (path, appender) = file::open(&wanted, &profiled)?;
        // Asked for what there is, and given what comes.
        let appender = std::cell::RefCell::new(appender);
        let rounds = u64::from(plan.repeats);
        let bar = terminal::progress(format, rounds * plan.matrices.len() as u64, "");
        let done = plan.carry_out(
            &mut profiled,
            &mut Ears {
                stop,
                watch: &mut |progress: &SessionProgress| {
                    bar.set_position(progress.over as u64);
                    bar.set_message(format!("{}, {}", progress.device, progress.matrix));
                },
                is_kept: &mut |key| appender.borrow().contains(key),
                keep: &mut |sample| {
                    let mut appender = appender.borrow_mut();
                    appender.append(sample).map_err(ProfileError::from)
                },
            },
        );
        bar.finish_and_clear();
        let (summary, kept) = done.map_err(Failure::of)?;
        let appender = appender.into_inner();
        notes.extend_from_slice(profiled.notes());
        let rows = Rows {
            measured: summary.measured,
            kept,
            left: summary.left,
            failed: summary.failed.len(),
        };
        if rows.measured + rows.kept == 0
            && let Some(why) = summary.failed.first()
        {
            return Err(Failure::failed(
                format!("nothing was measured; first: {why}"),
                "other --matrices, --kinds or --gpu-memory",
            ));
        }
        let codelet = spmv::codelet(plan.options.precision).name.to_string();
        Ok(ProfileReport {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            machine: profiled.machine().name.clone(),
            simulated: profiled.is_simulated(),
            dataset: path.display().to_string(),
            rows,
            seconds: summary.seconds,
            budget_seconds: self.budget.0.as_secs_f64(),
            interrupted: summary.interrupted,
            kinds: KindReport::of(appender.samples(), &codelet),
            codelet,
            counters: (!profiled.is_simulated()).then(availability),
            failed: summary.failed,
            notes,
        })
    }

    fn plan(
        &self,
        matrices: Vec<MatrixSource>,
        profiled: &ProfiledMachine,
        notes: &mut Vec<String>,
    ) -> Result<Plan, Failure> {
        let precision = self.precision.into();
        let options = Options {
            precision,
            seed: self.seed,
            irregular: self.irregular.unwrap_or(arrange::IRREGULAR),
            ..Options::default()
        };
        let gpus = profiled.gpus(
            self.gpu_memory.map(|size| size.0),
            options.precision.bytes() == 8,
        );
        let (mut kinds, named) = self.wanted().kinds();
        if gpus.is_empty() && kinds.contains(&ModelKind::Gpu) {
            let machine = &profiled.machine().name;
            let none = format!(
                "machine {machine} has no GPU that computes in {} and can be profiled",
                options.precision.name()
            );
            if named {
                let remedy = "--kinds cpu; `pdawl devices` shows what there is";
                return Err(Failure::usage(none, remedy));
            }
            notes.push(none);
            kinds.retain(|kind| *kind != ModelKind::Gpu);
        }
        // Matrices are made here, whatever machine they are computed on.
        let here = Host::detect().memory.obtainable(0);
        Ok(Plan {
            matrices,
            kinds,
            gpus,
            repeats: self.repeats,
            steps: self.steps,
            seed: self.seed,
            options,
            varies: self.irregular.is_none() && self.matrices.is_empty(),
            memory: self.host_memory.map_or(here, |size| size.0),
            budget: self.budget.0,
        })
    }
}

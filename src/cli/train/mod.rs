//! `pdawl train`: a machine's cost model, from profile to file; or what a run takes on each part of
//! the devices, with which later ones begin.
//!
//! `runs` gets the runs to learn from, profiling what is missing; `fit` fits
//! the models and keeps them.

mod fit;
mod runs;

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::args::Format;
use super::failure::Failure;
use super::profile::ProfileOptions;
use super::{bench, interrupt, terminal};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  pdawl train\n  pdawl train --machine k40 --budget 5m\n  \
                  pdawl train --machine k40 --workload spmv\n  \
                  pdawl train --dataset datasets/simulated/k40.csv --name lab\n  \
                  pdawl train --budget 1m run lu --size 8192"
)]
pub struct Args {
    #[command(flatten)]
    wanted: ProfileOptions,

    /// What is profiled and learned [default: stencil; with --dataset, what it
    /// has]
    #[arg(long, value_enum, help_heading = "Training")]
    workload: Option<Workload>,

    /// Learn from the runs of this file alone, and measure nothing
    ///
    /// As `pdawl profile` writes them. The machine is that of the runs.
    #[arg(long, value_name = "FILE", help_heading = "Training",
          conflicts_with_all = ["out", "fresh", "no_profile", "kinds", "sizes", "max_size",
                                "dims", "precision", "noise", "steps", "budget", "repeats",
                                "configurations", "gpu_memory", "host_memory"])]
    dataset: Option<PathBuf>,

    /// Learn from what was measured before, and measure nothing
    #[arg(long, help_heading = "Training",
          conflicts_with_all = ["fresh", "sizes", "max_size", "noise", "steps", "budget",
                                "repeats", "configurations", "gpu_memory", "host_memory"])]
    no_profile: bool,

    /// What to call the model [default: the machine's name]
    #[arg(long, value_name = "MODEL", help_heading = "Training")]
    name: Option<String>,

    /// How the result is printed
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    format: Format,

    /// Instead of a model, learn what this run takes on parts of the devices
    ///
    /// Runs it by default and on each part, in turns within the budget. What they take is kept, and
    /// later runs of its kind begin with it: see `pdawl model show`. Its --format says how the
    /// comparison is printed.
    #[arg(value_name = "run WORKLOAD", num_args = 1.., trailing_var_arg = true,
          allow_hyphen_values = true,
          conflicts_with_all = ["dataset", "no_profile", "workload", "name", "out", "fresh",
                                "kinds", "sizes", "max_size", "dims", "precision", "noise",
                                "steps", "seed", "configurations", "gpu_memory", "host_memory",
                                "machine", "format"])]
    run: Vec<String>,
}

/// What a model is to predict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum Workload {
    /// Stencils
    #[default]
    Stencil,
    /// Products of sparse matrices
    Spmv,
}

impl Args {
    /// The time that profiling and fitting may take; `None` where nothing is measured.
    fn budget(&self) -> Option<Duration> {
        let profiles = self.dataset.is_none() && !self.no_profile;
        profiles.then_some(self.wanted.session.budget.0)
    }

    fn workload(&self) -> Workload {
        self.workload.unwrap_or_default()
    }

    /// Refuses what says nothing of the workload.
    fn check(&self) -> Result<(), Failure> {
        let wanted = &self.wanted;
        let given = [
            ("--sizes", !wanted.sizes.is_empty()),
            ("--max-size", wanted.max_size.is_some()),
            ("--dims", wanted.dims != 2),
        ];
        match given.into_iter().find(|(_, given)| *given) {
            Some((option, _)) if self.workload() == Workload::Spmv => Err(Failure::usage(
                format!("{option} is of stencils, and --workload spmv learns products"),
                format!(
                    "no {option}; `pdawl profile spmv --matrices` profiles matrices of your own"
                ),
            )),
            _ => Ok(()),
        }
    }
}

/// Runs the subcommand. `global` are the options that precede it.
pub fn run(args: &Args, global: &[String]) -> Result<(), Failure> {
    if !args.run.is_empty() {
        let (run, session) = (args.run.clone(), &args.wanted.session);
        let training = bench::Args::training(run, args.wanted.repeats, session.budget.0);
        return bench::run(&training, global);
    }
    args.check()?;
    let stop = interrupt::listen()?;
    let report = fit::train(args, stop)?;
    terminal::print_report(args.format, &report, |report| report.render())?;
    match stop.load(Ordering::Relaxed) {
        true => Err(Failure::Interrupted),
        false => Ok(()),
    }
}

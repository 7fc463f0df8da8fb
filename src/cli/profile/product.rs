//! Profiles of products: the matrices, and measuring them.

use std::sync::atomic::AtomicBool;

use clap::Args;
use pdawl_api::codelet::spmv;
use pdawl_api::matrix::MatrixSource;
use pdawl_api::profile::SessionProgress;
use pdawl_api::profile::product::{ProductProfile, design};
use pdawl_api::quantity::Seconds;
use pdawl_api::report::profile::ProfileReport;
use pdawl_api::workload::spmv::{Options, arrange};

use super::session::{Opened, free_memory};
use super::{ProfileOptions, SessionOptions};
use crate::args::Format;
use crate::failure::Failure;
use crate::matrix::source;
use crate::product::fraction;
use crate::size::integer;
use crate::terminal;

/// The greatest number of repeats of `pdawl train`: more matrices improve a model
/// more than more repeats.
const MOST_REPEATS: u32 = 2;

/// The options of a profile of products.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Profile")]
pub struct ProductProfileOptions {
    #[command(flatten)]
    session: SessionOptions,

    /// Runs of each matrix on each device in each way
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = integer(1u32..=1000))]
    repeats: u32,

    /// Matrices instead of the design's 50, separated by spaces: files,
    /// look-alikes or generators
    ///
    /// Matrices of your own give held-out runs, to try a model on.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ' ',
        value_parser = source(),
        help_heading = "Workload"
    )]
    matrices: Vec<MatrixSource>,

    /// The number of matrices of the design
    #[arg(long, value_name = "N", conflicts_with = "matrices", value_parser = integer(1u32..=50),
          default_value_t = 50, help_heading = "Workload")]
    count: u32,

    /// The part of the rows, the longest, that may be ordered for the CPU first
    /// [default: 0.3, and in the design some others, too]
    #[arg(long, value_name = "FRACTION", value_parser = fraction, help_heading = "Workload")]
    irregular: Option<f64>,
}

impl ProductProfileOptions {
    /// The design's products with the options of a profile of stencils.
    pub fn of(options: &ProfileOptions) -> Self {
        Self {
            session: options.session.clone(),
            repeats: options.repeats.min(MOST_REPEATS),
            matrices: Vec::new(),
            count: options.configurations.min(design::TRAINING.len() as u32),
            irregular: None,
        }
    }

    /// The matrices that were asked for or those of the design, each with a seed of
    /// its own.
    fn sources(&self) -> Result<Vec<MatrixSource>, Failure> {
        let design = design::TRAINING.iter().take(self.count as usize);
        let sources: Vec<MatrixSource> = match self.matrices.is_empty() {
            true => (design.map(|text| text.parse()))
                .collect::<Result<_, _>>()
                .map_err(Failure::of)?,
            false => self.matrices.clone(),
        };
        let seeded = |(number, source): (usize, MatrixSource)| MatrixSource {
            seed: self.session.seed.wrapping_add(number as u64),
            memory: self.session.host_memory.map(|size| size.0),
            ..source
        };
        Ok(sources.into_iter().enumerate().map(seeded).collect())
    }

    /// Measures the runs that are wanted and not yet in the dataset.
    ///
    /// # Errors
    /// When there is no such machine, nothing to run on it, no time for it, or
    /// no place to keep the rows.
    pub fn carry_out(&self, format: Format, stop: &AtomicBool) -> Result<ProfileReport, Failure> {
        let matrices = self.sources()?;
        let options = &self.session;
        let opened = Opened::find(options)?;
        let profile = ProductProfile {
            matrices,
            kinds: opened.kinds.clone(),
            gpus: opened.gpus.clone(),
            repeats: self.repeats,
            options: Options {
                precision: options.precision(),
                seed: options.seed,
                irregular: self.irregular.unwrap_or(arrange::IRREGULAR),
                ..Options::default()
            },
            varies: self.irregular.is_none() && self.matrices.is_empty(),
            // Matrices are made on this computer, whatever machine computes on them.
            memory: options.host_memory.map_or_else(free_memory, |size| size.0),
        };
        let matrices = u64::from(self.repeats) * profile.matrices.len() as u64;
        let bar = terminal::progress(format, matrices, "");
        let report = opened.profile(
            options,
            spmv::name(options.precision()),
            "other --matrices, --kinds or --gpu-memory",
            stop,
            &mut |progress: &SessionProgress| {
                let (run, most) = (progress.run, Seconds(progress.most));
                bar.set_message(format!("{}, at most {most} left", run.title()));
            },
            |session| profile.carry_out(session, &mut |over| bar.set_position(over as u64)),
        );
        bar.finish_and_clear();
        report
    }
}

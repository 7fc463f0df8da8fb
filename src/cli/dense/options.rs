//! The options of both commands.

use std::path::Path;
use std::str::FromStr;

use pdawl::policy::NamedPolicy;
use pdawl::workload::cluster::Operation;
use pdawl::workload::task_set::MOST_ROWS;

use crate::args::{Format, MachineArgs};
use crate::cluster::{LoneJob, OperationJob};
use crate::failure::Failure;
use crate::files::TraceFiles;
use crate::integer::integer;
use crate::tasks::OrderName;

/// The policy by default.
pub const POLICY: &str = "locality";

#[derive(Clone, Debug, clap::Args)]
pub struct DenseOptions {
    /// Rows and columns of a tile, or `auto`
    ///
    /// Tiles at the edges are smaller where the size is no multiple. `auto` takes the
    /// greatest power of two from 256 to 4096 (1024 for cholesky) that leaves each device
    /// 128 tasks, or a smaller one if the tiles of 16 tasks do not fit a GPU's memory.
    /// OpenCL kernels are fastest where rows are multiples of 16 bytes.
    #[arg(long, value_name = "N|auto", default_value = "auto")]
    pub tile: TileArg,

    /// The order in which the policy learns of the tasks
    #[arg(long, value_enum, default_value_t)]
    pub order: OrderName,

    /// Seed of generated matrices, of the random order and of the policy's random choices
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = integer(0..=u64::MAX))]
    pub seed: u64,

    /// The scheduling policy
    #[arg(
        long,
        value_name = "POLICY",
        default_value = POLICY,
        long_help = NamedPolicy::help(),
        help_heading = "Scheduling"
    )]
    pub policy: NamedPolicy,

    /// Tasks that a device has at once, whose data are loaded ahead [default: 16]
    #[arg(long, value_name = "N", value_parser = integer(1..=1000_usize),
          help_heading = "Scheduling")]
    pub window: Option<usize>,

    /// Timed runs; on real devices without --fault, one that is not timed comes first
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = integer(1..=u32::MAX),
          help_heading = "Scheduling")]
    pub repeats: u32,

    #[command(flatten)]
    pub machine: MachineArgs,

    /// Check the result with random vectors; a wrong one fails
    #[arg(long, help_heading = "Output")]
    pub verify: bool,

    /// How the report is printed
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    pub format: Format,

    #[command(flatten)]
    pub files: TraceFiles,
}

impl DenseOptions {
    /// How one machine computes by itself.
    pub fn alone(&self) -> LoneJob<'_> {
        LoneJob {
            machine: &self.machine,
            policy: self.policy,
            window: self.window,
            repeats: Some(self.repeats),
            order: self.order.into(),
            seed: self.seed,
            verify: self.verify,
            format: self.format,
            files: &self.files,
        }
    }

    /// An operation in the tiles that are asked for, on the matrices of these files if there are
    /// some.
    ///
    /// # Errors
    /// Tiles that are larger than the matrices.
    pub fn operation(&self, of: Operation, files: &[&Path]) -> Result<OperationJob, Failure> {
        let longest = of.dense.map_or(u64::MAX, |sizes| sizes.longest());
        let tile = match self.tile {
            TileArg::Auto => None,
            TileArg::Rows(rows) => Some(u64::from(rows)),
        };
        match tile.filter(|rows| *rows > longest) {
            Some(rows) => Err(Failure::usage(
                format!(
                    "--tile {rows}: the tile is larger than the matrices, which have at most \
                     {longest} rows and columns"
                ),
                format!("--tile {longest} or less, or --tile auto"),
            )),
            None => Ok(OperationJob::new(of, tile, files, self.seed)),
        }
    }
}

/// The length of tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TileArg {
    Auto,
    Rows(u32),
}

impl FromStr for TileArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "auto" => Ok(Self::Auto),
            text => integer(1..=MOST_ROWS)(text)
                .map(Self::Rows)
                .map_err(|error| format!("{error}; or write auto")),
        }
    }
}

//! The options of runs over nodes.

use std::path::PathBuf;

use pdawl::cluster::wire::environment::Launched;
use pdawl::spread::NamedSpread;
use pdawl::workload::cluster::Placement;

use crate::cli::integer::integer;

/// How a workload runs over the nodes of a cluster. A run has several nodes when `mpirun`
/// starts it.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Nodes")]
pub struct NodeOptions {
    /// How subtasks are spread over nodes: together, oblivious, static, central or steal
    #[arg(long, value_name = "NAME", default_value = "together")]
    pub spread: NamedSpread,

    /// Subtasks, beyond those that compute, whose data a device's node fetches
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = integer(0..=1000_u32))]
    pub prefetch: u32,

    /// Where the inputs' blocks are at first: rows (a band a node), central (on node 0),
    /// row-cyclic, column-cyclic or random
    #[arg(long, value_name = "NAME", default_value = "rows")]
    pub placement: Placement,

    /// The library that carries messages between nodes [default: the one of MPI]
    #[arg(long, value_name = "FILE")]
    pub wire: Option<PathBuf>,
}

impl NodeOptions {
    /// Whether the run has several nodes.
    pub fn several(&self) -> bool {
        self.wire.is_some() || Launched::detect().is_some_and(|launched| launched.size > 1)
    }
}

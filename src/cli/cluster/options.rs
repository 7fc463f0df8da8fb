//! The options of runs over nodes.

use pdawl_api::cluster::wire::environment::Launched;
use pdawl_api::machine::{MachineFile, MachineStore};
use pdawl_api::spread::NamedSpread;
use pdawl_api::workload::cluster::Placement;

use super::joined::JoinOptions;
use super::run::{find, refuse_launched};
use crate::args::MachineArgs;
use crate::failure::Failure;
use crate::size::integer;

/// Long blocks on their way at once.
const PREFETCH: u32 = 1;

/// How subtasks and data are spread over nodes.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Nodes")]
pub struct SpreadOptions {
    /// How subtasks are spread over nodes: together, oblivious, static or steal
    /// [default: together]
    #[arg(long, value_name = "NAME")]
    spread: Option<NamedSpread>,

    /// Long blocks that are on their way to a node at once, for its next subtasks; with 0 it
    /// asks for them when a device has nothing to do [default: 1]
    #[arg(long, value_name = "N", value_parser = integer(0..=1000_u32))]
    prefetch: Option<u32>,

    /// Where the inputs' blocks are at first: rows (a band a node), grid (a rectangle a node),
    /// central (on node 0), row-cyclic, column-cyclic or random [default: grid; rows for fft,
    /// column-cyclic for lu]
    #[arg(long, value_name = "NAME")]
    placement: Option<Placement>,
}

impl SpreadOptions {
    pub fn spread(&self) -> NamedSpread {
        self.spread.unwrap_or_default()
    }

    pub fn prefetch(&self) -> u32 {
        self.prefetch.unwrap_or(PREFETCH)
    }

    /// The placement, which is `usual` unless one is asked for. A random one depends on the
    /// run's seed.
    pub fn placement(&self, usual: Placement, seed: u64) -> Placement {
        match self.placement.unwrap_or(usual) {
            Placement::Random { .. } => Placement::Random { seed },
            other => other,
        }
    }

    fn asked_placement(&self, seed: u64) -> String {
        let asked = self.placement.map(|asked| self.placement(asked, seed));
        asked.map_or_else(|| "the usual one".to_owned(), |asked| asked.to_string())
    }

    /// The options as values, those that are not given included.
    pub fn values(&self, seed: u64) -> [(&'static str, String); 3] {
        [
            ("--spread", self.spread().to_string()),
            ("--prefetch", self.prefetch().to_string()),
            ("--placement", self.asked_placement(seed)),
        ]
    }
}

/// How a workload runs over the nodes of a cluster. A run has several nodes when `mpirun`
/// starts it, and when it is simulated.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Nodes")]
pub struct NodeOptions {
    #[command(flatten)]
    pub spread: SpreadOptions,

    #[command(flatten)]
    pub join: JoinOptions,

    /// Simulate the run on a described cluster: nothing is computed, and times are virtual
    ///
    /// `pdawl cluster list` shows the names. The path of a cluster file works, too.
    #[arg(long, value_name = "NAME|FILE")]
    pub cluster: Option<String>,

    /// Nodes of the described cluster: its first ones, or more than it has if all are alike
    /// [default: as many as it has]
    #[arg(long = "nodes", value_name = "N", value_parser = integer(1..=u64::from(u32::MAX)),
          requires = "cluster")]
    pub count: Option<u64>,
}

impl NodeOptions {
    /// Whether the run has several nodes.
    pub fn several(&self) -> bool {
        self.cluster.is_some()
            || self.join.wire.is_some()
            || Launched::detect().is_some_and(|launched| launched.size > 1)
    }
}

impl MachineArgs {
    /// All devices of the only node of a described cluster. None if the run has not one such
    /// node.
    ///
    /// # Errors
    /// A cluster that is not known or wrong, and `mpirun`.
    pub fn on_one_node(&self, nodes: &NodeOptions) -> Result<Option<Self>, Failure> {
        let Some(cluster) = &nodes.cluster else {
            return Ok(None);
        };
        let Some(machine) = lone_machine(cluster, nodes.count)? else {
            return Ok(None);
        };
        refuse_launched()?;
        Ok(Some(Self::of_node(machine, self.noise)))
    }
}

/// The machine of a described cluster of one node, on which a run is one without nodes. None
/// if it has several nodes.
///
/// # Errors
/// A cluster that is not known, or wrong.
pub fn lone_machine(cluster: &str, count: Option<u64>) -> Result<Option<MachineFile>, Failure> {
    let file = find(cluster)?;
    if count.unwrap_or(file.count()) != 1 {
        return Ok(None);
    }
    let alone = file.with_nodes(1).map_err(Failure::of)?;
    let machines = alone.machines(&MachineStore::of_user());
    Ok(machines.map_err(Failure::of)?.pop())
}

/// Whether this process prints for all nodes.
pub fn is_first() -> bool {
    Launched::detect().is_none_or(|launched| launched.rank == 0)
}

/// The failure of what each node does by itself, such as reading a file: it names the node.
pub fn at_rank(failure: Failure) -> Failure {
    match (Launched::detect(), failure) {
        (Some(launched), failure) if launched.size > 1 => failure.at(launched.rank),
        (_, failure) => failure,
    }
}

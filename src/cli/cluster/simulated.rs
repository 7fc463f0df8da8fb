//! Runs on described clusters, in virtual time.

use pdawl::cluster::protocol::Settings;
use pdawl::cluster::wire::environment::Launched;
use pdawl::engine::cluster::simulate::{Cluster, Computing, Options, Report, simulate};
use pdawl::machine::{ClusterFile, ClusterStore, MachineFile, MachineStore};
use pdawl::report::run::Details;
use pdawl::report::run::nodes::{Asked, BusiestPart, report};
use pdawl::report::{Context, Machine, Report as RunReport};
use pdawl::workload::cluster::{Fit, demand};

use super::options::SpreadOptions;
use super::prepared::PreparedWorkload;
use super::run::{ClusterJob, write_trace};
use crate::failure::Failure;
use crate::files::PreparedFiles;
use crate::machine_session::host_memory;
use crate::{interrupt, terminal};

/// How a run is simulated.
struct Simulation<'a> {
    spread: &'a SpreadOptions,
    noise: Option<f64>,
    seed: u64,
    traces: bool,
}

/// Subtasks of a task that are simulated. So many take a minute, as a subtask takes
/// tens of microseconds, and policies keep some hundred bytes for each.
const MOST_SUBTASKS: u64 = 1_000_000;

/// A cluster of a file.
pub struct DescribedCluster {
    pub file: ClusterFile,
    /// By rank.
    pub machines: Vec<MachineFile>,
}

/// Simulates a job and prints its report.
///
/// # Errors
/// What [`DescribedCluster`] refuses.
pub fn run_job(
    job: &ClusterJob,
    prepared: &mut PreparedWorkload,
    cluster: &str,
    files: PreparedFiles,
) -> Result<(), Failure> {
    refuse_launched()?;
    interrupt::end_at_once();
    let file = find(cluster)?;
    let described = DescribedCluster::of(&file, job.nodes.count.unwrap_or(file.count()))?;
    let spread = &job.nodes.spread;
    let simulation = Simulation {
        spread,
        noise: job.noise,
        seed: job.seed,
        traces: job.files.wanted(),
    };
    described.fit(prepared)?;
    let simulated = described.simulate(prepared, &simulation)?;
    let outcome = simulated.outcome;
    let workload = prepared.described(prepared.workload.tasks());
    let notes = notes(prepared, &file, described.machines.len() as u64);
    let Some(first) = described.machines.first() else {
        return Err(Failure::failed(
            format!("cluster {} has no node", file.name),
            "a file with a `node`",
        ));
    };
    let context = Context {
        workload,
        machine: Machine {
            name: file.name,
            ..Machine::simulated(first, Vec::new())
        },
        policy: prepared.policy(spread),
        notes,
    };
    let asked = Asked {
        prefetch: spread.prefetch(),
        ..Asked::default()
    };
    let mut report = report(&outcome, context, asked);
    if let Details::Nodes(own) = &mut report.details {
        own.tile = prepared.fitted_tile();
        own.busiest = simulated.busiest.map(BusiestPart::from);
    }
    write_trace(job, Some(files), &report, &outcome)?;
    terminal::print_report(job.format, &report, RunReport::render)
}

/// Checks that the process is alone: one simulates all nodes.
///
/// # Errors
/// When a launcher has started several.
pub fn refuse_launched() -> Result<(), Failure> {
    let launched = Launched::detect().filter(|launched| launched.size > 1);
    // What all processes refuse, the first one prints.
    if launched.is_some_and(|launched| launched.rank > 0) {
        return Err(Failure::Program(2));
    }
    match launched {
        None => Ok(()),
        Some(_) => Err(Failure::usage(
            "mpirun is for real clusters, and one process simulates all nodes of --cluster",
            "the command without mpirun, or without --cluster",
        )),
    }
}

/// The cluster of a name or a path.
///
/// # Errors
/// When there is no such file, or it is wrong.
pub fn find(name: &str) -> Result<ClusterFile, Failure> {
    ClusterStore::of_user().find(name).map_err(Failure::of)
}

/// What a reader of simulated times on so many nodes must know.
fn notes(prepared: &PreparedWorkload, file: &ClusterFile, most: u64) -> Vec<String> {
    let has = file.count();
    let more = (most > has).then(|| {
        format!(
            "cluster {} has {has} nodes; more are simulated as equal ones on the same network",
            file.name
        )
    });
    let rates = "every time is simulated: kernels reach the operations and bytes a second of \
                 the machine files"
        .to_owned();
    let own = prepared.notes.iter().cloned();
    own.chain([rates]).chain(more).collect()
}

impl DescribedCluster {
    /// So many nodes of a cluster.
    ///
    /// # Errors
    /// Nodes that it cannot have, and machines that are not known or wrong.
    pub fn of(file: &ClusterFile, count: u64) -> Result<Self, Failure> {
        let file = file.with_nodes(count).map_err(Failure::of)?;
        let machines = file.machines(&MachineStore::of_user());
        Ok(Self {
            machines: machines.map_err(Failure::of)?,
            file,
        })
    }

    /// The cluster, whose nodes compute with these devices.
    fn cluster(&self, computing: Computing) -> Result<Cluster, Failure> {
        Cluster::of(&self.file, &MachineStore::of_user(), computing).map_err(Failure::of)
    }

    /// Gives a workload's subtasks sizes that fit the nodes.
    ///
    /// # Errors
    /// Machines that are not known or wrong.
    fn fit(&self, prepared: &mut PreparedWorkload) -> Result<(), Failure> {
        let cluster = self.cluster(prepared.computing)?;
        prepared.fit(Fit::new(&cluster.infos(), cluster.assumed()))
    }

    /// Simulates all tasks of a workload.
    ///
    /// # Errors
    /// A workload that the nodes' memory does not have room for, or of too many subtasks.
    fn simulate(
        &self,
        prepared: &PreparedWorkload,
        simulation: &Simulation,
    ) -> Result<Report, Failure> {
        self.check(prepared)?;
        let cluster = self.cluster(prepared.computing)?;
        let options = Options {
            spread: simulation.spread.spread(),
            settings: Settings {
                prefetch: simulation.spread.prefetch(),
                ..Settings::default()
            },
            noise: simulation.noise,
            seed: simulation.seed,
            traces: simulation.traces,
            ..Options::default()
        };
        simulate(&cluster, &*prepared.workload, prepared.tile, &options).map_err(Failure::of)
    }

    /// Checks that a workload's subtasks are not too many, and that a node's part of all
    /// spaces fits in the memory of each node.
    ///
    /// # Errors
    /// Names what is too much.
    fn check(&self, prepared: &PreparedWorkload) -> Result<(), Failure> {
        let most = demand::largest_task(&*prepared.workload);
        if most > MOST_SUBTASKS {
            return Err(Failure::failed(
                format!(
                    "{} of {}: a task has {most} subtasks, and at most {MOST_SUBTASKS} are simulated",
                    prepared.workload.name(),
                    prepared.size
                ),
                "a greater --tile, or a smaller size",
            ));
        }
        let count = self.machines.len() as u128;
        let part = prepared.bytes().div_ceil(count);
        let part = u64::try_from(part).unwrap_or(u64::MAX);
        let least = self
            .machines
            .iter()
            .min_by_key(|machine| machine.host.memory);
        let Some(least) = least else { return Ok(()) };
        let title = format!(
            "a node's part, 1/{count} of {}, on cluster {}",
            prepared.size, self.file.name
        );
        let remedy = "a smaller size, or more --nodes";
        host_memory(title, part, least.host.memory, remedy)
    }
}

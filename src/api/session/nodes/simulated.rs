//! Runs on described clusters, in virtual time.

use super::{NodesOptions, NodesWork};
use crate::cluster::protocol::Settings;
use crate::engine::cluster::simulate::{self, Cluster, Computing, Options};
use crate::machine::{ClusterFile, MachineStore};
use crate::report::Machine;
use crate::report::run::Details;
use crate::report::run::nodes::BusiestPart;
use crate::session::{Error, Run};
use crate::trace::nodes;
use crate::workload::cluster::demand;

/// Subtasks of a task that are simulated. So many take a minute, as a subtask takes
/// tens of microseconds, and policies keep some hundred bytes for each.
const MOST_SUBTASKS: u64 = 1_000_000;

/// Simulates a workload on so many nodes of a cluster. Nothing is computed.
///
/// # Errors
/// Nodes that the cluster cannot have, machines that are not known or wrong, too many subtasks,
/// and a node's part that does not fit in its memory.
pub fn simulate(
    file: &ClusterFile,
    count: u64,
    work: &mut NodesWork,
    options: &NodesOptions,
) -> Result<Run, Error> {
    let store = MachineStore::of_user();
    let described = file.with_nodes(count)?;
    let machines = described.machines(&store)?;
    let hosts_only = (work.operation.as_ref()).is_some_and(|asked| asked.operation.hosts_only);
    let computing = match hosts_only {
        true => Computing::Host,
        false => Computing::All,
    };
    let cluster = Cluster::of(&described, &store, computing)?;
    let taking_part = work.fit(&cluster.infos(), cluster.assumed(), options.spread)?;
    let most = demand::largest_task(&*work.workload);
    if most > MOST_SUBTASKS {
        return Err(Error::TooMany(format!(
            "{} of {}: a task has {most} subtasks, and at most {MOST_SUBTASKS} are simulated",
            work.workload.name(),
            work.size
        )));
    }
    let nodes = machines.len() as u128;
    let part = u64::try_from(work.bytes().div_ceil(nodes.max(1))).unwrap_or(u64::MAX);
    let memory = machines.iter().map(|machine| machine.host.memory).min();
    let what = format!(
        "a node's part, 1/{nodes} of {}, on cluster {}",
        work.size, described.name
    );
    Error::unless_free(what, part, memory.unwrap_or(u64::MAX))?;
    let of_run = Options {
        spread: options.spread,
        settings: Settings {
            prefetch: options.prefetch,
            ..Settings::default()
        },
        noise: options.noise,
        seed: options.seed,
        leaves_out: true,
        part: Some(taking_part),
        traces: options.traced,
        ..Options::default()
    };
    let simulated = simulate::simulate(&cluster, &*work.workload, work.tile, &of_run)?;
    let has = file.count();
    let more = (count > has).then(|| {
        format!(
            "cluster {} has {has} nodes; more are simulated as equal ones on the same network",
            file.name
        )
    });
    let rates = "every time is simulated: kernels reach the operations and bytes a second of \
                 the machine files"
        .to_owned();
    let Some(first) = machines.first() else {
        return Err(Error::Arguments(format!(
            "cluster {} has no node; give its file a `node`",
            file.name
        )));
    };
    let machine = Machine {
        name: file.name.clone(),
        ..Machine::simulated(first, Vec::new())
    };
    let outcome = simulated.outcome;
    let of_nodes = outcome.nodes.iter().flat_map(|node| node.notes.clone());
    let notes = std::iter::once(rates).chain(more).chain(of_nodes).collect();
    let mut report = work.report(&outcome, machine, notes, options);
    if let Details::Nodes(own) = &mut report.details {
        own.tile = work.operation.as_ref().map(|_| work.tile);
        own.busiest = simulated.busiest.map(BusiestPart::from);
    }
    let trace = options.traced.then(|| nodes::of(&outcome));
    Ok(Run::new(report, trace.unwrap_or_default()))
}

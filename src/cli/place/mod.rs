//! Where a workload runs, and which options do nothing there: these are refused with a reason,
//! by the table of [`rules`] alone.

pub(super) mod rules;
#[cfg(test)]
mod tests;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use pdawl_api::cluster::wire::environment::Launched;

use super::cluster::lone_machine;
use super::failure::Failure;
use pdawl_api::session::NamedMachine;
use rules::{RECORDING, rule};

/// Where a workload runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the devices of this machine.
    Here,
    /// On a simulated machine.
    Simulated,
    /// On the only node of a described cluster, a simulated machine.
    OneNode,
    /// On several nodes of a described cluster, simulated.
    Cluster,
    /// On the nodes that a launcher has started.
    Nodes,
}

impl Place {
    /// Where a run with these options is.
    pub fn of(given: &ArgMatches) -> Result<Self, Failure> {
        let text = |id| given.try_get_one::<String>(id).ok().flatten();
        let is_given = |id| given.try_contains_id(id).unwrap_or(false);
        if let Some(cluster) = text("cluster") {
            let count = given.try_get_one::<u64>("count").ok().flatten();
            return Ok(match lone_machine(cluster, count.copied())? {
                Some(_) => Self::OneNode,
                None => Self::Cluster,
            });
        }
        let launched = || Launched::detect().is_some_and(|launched| launched.size > 1);
        if is_given("wire") || launched() {
            return Ok(Self::Nodes);
        }
        Ok(match text("machine") {
            _ if is_given("starpu") => Self::Simulated,
            Some(name) if NamedMachine::find(name)?.is_simulated() => Self::Simulated,
            _ => Self::Here,
        })
    }
}

/// Refuses what the command line of `pdawl run WORKLOAD` has and does nothing there.
///
/// # Errors
/// The first such option, and machines and clusters that are not known or wrong.
pub fn check() -> Result<(), Failure> {
    let (command, matches) = super::parsed();
    let Ok(matches) = matches else { return Ok(()) };
    let found = (matches.subcommand()).and_then(|(name, inner)| {
        let (workload, given) = inner.subcommand()?;
        let command = command.find_subcommand(name)?;
        Some((command.find_subcommand(workload)?, given))
    });
    match found {
        Some((workload, given)) => check_at(workload, given, Place::of(given)?),
        None => Ok(()),
    }
}

fn check_at(command: &Command, given: &ArgMatches, place: Place) -> Result<(), Failure> {
    let workload = match given.try_contains_id("starpu") {
        Ok(true) => RECORDING,
        _ => command.get_name(),
    };
    if place == Place::Nodes && !is_of_nodes(command) {
        return Err(Failure::usage(
            format!("{workload} computes on one machine, and several processes were started"),
            "the command without mpirun",
        ));
    }
    for argument in command.get_arguments() {
        let id = argument.get_id().as_str();
        let Some(option) = argument.get_long() else {
            continue;
        };
        if given.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        let values = given.get_raw(id).into_iter().flatten();
        let values: Vec<String> = values
            .map(|value| value.to_string_lossy().into_owned())
            .collect();
        if let Some(rule) = rule(workload, option, place, &values) {
            return Err(rule.refusal(option, &values));
        }
    }
    Ok(())
}

/// Whether a workload can have several nodes.
fn is_of_nodes(command: &Command) -> bool {
    (command.get_arguments()).any(|argument| argument.get_long() == Some("cluster"))
}

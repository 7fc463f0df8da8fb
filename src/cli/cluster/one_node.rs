//! A described cluster of one node: a machine that computes by itself, without messages, as
//! `pdawl run` without nodes does it there.

use pdawl::engine::Outcome;
use pdawl::engine::cluster::simulate::{Computing, Report};
use pdawl::experiment::one_machine::{self, DeviceSeconds, OneMachineRun};
use pdawl::machine::{Device, MachineFile};
use pdawl::policy::NamedPolicy;
use pdawl::runtime::sim::SimDevice;
use pdawl::workload::dense::Operation;

use super::prepared::LonePart;
use crate::args::{MachineArgs, ModelChoice};
use crate::dense::options::POLICY;
use crate::failure::Failure;
use crate::interrupt;
use crate::session::Session;
use crate::workload::WorkloadRequest;

/// A workload on a machine.
pub struct OneNode {
    /// The run, in words.
    pub what: String,
    pub report: Report,
    /// Rows and columns of a subtask's block, if it has some.
    pub tile: Option<u64>,
}

/// The seed of a simulation, and the relative standard deviation of its times, which is the
/// machine file's by default.
pub type Chance = (u64, Option<f64>);

/// A product in tiles of so many rows, or of those that suit the machine.
///
/// # Errors
/// What the simulator and the engine refuse.
pub fn product(
    machine: &MachineFile,
    [rows, columns, depth]: [u32; 3],
    tile: Option<u64>,
    chance: Chance,
) -> Result<OneNode, Failure> {
    let operation = Operation::Product {
        rows,
        columns,
        depth,
    };
    let tile = tile.map(|tile| u32::try_from(tile).unwrap_or(u32::MAX));
    let ran = one_machine::dense(machine, (operation, tile), policy()?, chance);
    let (run, tile) = ran.map_err(Failure::of)?;
    Ok(under_policy(machine, &run, Some(tile.into())))
}

/// A workload over spaces; none if the machine's memory has no room for it.
///
/// # Errors
/// What the simulator and the engine refuse.
pub fn spaces(
    machine: &MachineFile,
    lone: &LonePart,
    computing: Computing,
    chance: Chance,
) -> Result<Option<OneNode>, Failure> {
    let devices = match computing {
        Computing::Host => Some(vec![SimDevice::Host { cores: None }]),
        Computing::All | Computing::Gpus => None,
    };
    let mut tile = None;
    let workload = |devices: &[Device]| {
        let made = (lone.on)(devices);
        tile = made.tile;
        made.workload
    };
    let run = one_machine::spaces((machine, devices), workload, policy()?, chance);
    let run = run.map_err(Failure::of)?;
    Ok(run.map(|run| under_policy(machine, &run, tile)))
}

/// A divisible workload, with the strategy that a run has by default.
///
/// # Errors
/// A workload that does not fit, and what the simulator and the engine refuse.
pub fn divisible(
    machine: &MachineFile,
    request: WorkloadRequest,
    noise: Option<f64>,
) -> Result<OneNode, Failure> {
    let args = MachineArgs::of_node(machine.clone(), noise);
    let mut session = Session::open(&args, request, false, ModelChoice::Fitting, None)?;
    let strategy = session.strategy(None, false);
    let outcome = session.run(&strategy, interrupt::listen()?, &mut |_, _| {})?;
    if outcome.interrupted {
        return Err(Failure::Interrupted);
    }
    Ok(OneNode {
        what: format!("the run on one {} with --strategy {strategy}", machine.name),
        report: run_of(&outcome).report(),
        tile: None,
    })
}

fn run_of(outcome: &Outcome) -> OneMachineRun {
    let devices = outcome.devices.iter().enumerate().map(|(device, name)| {
        let parts = || outcome.steps.iter().map(|step| step.devices[device]);
        DeviceSeconds {
            name: name.clone(),
            kernels: parts()
                .map(|part| part.busy_seconds - part.copy_seconds + part.overlapped_seconds)
                .sum(),
            copies: parts().map(|part| part.copy_seconds).sum(),
        }
    });
    OneMachineRun {
        seconds: outcome.seconds,
        devices: devices.collect(),
    }
}

/// The policy that runs on one machine take by default.
fn policy() -> Result<NamedPolicy, Failure> {
    POLICY.parse().map_err(Failure::of)
}

fn under_policy(machine: &MachineFile, run: &OneMachineRun, tile: Option<u64>) -> OneNode {
    OneNode {
        what: format!("the run on one {} with --policy {POLICY}", machine.name),
        report: run.report(),
        tile,
    }
}

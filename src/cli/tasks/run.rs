//! Runs a set under a policy once, and reports.

use pdawl::machine::DeviceKind;
use pdawl::session::{GraphJob, GraphOptions, NamedMachine, Session};
use pdawl::workload::task_set::Body;

use super::Args;
use crate::args::MachineArgs;
use crate::failure::Failure;
use crate::graph::shown;
use crate::machine_session::{self, Needs};
use crate::paths::Paths;
use crate::{graph, interrupt};

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<(), Failure> {
    let machine = &args.machine;
    let named = machine_session::named(machine)?;
    let body = match named.as_ref().is_some_and(NamedMachine::is_simulated) {
        true => Body::Model,
        false => Body::Real,
    };
    args.set.check(body)?;
    let files = (args.files).prepare(&mut Paths::reading(machine.machine_path()))?;
    let stop = interrupt::listen()?;
    let mut session = open(args, named)?;
    let job = GraphJob::of_set(&args.set.set(body, args.seed))?;
    let options = GraphOptions {
        window: args.window,
        repeats: Some(1),
        seed: args.seed,
        faults: machine.fault.clone(),
        gpu_memory: machine.gpu_memory.map(|size| size.0),
        host_memory: machine.host_memory.map(|size| size.0),
        traced: args.files.wanted(),
        ..GraphOptions::of(args.policy)
    };
    let ran = shown(args.format, "tasks", |progress| {
        session.run_graph(&job, options, stop, progress)
    });
    let run = ran?.run;
    graph::print(&run, run.trace(), args.format, files)?;
    match run.interrupted {
        true => Err(Failure::Interrupted),
        false => Ok(()),
    }
}

/// Opens the devices: the machine's GPUs, unless the user names others.
fn open(args: &Args, named: Option<NamedMachine>) -> Result<Session, Failure> {
    let needs = Needs {
        fp64: false,
        data: false,
        seed: args.seed,
    };
    let open = |machine: &MachineArgs| {
        Session::with(machine_session::options(machine, named.clone(), needs))
    };
    let session = open(&args.machine)?;
    if args.machine.devices.is_some() {
        return Ok(session);
    }
    let gpus = session.devices().iter();
    let gpus = gpus.filter(|device| device.kind == DeviceKind::Gpu);
    let gpus: Vec<&str> = gpus.map(|device| device.name.as_str()).collect();
    if gpus.is_empty() {
        return Err(Failure::usage(
            format!("{} has no GPU", session.name()),
            "--devices with the devices that are to run the tasks, or another --machine",
        ));
    }
    Ok(open(&MachineArgs {
        devices: Some(gpus.join(",")),
        ..args.machine.clone()
    })?)
}

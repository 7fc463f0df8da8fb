//! `pdawl run dag --starpu`: the tasks of a recorded run of StarPU's, simulated on its machine.

use std::path::Path;

use pdawl_api::graph::starpu::load;
use pdawl_api::policy::NamedPolicy;
use pdawl_api::session::{GraphJob, GraphOptions, GraphPolicy, Session};

use super::described::refused;
use crate::args::MachineArgs;
use crate::failure::Failure;
use crate::graph::{self, GraphArgs, shown};
use crate::interrupt;
use crate::machine_session::{self, Needs};
use crate::paths::Paths;

/// Runs the recording of a folder.
pub fn run(folder: &Path, args: &GraphArgs, seed: u64) -> Result<(), Failure> {
    let (scheduling, options) = (&args.scheduling, &args.options);
    let policy = scheduling.policy()?;
    let recording = load(folder).map_err(refused)?;
    let devices = recording.machine.devices.iter();
    let devices: Vec<&str> = devices.map(|device| device.name.as_str()).collect();
    let asked = options.machine.devices.as_deref();
    if policy == NamedPolicy::RECORDED && asked.is_some() {
        return Err(Failure::usage(
            "--devices is for other policies: recorded needs all workers of the recording",
            "no --devices, or another --policy",
        ));
    }
    let unknown =
        asked.and_then(|list| list.split(',').find(|name| !devices.contains(&name.trim())));
    if let Some(unknown) = unknown {
        return Err(Failure::usage(
            format!("--devices: the recording has no worker {unknown}"),
            format!("some of {}", devices.join(",")),
        ));
    }
    let machine = MachineArgs {
        devices: Some(asked.map_or_else(|| devices.join(","), str::to_owned)),
        node: Some(Box::new(recording.machine.clone())),
        ..options.machine.clone()
    };
    let inputs = ["tasks.rec", "data.rec", "activity.data"].map(|name| folder.join(name));
    let mut paths = Paths::reading(inputs.iter().map(|file| file.as_path()));
    let files = options.files.prepare(&mut paths)?;
    let stop = interrupt::listen()?;
    let needs = Needs {
        fp64: false,
        data: false,
        seed,
    };
    let named = machine_session::named(&machine)?;
    let why = format!("{} is the machine of a recording", recording.machine.name);
    let named = named.map(|named| named.simulated(why));
    let mut session = Session::with(machine_session::options(&machine, named, needs))?;
    let name = folder.file_name().unwrap_or(folder.as_os_str());
    let job = GraphJob::of_recording(&recording, name.to_string_lossy().into_owned(), seed);
    let run_options = GraphOptions {
        policy: match policy {
            NamedPolicy::RECORDED => GraphPolicy::recorded(recording.schedule),
            named => GraphPolicy::Named(named),
        },
        window: scheduling.window,
        on_cpu: scheduling.map.unwrap_or(0),
        queues: scheduling.queues.clone(),
        repeats: Some(scheduling.repeats),
        keep_inputs: scheduling.keep_inputs,
        seed,
        faults: machine.fault.clone(),
        gpu_memory: machine.gpu_memory.map(|size| size.0),
        traced: options.files.wanted(),
        ..GraphOptions::of(policy)
    };
    let ran = shown(options.format, "tasks", |progress| {
        session.run_graph(&job, run_options, stop, progress)
    });
    let run = ran?.run.with_notes(recording.notes);
    graph::print(&run, run.trace(), options.format, files)?;
    match run.interrupted {
        true => Err(Failure::Interrupted),
        false => Ok(()),
    }
}

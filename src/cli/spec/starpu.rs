//! `pdawl run dag --starpu`: the tasks of a recorded run of StarPU's, simulated on its machine.

use std::path::Path;

use pdawl_api::graph::spec::starpu::load;
use pdawl_api::policy::NamedPolicy;
use pdawl_api::session::{GraphJob, GraphPolicy};

use super::described::refused;
use crate::failure::Failure;
use crate::graph::{self, GraphArgs, GraphRequest};

/// Runs the recording of a folder.
pub fn run(folder: &Path, args: &GraphArgs, seed: u64) -> Result<(), Failure> {
    let recording = load(folder).map_err(refused)?;
    let is_recorded = args.scheduling.policy()? == NamedPolicy::RECORDED;
    let mut args = args.clone();
    let machine = &mut args.options.machine;
    if is_recorded && machine.devices.is_some() {
        let what = "--devices is for other policies: recorded needs all workers of the recording";
        return Err(Failure::usage(what, "no --devices, or another --policy"));
    }
    let workers = recording.machine.devices.iter();
    let workers: Vec<&str> = workers.map(|worker| worker.name.as_str()).collect();
    machine.devices.get_or_insert_with(|| workers.join(","));
    machine.node = Some(Box::new(recording.machine.clone()));
    let name = folder
        .file_name()
        .unwrap_or(folder.as_os_str())
        .to_string_lossy();
    let note = format!(
        "{} recorded accesses and dependencies are left out: the recorded times contradict them",
        recording.unordered
    );
    let request = GraphRequest {
        job: GraphJob::of_recording(&recording, name.into_owned(), seed),
        policy: is_recorded.then(|| GraphPolicy::recorded(recording.schedule)),
        queues: None,
        fp64: false,
        seed,
        smaller: "a recording of fewer tasks",
        reads: ["tasks.rec", "data.rec", "activity.data"]
            .map(|file| folder.join(file))
            .into(),
        saves: Vec::new(),
        notes: (recording.unordered > 0)
            .then_some(note)
            .into_iter()
            .collect(),
    };
    graph::run(request, &args)
}

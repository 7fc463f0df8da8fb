//! The length of tiles, and the checks that they and the matrices fit in memory, before
//! anything is allocated.

use pdawl::experiment::tasks::TaskExperiment;
use pdawl::graph::GraphError;
use pdawl::machine::Device;
use pdawl::quantity::Bytes;
use pdawl::workload::dense::{DenseTask, tile_size};
use pdawl::workload::task_set::TaskSetError;

use super::options::{DenseOptions, TileArg};
use super::run_job::DenseJob;
use crate::failure::Failure;
use crate::graph;
use pdawl::session::OpenDevices;

/// The remedy when memory does not suffice.
const SMALLER: &str = "a smaller size, or a --precision of fewer bits";

/// The length of tiles: as asked, or chosen for these devices.
pub fn tile(job: &DenseJob, options: &DenseOptions, devices: &[Device]) -> Result<u32, Failure> {
    let longest = job.operation.longest();
    match options.tile {
        TileArg::Rows(rows) if rows > longest => Err(Failure::usage(
            format!(
                "--tile {rows}: the tile is larger than the matrices, which have at most \
                     {longest} rows and columns"
            ),
            format!("--tile {longest} or less, or --tile auto"),
        )),
        TileArg::Rows(rows) => Ok(rows),
        TileArg::Auto => {
            let own = devices
                .iter()
                .filter_map(|device| memory(device, options))
                .min();
            Ok(tile_size::choose(
                &job.operation,
                job.precision,
                devices.len(),
                own,
            ))
        }
    }
}

/// Bytes of a device's own memory that may be used.
fn memory(device: &Device, options: &DenseOptions) -> Option<u64> {
    let most = options.machine.gpu_memory.map_or(u64::MAX, |size| size.0);
    (!device.shares_host_memory).then(|| device.memory.min(most))
}

/// The failure of a set of tasks.
pub fn wrong_set(task: &DenseTask, error: &TaskSetError) -> Failure {
    if let TaskSetError::Graph(GraphError::Stopped) = error {
        return Failure::Interrupted;
    }
    Failure::usage(
        format!("with tiles of {}: {error}", task.tile),
        "a larger --tile",
    )
}

/// Checks that the data of each task fit in each device's memory.
pub fn check_device_memory(
    experiment: &TaskExperiment,
    options: &DenseOptions,
    devices: &[Device],
) -> Result<(), Failure> {
    let Some((name, needed)) = experiment.largest_task() else {
        return Ok(());
    };
    let own = devices
        .iter()
        .filter_map(|device| Some((device, memory(device, options)?)));
    match own.into_iter().find(|(_, has)| *has < needed) {
        None => Ok(()),
        Some((device, has)) => Err(Failure::failed(
            format!(
                "task `{name}` needs {} of the memory of {} at once, which has {}",
                Bytes(needed),
                device.name,
                Bytes(has)
            ),
            "a smaller --tile, a greater --gpu-memory, or other --devices",
        )),
    }
}

/// Checks that the matrices fit in host memory. With `data`, a simulation has numbers.
pub fn check_host_memory(
    task: &DenseTask,
    session: &OpenDevices,
    data: bool,
) -> Result<(), Failure> {
    let matrices = task.operation.matrix_bytes(task.tile, task.precision);
    let (rows, columns) = task.operation.result_size();
    let title = format!("matrices for a result of {rows} x {columns}");
    graph::data_in_host(&title, matrices, (&session.machine, data), SMALLER)
}

//! The check that a graph's data fit in memory, before anything is allocated.

use pdawl::engine::graph::host_bytes;
use pdawl::graph::{Components, TaskGraph};
use pdawl::machine::{Device, Host};
use pdawl::quantity::Bytes;
use pdawl::report::Machine;

use super::GraphJob;
use crate::failure::Failure;

/// Checks that the data of a job fit in the memory of the machine's host, and of this
/// one if they are computed here.
pub fn fits(job: &GraphJob<'_>, machine: &Machine, verify: bool) -> Result<(), Failure> {
    let data = in_host(&job.graph, &machine.devices);
    let here = || Host::detect().memory.obtainable(0);
    match (machine.simulated, verify) {
        (false, false) => check(job, data, here()),
        (false, true) => check(job, data.saturating_add(job.verification), here()),
        (true, false) => check(job, data, machine.host.memory),
        (true, true) => {
            check(job, data, machine.host.memory)?;
            // The memory of simulated devices is here, too.
            let both = all(&job.graph).saturating_mul(2);
            check(job, both.saturating_add(job.verification), here())
        }
    }
}

fn check(job: &GraphJob<'_>, needed: u64, free: u64) -> Result<(), Failure> {
    let greatest = job.graph.data().iter().max_by_key(|datum| datum.bytes);
    let greatest = greatest.map_or(String::new(), |datum| {
        format!(
            "; the largest of its data, {}, is {}",
            datum.name,
            Bytes(datum.bytes)
        )
    });
    host_memory(&job.workload.title, (needed, free), &greatest, job.smaller)
}

/// Checks that `needed` bytes of host memory are `free`. An error names what needs
/// them, with details and a remedy.
pub fn host_memory(
    title: &str,
    (needed, free): (u64, u64),
    details: &str,
    remedy: &str,
) -> Result<(), Failure> {
    if needed <= free {
        return Ok(());
    }
    Err(Failure::failed(
        format!(
            "{title}: it needs {} of host memory, and {} are free{details}",
            Bytes(needed),
            Bytes(free)
        ),
        remedy,
    ))
}

/// Bytes of all data.
fn all(graph: &TaskGraph) -> u64 {
    let sizes = graph.data().iter().map(|datum| datum.bytes);
    sizes.fold(0, u64::saturating_add)
}

/// Bytes of data in host memory, however the kernels are divided into components.
pub fn in_host(graph: &TaskGraph, devices: &[Device]) -> u64 {
    host_bytes(graph, &Components::single_kernels(graph), devices)
}

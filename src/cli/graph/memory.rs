//! Whether a graph's data have room, before anything is allocated.

use pdawl::graph::TaskGraph;
use pdawl::machine::{Device, Host};
use pdawl::quantity::Bytes;
use pdawl::report::schema::Machine;

use super::Job;
use crate::cli::failure::Failure;

/// Refuses a job whose data have no room in the memory of the machine's host,
/// or of this one where data are computed.
pub fn fits(job: &Job<'_>, machine: &Machine, verify: bool) -> Result<(), Failure> {
    let data = in_host(&job.graph, &machine.devices);
    let here = || Host::detect().memory.obtainable(0);
    match (machine.simulated, verify) {
        (false, false) => check(job, data, here()),
        (false, true) => check(job, data.saturating_add(job.verification), here()),
        (true, false) => check(job, data, machine.host.memory),
        (true, true) => {
            check(job, data, machine.host.memory)?;
            // The simulated devices' memory is here as well.
            let both = all(&job.graph).saturating_mul(2);
            check(job, both.saturating_add(job.verification), here())
        }
    }
}

fn check(job: &Job<'_>, needed: u64, free: u64) -> Result<(), Failure> {
    if needed <= free {
        return Ok(());
    }
    let greatest = job.graph.data().iter().max_by_key(|datum| datum.bytes);
    let greatest = greatest.map_or(String::new(), |datum| {
        format!(
            "; the greatest of its data, {}, is {}",
            datum.name,
            Bytes(datum.bytes)
        )
    });
    Err(Failure::failed(
        format!(
            "{}: it needs {} of host memory, and {} are free{greatest}",
            job.title,
            Bytes(needed),
            Bytes(free)
        ),
        job.smaller,
    ))
}

/// Bytes of all data.
fn all(graph: &TaskGraph) -> u64 {
    let sizes = graph.data().iter().map(|datum| datum.bytes);
    sizes.fold(0, u64::saturating_add)
}

/// Bytes that lie in host memory: all where some device computes there, else
/// what the host gives and gets.
fn in_host(graph: &TaskGraph, devices: &[Device]) -> u64 {
    if devices.iter().any(|device| device.shares_host_memory) {
        return all(graph);
    }
    let hosts = (graph.data().iter()).filter(|datum| datum.wanted || datum.contents.is_some());
    hosts.map(|datum| datum.bytes).fold(0, u64::saturating_add)
}

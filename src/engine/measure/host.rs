//! Measures the pool of host cores.

use super::figures::rounded;
use super::probe::{HostMemory, Probe};
use super::{MachineDescription, MeasureError};
use crate::codelet::Memory;
use crate::machine::{HostSpec, file};
use crate::runtime::DeviceId;

/// Most bytes that one core copies by itself.
const ONE_CORE: u64 = 256 << 20;

/// Copies by all cores and by one, and what a launch costs.
pub fn measure(
    probe: &mut Probe,
    pool: DeviceId,
    memory: &HostMemory,
    about: &MachineDescription,
    progress: &mut dyn FnMut(&str, &str),
) -> Result<HostSpec, MeasureError> {
    let device = probe.device(pool).clone();
    let queue = probe.queue(pool)?;
    let (from, to) = (Memory::Host(memory.from), Memory::Host(memory.to));

    progress(&device.name, "copy by all cores");
    let (copy, traffic) = probe.large_copy(from, to, memory.bytes);
    let memory_bandwidth = rounded(probe.rate(queue, &copy, traffic)?);

    progress(&device.name, "copy by one core");
    // One unit is never divided, so one core copies it.
    let bytes = memory.bytes.min(ONE_CORE);
    let by_one = probe.copy(from, to, 1, bytes as u32);
    let core_bandwidth = rounded(probe.rate(queue, &by_one, 2.0 * bytes as f64)?);

    progress(&device.name, "stencils");
    let efficiency = probe.efficiencies(queue, (from, to), memory.bytes, memory_bandwidth)?;

    let reached = memory_bandwidth * file::efficiency(&efficiency, "stencil5");
    let flops = probe.superstep(queue, (from, to), memory.bytes, reached)?;

    progress(&device.name, "launch overhead and completion latency");
    let short = probe.copy(from, to, device.compute_units.into(), 16);
    let launch_overhead_ns = probe.row(queue, &copy, &short)?.period;
    let completion_latency_ns = probe.completion(queue, &short)?;

    Ok(HostSpec {
        model: device.model,
        sockets: about.sockets.max(1),
        cores: device.compute_units,
        clock_mhz: device.clock_mhz,
        l2: about.l2,
        l3: about.l3,
        memory: device.memory,
        memory_bandwidth,
        shared_bandwidth: None,
        // A single core beats all of them only by a measurement's error.
        core_bandwidth: core_bandwidth.min(memory_bandwidth),
        bus_bandwidth: None,
        flops,
        launch_overhead_ns,
        completion_latency_ns,
        efficiency,
    })
}

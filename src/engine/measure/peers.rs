//! Measures copies from one device's memory to another one's: directly, where that is
//! possible, and through host memory. The faster way is the machine's.

use super::MeasureError;
use super::probe::{Probe, rounded, seconds};
use crate::codelet::{BufferId, HostMemoryId};
use crate::machine::PeerSpec;
use crate::runtime::{Command, DeviceId, Location, PeerPath, QueueId, Rows, RuntimeError};

/// Bytes of the largest copy at most. Some drivers copy directly at a fiftieth of the
/// links' speed, and machines with many devices have many pairs.
const MOST: u64 = 256 << 20;
/// Bytes of a copy that takes as long as one of nothing.
const LITTLE: u64 = 64;

/// The ways between these devices, which have memory of their own. The runtime uses
/// them from then on.
pub fn measure(
    probe: &mut Probe,
    devices: &[DeviceId],
    progress: &mut dyn FnMut(&str, &str),
) -> Result<Vec<PeerSpec>, MeasureError> {
    let mut peers = Vec::new();
    for from in devices {
        for to in devices.iter().filter(|to| *to != from) {
            let source = probe.device(*from).name.clone();
            let target = probe.device(*to).name.clone();
            progress(&source, &format!("copies to {target}"));
            let mut best: Option<PeerSpec> = None;
            for through_host in [false, true] {
                let found = measure_way(probe, (*from, *to), through_host)?;
                best = found
                    .filter(|found| best.as_ref().is_none_or(|b| b.bandwidth < found.bandwidth))
                    .or(best);
            }
            if let Some(best) = best {
                probe.set_peer_path(*from, *to, PeerPath::from(&best))?;
                peers.push(best);
            }
        }
    }
    Ok(peers)
}

/// The figures of copies that go so; `None` where they cannot.
fn measure_way(
    probe: &mut Probe,
    (from, to): (DeviceId, DeviceId),
    through_host: bool,
) -> Result<Option<PeerSpec>, MeasureError> {
    let path = PeerPath {
        bandwidth: 0.0,
        through_host,
    };
    match probe.set_peer_path(from, to, path) {
        Ok(()) => {}
        Err(RuntimeError::Unsupported { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let bytes = probe.size(from, 8)?.min(probe.size(to, 8)?).min(MOST);
    let (source, target) = (probe.buffer(from, bytes)?, probe.buffer(to, bytes)?);
    let host = probe.host(LITTLE)?;
    let queues = (probe.queue(from)?, probe.queue(to)?);
    let mut seconds = |bytes| {
        let copy = (bytes > 0).then(|| Command::Copy {
            from: Location::device(source, 0),
            to: Location::device(target, 0),
            rows: Rows::one(bytes),
        });
        probe.median(|probe| once(probe, queues, (source, target), host, copy.as_ref()))
    };
    let (none, little, whole) = (seconds(0)?, seconds(LITTLE)?, seconds(bytes)?);
    // The clock counts nanoseconds.
    let bandwidth = (bytes - LITTLE) as f64 / (whole - little).max(1e-9);
    probe.free_queues();
    probe.free_buffers();
    Ok(Some(PeerSpec {
        from: probe.device(from).name.clone(),
        to: probe.device(to).name.clone(),
        bandwidth: rounded(bandwidth),
        latency_ns: (1e9 * (little - none).max(0.0)) as u64,
        through_host,
    }))
}

/// Seconds of a copy of which the target reads something afterwards, by the host's clock.
/// The source wrote something before. A driver that keeps one memory for all devices moves
/// a buffer only where it is used: without these two, nothing moves, and no time is right.
fn once(
    probe: &mut Probe,
    (source_queue, target_queue): (QueueId, QueueId),
    (source, target): (BufferId, BufferId),
    host: HostMemoryId,
    copy: Option<&Command>,
) -> Result<f64, MeasureError> {
    let little = |to| Command::write(host, 0..LITTLE, to, 0);
    probe.submit(source_queue, little(source))?;
    probe.submit(target_queue, little(target))?;
    probe.completions(2)?;
    let begin = probe.now();
    if let Some(copy) = copy {
        probe.submit(target_queue, copy.clone())?;
    }
    let read = Command::read(target, 0, host, 0..LITTLE);
    probe.submit(target_queue, read)?;
    probe.completions(1 + usize::from(copy.is_some()))?;
    Ok(seconds(begin, probe.now()))
}

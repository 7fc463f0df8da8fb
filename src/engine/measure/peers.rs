//! Measures copies from one device's memory to another one's: directly, where that is
//! possible, and through host memory. The faster way is the machine's.

use super::MeasureError;
use super::figures::rounded;
use super::probe::Probe;
use crate::machine::PeerSpec;
use crate::runtime::{Command, DeviceId, Location, PeerPath, RuntimeError};

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
    let queue = probe.queue(to)?;
    let copy = |bytes| Command::Copy {
        from: Location::device(source, 0),
        to: Location::device(target, 0),
        bytes,
    };
    let bandwidth = probe.rate(queue, &copy(bytes), bytes as f64)?;
    let little = probe.rate(queue, &copy(LITTLE), LITTLE as f64)?;
    probe.free_queues();
    probe.free_buffers();
    Ok(Some(PeerSpec {
        from: probe.device(from).name.clone(),
        to: probe.device(to).name.clone(),
        bandwidth: rounded(bandwidth),
        latency_ns: (1e9 * LITTLE as f64 / little) as u64,
        through_host,
    }))
}

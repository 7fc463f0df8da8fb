//! Joins the run that a launcher has started.

use std::path::Path;

use super::environment::Launched;
use super::heartbeat::Pulse;
use super::{PluginWire, Wire, WireError, plugin};

/// The wire to the other processes that `mpirun` or another launcher has started together
/// with this one; nothing if this process is alone. `named` is a library that the user
/// names; it is used in any case. All ranks call this at the same time.
///
/// An error that all ranks have is worth printing once: by the one whose
/// [`Launched::rank`] is 0.
pub fn join(named: Option<&Path>, pulse: Pulse) -> Result<Option<PluginWire>, WireError> {
    let launched = Launched::detect();
    let ranks = launched.map_or(1, |launched| launched.size);
    if ranks == 1 && named.is_none() {
        return Ok(None);
    }
    let file = plugin::find(named)?;
    let wire = PluginWire::join(&file, pulse)?;
    let joined = wire.size();
    // An MPI that another MPI's launcher has started makes a run of each process.
    match launched {
        Some(_) if joined != ranks => Err(WireError::OtherLauncher {
            file,
            ranks,
            joined,
        }),
        _ => Ok(Some(wire)),
    }
}

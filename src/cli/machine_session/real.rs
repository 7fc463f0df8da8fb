//! The devices of this machine, open as a command wants them.

use pdawl::machine::{Device, PeerSpec};
use pdawl::runtime::select::{self, Selection};
use pdawl::runtime::{DeviceId, PeerPath, Runtime};

use crate::cli::failure::{Failure, refused, wrong_devices};

/// Open devices of this machine. A plan may want fewer of the host's cores than
/// the user asked for, so the devices can be opened anew.
pub struct RealDevices {
    runtime: Option<Box<dyn Runtime>>,
    /// What the user asked for; `None`: every device.
    asked: Option<Selection>,
    /// What `runtime` was opened with.
    open: Option<Selection>,
    fp64: bool,
    /// How copies go between devices, where that was measured.
    peers: Vec<PeerSpec>,
}

impl RealDevices {
    /// Opens a list of devices, or all. The texts returned tell what was left
    /// out.
    ///
    /// # Errors
    /// As [`select::open`].
    pub fn open(list: Option<&str>, fp64: bool) -> Result<(Self, Vec<String>), Failure> {
        let asked = list.map(selection).transpose()?;
        let (runtime, notes) = select::open(asked.as_ref(), fp64).map_err(refused)?;
        let devices = Self {
            runtime: Some(runtime),
            open: asked.clone(),
            asked,
            fp64,
            peers: Vec::new(),
        };
        Ok((devices, notes))
    }

    /// From now on copies between devices go as these say.
    pub fn connect(&mut self, peers: Vec<PeerSpec>) {
        self.peers = peers;
        if let Some(runtime) = &mut self.runtime {
            connect(runtime.as_mut(), &self.peers);
        }
    }

    /// Asks for this list from now on, and returns its devices.
    ///
    /// # Errors
    /// When they cannot be opened.
    pub fn ask_for(&mut self, list: &str) -> Result<Vec<Device>, Failure> {
        self.asked = Some(selection(list)?);
        Ok(self.runtime(None)?.devices().to_vec())
    }

    /// The runtime of a list of devices; `None`: of those that the user asked
    /// for.
    ///
    /// # Errors
    /// When other devices are open, and these cannot be opened.
    pub fn runtime(&mut self, list: Option<&str>) -> Result<&mut dyn Runtime, Failure> {
        let wanted = match list {
            Some(list) => Some(selection(list)?),
            None => self.asked.clone(),
        };
        if self.open != wanted {
            // Cores and devices are given back before they are taken again.
            self.runtime = None;
        }
        let runtime = match self.runtime.take() {
            Some(runtime) => runtime,
            None => {
                let opened = select::open(wanted.as_ref(), self.fp64);
                let (mut runtime, _) = opened.map_err(refused)?;
                connect(runtime.as_mut(), &self.peers);
                runtime
            }
        };
        self.open = wanted;
        Ok(self.runtime.insert(runtime).as_mut())
    }
}

/// Tells a runtime how copies between its devices go.
fn connect(runtime: &mut dyn Runtime, peers: &[PeerSpec]) {
    for peer in peers {
        let mut names = runtime.devices().iter().map(|device| &device.name);
        let from = names.clone().position(|name| *name == peer.from);
        let to = names.position(|name| *name == peer.to);
        if let (Some(from), Some(to)) = (from, to) {
            // Refused if the driver has changed; copies then go through host memory.
            let _ = runtime.set_peer_path(DeviceId(from), DeviceId(to), PeerPath::from(peer));
        }
    }
}

/// Reads a list of devices.
fn selection(list: &str) -> Result<Selection, Failure> {
    list.parse().map_err(wrong_devices)
}

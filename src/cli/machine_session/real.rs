//! The devices of this machine, open as a command wants them.

use pdawl::machine::{Device, PeerSpec};
use pdawl::runtime::select::{self, Selection};
use pdawl::runtime::sim::{At, FaultEffect};
use pdawl::runtime::union::Union;
use pdawl::runtime::union::faults::{Effect, Fault, When};
use pdawl::runtime::{DeviceId, PeerPath, Runtime};

use crate::failure::{Failure, refused, wrong_devices};
use crate::fault::FaultSpec;

/// Open devices of this machine. A plan may want fewer of the host's cores than
/// the user asked for, so the devices can be opened anew.
pub struct RealDevices {
    runtime: Option<Box<Union>>,
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
    /// As [`select::open_union`].
    pub fn open(list: Option<&str>, fp64: bool) -> Result<(Self, Vec<String>), Failure> {
        let asked = list.map(selection).transpose()?;
        let (runtime, notes) = select::open_union(asked.as_ref(), fp64).map_err(refused)?;
        let devices = Self {
            runtime: Some(Box::new(runtime)),
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

    /// From now on devices are lost as these say, at times that count from the first run.
    ///
    /// # Errors
    /// A device that takes no part, other faults than losses, and steps instead of times.
    pub fn lose(&mut self, specs: &[FaultSpec], devices: &[Device]) -> Result<(), Failure> {
        let losses = specs.iter().map(|spec| loss(spec, devices));
        let losses = losses.collect::<Result<_, _>>()?;
        if let Some(runtime) = &mut self.runtime {
            runtime.inject(losses);
        }
        Ok(())
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
                let opened = select::open_union(wanted.as_ref(), self.fp64);
                let (mut runtime, _) = opened.map_err(refused)?;
                connect(&mut runtime, &self.peers);
                Box::new(runtime)
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

/// The loss of a device.
fn loss(spec: &FaultSpec, devices: &[Device]) -> Result<Fault, Failure> {
    let (FaultEffect::Lost, At::Seconds(seconds)) = (spec.what, spec.at) else {
        return Err(Failure::usage(
            "--fault: on real devices, only the loss of a device at a time can be injected",
            format!(
                "{}:lost@0.5s, or --machine NAME of another machine",
                spec.device
            ),
        ));
    };
    Ok(Fault {
        device: DeviceId(spec.index(devices)?),
        when: When::Time((seconds * 1e9) as u64),
        effect: Effect::Lose,
    })
}

/// Reads a list of devices.
fn selection(list: &str) -> Result<Selection, Failure> {
    list.parse().map_err(wrong_devices)
}

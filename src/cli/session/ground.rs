//! Where commands run: real devices, or a simulated machine.

use pdawl::machine::{Device, MachineFile};
use pdawl::runtime::Runtime;
use pdawl::runtime::select::{self, Selection};
use pdawl::runtime::sim::{Sim, SimDevice, SimOptions};

use crate::cli::failure::{Failure, refused, wrong_devices};

/// Where commands run.
pub enum Ground {
    Real(Rig),
    /// Each run begins on a machine of its own, at time 0.
    Simulated(Box<MachineFile>, SimOptions),
}

impl Ground {
    /// Does something with the devices, which begin anew if they are
    /// simulated. `cores`: with so many of the host's cores instead of all.
    ///
    /// # Errors
    /// When they cannot be opened so.
    pub fn with<T>(
        &mut self,
        cores: Option<u32>,
        devices: &[Device],
        act: impl FnOnce(&mut dyn Runtime) -> T,
    ) -> Result<T, Failure> {
        match self {
            Self::Real(rig) => Ok(act(match cores {
                Some(cores) => rig.with_cores(cores, devices)?,
                None => rig.as_asked()?,
            })),
            Self::Simulated(file, options) => {
                let mut options = options.clone();
                if cores.is_some() {
                    let others = devices.iter().skip(1);
                    let others = others.map(|d| SimDevice::Named(d.name.clone()));
                    let host = SimDevice::Host { cores };
                    options.devices = Some(std::iter::once(host).chain(others).collect());
                }
                let mut sim = Sim::new(file, options).map_err(refused)?;
                Ok(act(&mut sim))
            }
        }
    }
}

/// The devices that the user asked for. A plan may want fewer of the host's
/// cores, so they can be opened anew.
pub struct Rig {
    runtime: Option<Box<dyn Runtime>>,
    asked: Option<Selection>,
    fp64: bool,
    /// What they are open as.
    open: Option<Selection>,
}

impl Rig {
    /// Opens the devices; the texts returned tell what was left out.
    ///
    /// # Errors
    /// As [`select::open`].
    pub fn open(asked: Option<Selection>, fp64: bool) -> Result<(Self, Vec<String>), Failure> {
        let (runtime, notes) = select::open(asked.as_ref(), fp64).map_err(refused)?;
        let rig = Self {
            runtime: Some(runtime),
            open: asked.clone(),
            asked,
            fp64,
        };
        Ok((rig, notes))
    }

    /// The devices as asked for.
    ///
    /// # Errors
    /// When they have to be opened again and that fails.
    pub fn as_asked(&mut self) -> Result<&mut dyn Runtime, Failure> {
        self.opened(self.asked.clone())
    }

    /// From now on these devices are what the user asked for.
    pub fn narrow(&mut self, devices: Selection) {
        self.asked = Some(devices);
    }

    /// The same `devices` with this many of the host's cores, which come first.
    ///
    /// # Errors
    /// When they cannot be opened so.
    pub fn with_cores(
        &mut self,
        cores: u32,
        devices: &[Device],
    ) -> Result<&mut dyn Runtime, Failure> {
        let mut list = format!("host:{cores}");
        for device in devices.iter().skip(1) {
            list.push(',');
            list.push_str(&device.name);
        }
        let selection = list.parse::<Selection>().map_err(wrong_devices)?;
        self.opened(Some(selection))
    }

    fn opened(&mut self, wanted: Option<Selection>) -> Result<&mut dyn Runtime, Failure> {
        if self.open != wanted {
            // Cores and devices are given back before they are taken again.
            self.runtime = None;
        }
        let runtime = match self.runtime.take() {
            Some(runtime) => runtime,
            None => select::open(wanted.as_ref(), self.fp64).map_err(refused)?.0,
        };
        self.open = wanted;
        Ok(self.runtime.insert(runtime).as_mut())
    }
}

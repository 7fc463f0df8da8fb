//! The devices of this machine, opened through their drivers.

use std::process;
use std::time::Instant;

use crossbeam_channel::unbounded;

use super::{Error, selection};
use crate::machine::MachineFile;
use crate::runtime::select::{self, Selection};
use crate::runtime::union::Union;
use crate::runtime::union::faults::Fault;
use crate::runtime::{DeviceId, Devices as _, Notice, PeerPath, Runtime};

/// Open devices, which stay open for the next run.
pub struct RealDevices {
    union: Union,
    /// What the user asked for; `None` for every device.
    asked: Option<Selection>,
    /// What `union` has; the outer `None` if it could not be opened.
    open: Option<Option<Selection>>,
    fp64: bool,
    /// The GPU whose memory is the host's, too, by CUDA's number, if one's is.
    arrays_on: Option<usize>,
    /// What is known of their links, and how copies between them go.
    file: Option<MachineFile>,
    /// The process that has opened them.
    process: u32,
}

impl Drop for RealDevices {
    fn drop(&mut self) {
        if self.process != process::id() {
            // A forked process has no threads to wait for, and its drivers do not work.
            std::mem::forget(std::mem::replace(&mut self.union, nothing()));
        }
    }
}

/// No devices.
fn nothing() -> Union {
    Union::new(Vec::new(), unbounded().1, Instant::now())
}

impl RealDevices {
    /// Opens the devices of a list, with notes about them. `fp64` says whether
    /// the work needs double precision, and `arrays_on` has a GPU whose memory is the host's, too.
    ///
    /// # Errors
    /// As [`select::open_union`].
    pub fn open(
        list: Option<&str>,
        fp64: bool,
        arrays_on: Option<usize>,
    ) -> Result<(Self, Vec<String>), Error> {
        let asked = list.map(selection).transpose()?;
        let (mut union, notes) = select::open_union(asked.as_ref(), fp64)?;
        keep_on(&mut union, arrays_on);
        let devices = Self {
            union,
            open: Some(asked.clone()),
            asked,
            fp64,
            arrays_on,
            file: None,
            process: process::id(),
        };
        Ok((devices, notes))
    }

    /// From now on, links carry what is known of them, and copies between devices go as that says.
    pub fn connect(&mut self, file: MachineFile) {
        connect(&mut self.union, &file);
        self.file = Some(file);
    }

    /// From now on, until they are opened anew, devices have these faults.
    pub fn lose(&mut self, faults: Vec<Fault>) {
        self.union.inject(faults);
    }

    /// The devices of a list, or those that were asked for. Other ones than
    /// before are opened after those are closed.
    ///
    /// # Errors
    /// When they cannot be opened.
    pub fn with(&mut self, list: Option<&str>) -> Result<&mut dyn Runtime, Error> {
        let wanted = match list {
            Some(list) => Some(selection(list)?),
            None => self.asked.clone(),
        };
        if self.open.as_ref() != Some(&wanted) {
            (self.union, self.open) = (nothing(), None);
            self.union = select::open_union(wanted.as_ref(), self.fp64)?.0;
            keep_on(&mut self.union, self.arrays_on);
            if let Some(file) = &self.file {
                connect(&mut self.union, file);
            }
            self.open = Some(wanted);
        }
        Ok(&mut self.union)
    }

    /// The devices that are open.
    pub fn runtime(&mut self) -> &mut dyn Runtime {
        &mut self.union
    }
}

fn keep_on(union: &mut Union, gpu: Option<usize>) {
    if let Some(gpu) = gpu {
        union.notify(Notice::HostMemoryOn(gpu));
    }
}

/// Tells devices of their links, and lets copies between them go directly. A path between devices
/// that are not open is ignored, as are devices that cannot: copies between them go through the host.
fn connect(runtime: &mut dyn Runtime, file: &MachineFile) {
    runtime.set_host_bandwidth(Some(file.host.shared()));
    for device in 0..runtime.devices().len() {
        let name = &runtime.devices()[device].name;
        let spec = file.devices.iter().find(|spec| spec.name == *name);
        if let Some(link) = spec.and_then(|spec| spec.link.as_ref()) {
            runtime.set_link(DeviceId(device), link);
        }
    }
    for peer in &file.peers {
        let mut names = runtime.devices().iter().map(|device| &device.name);
        let from = names.clone().position(|name| *name == peer.from);
        let to = names.position(|name| *name == peer.to);
        if let (Some(from), Some(to)) = (from, to) {
            let _ = runtime.set_peer_path(DeviceId(from), DeviceId(to), PeerPath::from(peer));
        }
    }
}

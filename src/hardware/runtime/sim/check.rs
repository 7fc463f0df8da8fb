//! Refuses commands that their device cannot run, before they are enqueued.

use super::Sim;
use crate::codelet::Memory;
use crate::machine::DeviceKind;
use crate::runtime::{Command, DeviceId, Devices, Launch, Location, RuntimeError};

impl Sim {
    /// Refuses a command that its device cannot run.
    pub(super) fn check(&self, device: DeviceId, command: &Command) -> Result<(), RuntimeError> {
        match command {
            Command::Series(commands) if commands.is_empty() => {
                Err(self.refuse(device, "submit", "a series of no commands".into()))
            }
            Command::Series(commands) => commands.iter().try_for_each(|part| match part {
                Command::Series(_) => {
                    Err(self.refuse(device, "submit", "a series within a series".into()))
                }
                Command::Graph(_) => {
                    Err(self.refuse(device, "submit", "a command graph within a series".into()))
                }
                single => self.check(device, single),
            }),
            Command::Launch(launch) => self.check_launch(device, launch),
            Command::Repeat(launch) => self.check_launch(device, launch),
            Command::Graph(graph) => {
                if !self.runs_graphs(device) {
                    let why = "it runs no command graphs; enqueue its launches one by one";
                    return Err(self.refuse(device, "submit", why.into()));
                }
                let mut launches = graph.launches().iter();
                launches.try_for_each(|of| self.check_launch(device, &of.launch))
            }
            Command::Copy { from, to, rows } => {
                let [read, written] = rows.spans();
                let owners = [
                    self.check_span(device, *from, read)?,
                    self.check_span(device, *to, written)?,
                ];
                match owners.contains(&Some(device.0)) {
                    true => Ok(()),
                    false => {
                        let why = "neither memory is this device's".into();
                        Err(self.refuse(device, "submit", why))
                    }
                }
            }
        }
    }

    fn check_launch(&self, device: DeviceId, launch: &Launch) -> Result<(), RuntimeError> {
        let model = self.model(device)?;
        for value in &launch.args {
            if let Some(memory) = value.memory() {
                let owner = self.check_span(device, Location { memory, offset: 0 }, 0)?;
                if owner.is_some_and(|owner| owner != device.0) {
                    let why = "the buffer is another device's".into();
                    return Err(self.refuse(device, "launch", why));
                }
                let on_host = matches!(memory, Memory::Host(_));
                if on_host != model.device.shares_host_memory {
                    return Err(self.refuse(
                        device,
                        "launch",
                        "an argument is not in the memory that it computes on".into(),
                    ));
                }
            }
        }
        // With data, whatever the device, the native implementation runs.
        let codelet = &launch.codelet;
        let on_cpu = model.device.kind == DeviceKind::Cpu;
        let native = on_cpu || self.memory.has_data();
        if (native && codelet.host.is_none()) || (!on_cpu && codelet.opencl.is_none()) {
            return Err(RuntimeError::NoImplementation {
                device: model.device.name.clone(),
                codelet: codelet.name.to_string(),
            });
        }
        Ok(())
    }

    /// Refuses what does not lie within a memory. Returns the device that has it.
    fn check_span(
        &self,
        device: DeviceId,
        Location { memory, offset }: Location,
        bytes: u64,
    ) -> Result<Option<usize>, RuntimeError> {
        let (owner, length) = self.memory.lookup(memory).ok_or(RuntimeError::Unknown {
            what: match memory {
                Memory::Host(_) => "host memory",
                Memory::Device(_) => "buffer",
            },
        })?;
        if offset.checked_add(bytes).is_none_or(|end| end > length) {
            let why = format!("{bytes} bytes at {offset} leave memory of {length} bytes");
            return Err(self.refuse(device, "submit", why));
        }
        Ok(owner)
    }

    /// The error of a call that a device refuses.
    pub(super) fn refuse(&self, device: DeviceId, call: &'static str, why: String) -> RuntimeError {
        RuntimeError::Call {
            device: self.devices[device.0].name.clone(),
            call,
            why,
        }
    }
}

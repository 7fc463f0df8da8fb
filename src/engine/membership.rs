//! Whether a device of a run is still the one that the run began with. The one place that
//! decides what is left of a device that was lost, and whether it can take part again.
//!
//! A device that comes back has another [`Generation`], and nothing of what an earlier one
//! had: no memory, no queues. A device that failed a command without being lost keeps its
//! generation, so a run that gave it up leaves it out.

use crate::runtime::{DeviceId, Devices, Generation};

/// A device's part in a run: the generation to which its memory and queues belong.
#[derive(Clone, Debug)]
pub struct Membership {
    device: DeviceId,
    generation: Generation,
}

impl Membership {
    /// Of a device that begins to take part now.
    pub fn begin<D: Devices + ?Sized>(runtime: &D, device: DeviceId) -> Self {
        Self {
            device,
            generation: runtime.generation(device).unwrap_or_default(),
        }
    }

    /// Why the device's memory and queues exist no more, if so.
    pub fn ended<D: Devices + ?Sized>(&self, runtime: &D) -> Option<&'static str> {
        match runtime.generation(self.device) {
            Some(present) if present == self.generation => None,
            Some(_) => Some("it was lost with its memory, and is back"),
            None => Some("it was lost with its memory"),
        }
    }

    /// Takes part again, if the device is there in another generation than before.
    pub fn renew<D: Devices + ?Sized>(&mut self, runtime: &D) -> bool {
        let present = runtime.generation(self.device);
        let present = present.filter(|present| *present != self.generation);
        if let Some(present) = present {
            self.generation = present;
        }
        present.is_some()
    }
}

//! Which GPU an OpenCL device is, as far as its driver says.

use opencl3::device::Device;

use crate::runtime::gpu_identity::GpuIdentity;

/// A device's identity; nothing where its driver does not say.
pub(super) fn identity(device: Device) -> GpuIdentity {
    // NVIDIA has the number of the device on its bus in the upper five of eight bits.
    let slot = device.pci_slot_id_nv().ok().map(|slot| slot >> 3);
    GpuIdentity {
        uuid: device.uuid_khr().ok().filter(|uuid| *uuid != [0; 16]),
        pci: device.pci_bus_id_nv().ok().zip(slot),
    }
}

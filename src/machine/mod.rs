//! What there is: devices, links and the host, as found or as described.
//!
//! * [`Device`] is a runtime's own account of a device.
//! * [`Host`] describes the machine around the devices.

pub mod device;
pub mod host;

pub use device::{Device, DeviceKind, RuntimeKind, SubDeviceSupport};
pub use host::Host;

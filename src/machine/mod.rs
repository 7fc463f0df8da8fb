//! What there is: devices, links and the host, as found or as described.
//!
//! [`Device`] is a runtime's own account of a device.

pub mod device;

pub use device::{Device, DeviceKind, RuntimeKind, SubDeviceSupport};

//! Machines: devices, links and the host, as detected or as described in a file.
//!
//! * [`Device`] is a device as a runtime reports it.
//! * [`Host`] describes the machine around the devices.
//! * [`MachineFile`] is a machine as a TOML file describes it, [`MachineStore`] finds
//!   and saves such files, and [`Fingerprint`] tells whether one describes this
//!   machine.
//! * [`ClusterFile`] is a cluster: nodes by machine file, and the network between them.
//!   [`ClusterStore`] finds and saves such files.

mod check;
pub mod cluster;
mod cluster_store;
pub mod device;
pub mod error;
pub mod file;
pub mod fingerprint;
pub mod host;
pub mod store;

#[cfg(test)]
mod tests;

pub use crate::file_store::StoreError;
pub use cluster::ClusterFile;
pub use cluster_store::ClusterStore;
pub use device::{Device, DeviceKind, RuntimeKind, SubDeviceSupport, is_pool, likely_fastest};
pub use error::MachineError;
pub use file::{DeviceSpec, HostSpec, LinkSpec, MachineFile, Noise, PeerSpec};
pub use fingerprint::Fingerprint;
pub use host::Host;
pub use store::{MachineStore, find, load};

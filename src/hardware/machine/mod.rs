//! Machines: devices, links and the host, as detected or as described in a file.
//!
//! * [`Device`] is a device as a runtime reports it.
//! * [`Host`] describes the machine around the devices.
//! * [`MachineFile`] is a machine as a TOML file describes it, [`MachineStore`] finds
//!   and saves such files, and [`Fingerprint`] tells whether one describes this
//!   machine.
//! * `change` makes machines with changes, which names can have.
//! * [`ClusterFile`] is a cluster: nodes by machine file, and the network between them.
//!   [`ClusterStore`] finds and saves such files.
//!
//! The errors of machine files. Each names the file, the key and the remedy.
//!
//! Identifies a machine: a machine file describes this machine if its fingerprint
//! matches.

mod change;
mod check;
pub mod cluster;
pub mod file;
pub mod host;
pub mod store;

use std::fmt;
use std::path::PathBuf;

use thiserror::Error;

pub use crate::file_store::StoreError;
pub use cluster::{ClusterFile, ClusterStore};
pub use file::{
    Device, DeviceKind, DeviceSpec, HostSpec, LinkSpec, MachineFile, Noise, PeerSpec, RuntimeKind,
    SubDeviceSupport, is_pool, likely_fastest,
};
pub use host::Host;
pub use store::{MachineStore, find, load};

/// An error of machine files.
#[derive(Debug, Error)]
pub enum MachineError {
    #[error(
        "{file}: cannot be read: {source}; give the path of a {what} file, \
         or a name that `pdawl {what} list` shows"
    )]
    Read {
        /// `machine` or `cluster`.
        what: &'static str,
        file: String,
        source: std::io::Error,
    },

    #[error(
        "{file}: the first key must be `format = \"{expected}\"`, found {found}; \
         add it, or save the machine again with this version"
    )]
    Format {
        file: String,
        expected: &'static str,
        found: String,
    },

    #[error(
        "{file}: {why}\ncompare it with a shipped file; `pdawl machine show h200` prints a whole one"
    )]
    Parse { file: String, why: String },

    #[error("{file}: `{key}` is {value}: {why}; {remedy}")]
    Value {
        file: String,
        key: String,
        value: String,
        why: &'static str,
        remedy: String,
    },

    #[error("machine {machine}: `{change}`: {why}; give {remedy}")]
    Change {
        machine: String,
        change: String,
        why: String,
        remedy: String,
    },

    #[error(
        "cluster {name} has {has} nodes of unlike machines, and {asked} are asked for; give at \
         most {has}, or a file whose [[node]]s have greater counts"
    )]
    UnlikeNodes { name: String, has: u64, asked: u64 },

    #[error(transparent)]
    Store(#[from] StoreError),

    #[error("{}: cannot be written: {source}; set {variable} to a writable directory", .file.display())]
    Write {
        file: PathBuf,
        source: std::io::Error,
        /// The environment variable that names the directory.
        variable: &'static str,
    },
}

/// CPU model, cores and GPU models in one short readable line, such as
/// `Intel Xeon E5-2670 x16 + 2 NVIDIA H200`.
///
/// Memory sizes are left out, since they may grow; so are clocks and drivers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// Of a machine with this CPU, this many cores, and these GPUs in any
    /// order.
    pub fn of<'a>(cpu: &str, cores: u32, gpus: impl IntoIterator<Item = &'a str>) -> Self {
        let mut models: Vec<String> = gpus.into_iter().map(plain).collect();
        models.sort();
        let mut line = format!("{} x{cores}", plain(cpu));
        for same in models.chunk_by(|a, b| a == b) {
            line.push_str(" + ");
            if same.len() > 1 {
                line.push_str(&format!("{} ", same.len()));
            }
            line.push_str(&same[0]);
        }
        Self(line)
    }

    /// Whether a machine file's fingerprint is this one, perhaps with GPUs beside those that
    /// this one has.
    pub fn begins(&self, recorded: Option<&str>) -> bool {
        let own = self.0.split_whitespace();
        let mut recorded = recorded.unwrap_or_default().split_whitespace();
        own.eq(recorded.by_ref().take(self.0.split_whitespace().count()))
            && recorded.next().is_none_or(|next| next == "+")
    }

    /// Whether a machine file's fingerprint is this one. A file without one
    /// describes no particular machine.
    pub fn is(&self, recorded: Option<&str>) -> bool {
        recorded.is_some_and(|r| r.split_whitespace().eq(self.0.split_whitespace()))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A model without trademarks, filler words and the clock, which drivers and
/// kernels write differently.
fn plain(model: &str) -> String {
    let model = model.split('@').next().unwrap_or(model);
    let model = model
        .replace("(R)", " ")
        .replace("(TM)", " ")
        .replace("(tm)", " ");
    let words: Vec<&str> = model
        .split_whitespace()
        .filter(|word| !matches!(*word, "CPU" | "Processor"))
        .collect();
    words.join(" ")
}

#[cfg(test)]
mod tests;

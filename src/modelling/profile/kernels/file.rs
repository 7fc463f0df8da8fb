//! Files of kernel profiles: JSON with the header `"format": "pdawl-kernels/2"` and the
//! machine's fingerprint. Times are seconds.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use pdawl_profiler::atomic_file;
use pdawl_profiler::file::{self, bounded};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use twox_hash::xxhash3_128::Hasher;

use super::{Divisions, KernelTimes, Profiles, RunRow};
use crate::file_store::{FileStore, StoreError, StoreKind};
use crate::machine::{Fingerprint, MachineFile};

/// The header of this version of the format, and of the one before, which has no runs.
pub const FORMAT: &str = "pdawl-kernels/2";
const WITHOUT_RUNS: &str = "pdawl-kernels/1";

/// Bytes of a file, at most.
const MOST: u64 = 64 << 20;

static KERNELS: StoreKind = StoreKind {
    what: "kernel profile",
    variable: "PDAWL_KERNELS",
    folder: "kernels",
    ending: "json",
    shipped: &[],
    remedy: "Runs make them",
    instead: "",
};

/// The times of kernels that are kept from run to run. A key of `pdawl exec` is a hash of the
/// program's text and build options, the kernel's name, the launch's global and local sizes (`*`
/// where the driver chooses), and the bytes of the arguments: `084cf66f... norm 12/6
/// 81120,520,4`. A key of a codelet's implementation on a GPU has the codelet, its sizes, each
/// rounded up to a power of two, and `own` or the library: `codelet gemm-tile-f32 512x512x512
/// cublas-130002`. What another program has added is passed over.
#[derive(Clone, Debug, JsonSchema, Serialize, Deserialize)]
pub struct KernelsFile {
    format: String,
    pub(super) fingerprint: String,
    /// The version of the examination that found the divisions.
    #[serde(default)]
    examination: u32,
    /// By key, and by device: model and driver's platform.
    pub(super) kernels: Profiles,
    /// By key, and the scalars that decide which bytes a launch writes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) divisions: Divisions,
    /// By key: the seconds that launches have taken.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) spent: BTreeMap<String, f64>,
    /// What the first run has measured of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineFile>,
    /// By what they are: `stencil 8192 x 8192 f64 2ad5e7f1`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub runs: BTreeMap<String, RunRow>,
}

/// What a file of another version has, too.
#[derive(Deserialize)]
struct Header {
    format: Option<String>,
    fingerprint: Option<String>,
}

impl KernelsFile {
    /// Nothing is known of this machine's kernels.
    pub(super) fn empty(fingerprint: &str) -> Self {
        Self {
            format: FORMAT.to_owned(),
            fingerprint: fingerprint.to_owned(),
            examination: EXAMINATION,
            kernels: Profiles::new(),
            divisions: Divisions::new(),
            spent: BTreeMap::new(),
            machine: None,
            runs: BTreeMap::new(),
        }
    }
}

/// The user's file of the machine with this fingerprint, in the directory
/// `$PDAWL_KERNELS`, else `$XDG_CONFIG_HOME/pdawl/kernels`, else
/// `~/.config/pdawl/kernels`, which is made. The file need not exist.
///
/// # Errors
/// A user without a directory, and one that cannot be made.
pub fn path_of_user(fingerprint: &Fingerprint) -> Result<PathBuf, StoreError> {
    FileStore::of_user(&KERNELS).path_to_write(&name(fingerprint))
}

/// A name for the file of a machine.
fn name(fingerprint: &Fingerprint) -> String {
    let mut hasher = Hasher::new();
    hasher.write(fingerprint.to_string().as_bytes());
    format!("{:032x}", hasher.finish_128())
}

/// Reads a file; there is nothing in one that does not exist.
pub(super) fn read(path: &Path, fingerprint: &str) -> Result<KernelsFile, KernelProfilesError> {
    let file = path.display().to_string();
    let bytes = match bounded(path, MOST) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(KernelsFile::empty(fingerprint));
        }
        Err(source) => return Err(KernelProfilesError::Read { file, source }),
    };
    let damaged = |error: serde_json::Error| KernelProfilesError::Damaged {
        file: file.clone(),
        why: error.to_string(),
    };
    let header: Header = serde_json::from_slice(&bytes).map_err(damaged)?;
    if ![Some(FORMAT), Some(WITHOUT_RUNS)].contains(&header.format.as_deref()) {
        return Err(KernelProfilesError::Format {
            file,
            found: (header.format).map_or("none".to_owned(), |format| format!("`{format}`")),
            expected: FORMAT,
        });
    }
    if header.fingerprint.as_deref() != Some(fingerprint) {
        return Err(KernelProfilesError::Machine {
            file,
            found: header
                .fingerprint
                .unwrap_or("which it does not name".to_owned()),
            expected: fingerprint.to_owned(),
        });
    }
    let mut kept: KernelsFile = serde_json::from_slice(&bytes).map_err(damaged)?;
    let spent = |(key, seconds): (&String, &f64)| {
        let wrong = !(*seconds >= 0.0 && seconds.is_finite());
        wrong.then(|| format!("the time that kernel `{key}` has taken is impossible"))
    };
    let times = |(key, devices): (&String, &BTreeMap<String, KernelTimes>)| {
        let wrong = !devices.values().all(KernelTimes::is_valid);
        wrong.then(|| format!("the times of kernel `{key}` are impossible"))
    };
    let run = |(key, row): (&String, &RunRow)| {
        (!row.is_valid()).then(|| format!("the times of run `{key}` are impossible"))
    };
    let wrong = kept.spent.iter().find_map(spent);
    let wrong = wrong.or_else(|| kept.kernels.iter().find_map(times));
    let machine = kept.machine.as_ref();
    let machine = machine.and_then(|machine| machine.check("the measured machine").err());
    let wrong = wrong.or_else(|| machine.map(|error| error.to_string()));
    if let Some(why) = wrong.or_else(|| kept.runs.iter().find_map(run)) {
        return Err(KernelProfilesError::Damaged { file, why });
    }
    FORMAT.clone_into(&mut kept.format);
    if kept.examination != EXAMINATION {
        kept.divisions.clear();
        kept.examination = EXAMINATION;
    }
    Ok(kept)
}

/// Replaces a file.
pub(super) fn write(path: &Path, kept: &KernelsFile) -> Result<(), KernelProfilesError> {
    let written = atomic_file::write(path, |out| {
        serde_json::to_writer(&mut *out, kept)?;
        out.write_all(b"\n")
    });
    written.map_err(|source| cannot_write(path, source))
}

/// Waits until no other process writes the file. The lock ends with the returned value.
pub(super) fn lock(path: &Path) -> Result<File, KernelProfilesError> {
    let place = path.with_extension("lock");
    let locked = file::lock(&place).and_then(|file| file.lock().map(|()| file));
    locked.map_err(|source| cannot_write(&place, source))
}

fn cannot_write(path: &Path, source: io::Error) -> KernelProfilesError {
    KernelProfilesError::Write {
        file: path.display().to_string(),
        source,
    }
}

/// The errors of files of kernel profiles.
#[derive(Debug, Error)]
pub enum KernelProfilesError {
    #[error(transparent)]
    Store(#[from] StoreError),

    #[error("{file}: cannot be read: {source}; remove it to begin anew")]
    Read { file: String, source: io::Error },

    #[error("{file}: it is damaged: {why}; remove it to begin anew")]
    Damaged { file: String, why: String },

    #[error("{file}: its format is {found}, not `{expected}`; remove it to begin anew")]
    Format {
        file: String,
        found: String,
        expected: &'static str,
    },

    #[error(
        "{file}: it is of another machine, {found}, and this is {expected}; remove it to begin anew"
    )]
    Machine {
        file: String,
        found: String,
        expected: String,
    },

    #[error(
        "{file}: cannot be written: {source}; set PDAWL_KERNELS to a folder that can be written"
    )]
    Write { file: String, source: io::Error },
}

/// The version of the examination (`opencl-layer/src/divide/examine.rs`) and of what a text
/// tells before it. What another version found out is not used.
const EXAMINATION: u32 = 2;

/// Whether and how the launches of a kernel are divided.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "verdict", deny_unknown_fields)]
pub enum Division {
    /// They are not.
    Refused { reason: String },
    /// Along an axis. Each part writes only its slices of the buffers.
    Sliced {
        axis: usize,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        agreeing: Agreeing,
    },
    /// Along an axis. The parts' results are merged by the bytes that have changed.
    Merged {
        axis: usize,
        reason: String,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        agreeing: Agreeing,
    },
}

/// By device that was compared: whether its results are bit for bit those of the device at
/// which the kernel was examined.
pub type Agreeing = BTreeMap<String, bool>;

impl Division {
    /// The comparison of devices, if launches are divided.
    pub fn agreeing(&self) -> Option<&Agreeing> {
        match self {
            Self::Refused { .. } => None,
            Self::Sliced { agreeing, .. } | Self::Merged { agreeing, .. } => Some(agreeing),
        }
    }
}

//! Files of kernel profiles: JSON with the header `"format": "pdawl-kernels/1"` and the
//! machine's fingerprint. Times are seconds.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use pdawl_profiler::atomic_file;
use pdawl_profiler::file::{self, bounded};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use twox_hash::xxhash3_128::Hasher;

use super::division::EXAMINATION;
use super::{Divisions, KernelProfilesError, KernelTimes, Profiles};
use crate::file_store::{FileStore, StoreError, StoreKind};
use crate::machine::Fingerprint;

/// The header of this version of the format.
pub const FORMAT: &str = "pdawl-kernels/1";

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
/// cublas-130002`.
#[derive(JsonSchema, Serialize)]
pub struct KernelsFile<'a> {
    format: &'a str,
    fingerprint: &'a str,
    /// The version of the examination that found the divisions.
    examination: u32,
    #[serde(flatten)]
    kept: &'a Kept,
}

#[derive(Deserialize)]
struct Header {
    format: Option<String>,
    fingerprint: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    #[serde(rename = "format")]
    _format: String,
    #[serde(rename = "fingerprint")]
    _fingerprint: String,
    kernels: Profiles,
    #[serde(default)]
    examination: u32,
    #[serde(default)]
    divisions: Divisions,
    #[serde(default)]
    spent: BTreeMap<String, f64>,
}

/// What a file has.
#[derive(Default, JsonSchema, Serialize)]
pub(super) struct Kept {
    /// By key, and by device: model and driver's platform.
    pub kernels: Profiles,
    /// By key, and the scalars that decide which bytes a launch writes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub divisions: Divisions,
    /// By key: the seconds that launches have taken.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub spent: BTreeMap<String, f64>,
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
pub(super) fn read(path: &Path, fingerprint: &str) -> Result<Kept, KernelProfilesError> {
    let file = path.display().to_string();
    let bytes = match bounded(path, MOST) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Kept::default()),
        Err(source) => return Err(KernelProfilesError::Read { file, source }),
    };
    let damaged = |error: serde_json::Error| KernelProfilesError::Damaged {
        file: file.clone(),
        why: error.to_string(),
    };
    let header: Header = serde_json::from_slice(&bytes).map_err(damaged)?;
    if header.format.as_deref() != Some(FORMAT) {
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
    let contents: Contents = serde_json::from_slice(&bytes).map_err(damaged)?;
    let kernels = contents.kernels;
    if let Some((key, _)) = (contents.spent.iter()).find(|(_, s)| !(**s >= 0.0 && s.is_finite())) {
        let why = format!("the time that kernel `{key}` has taken is impossible");
        return Err(KernelProfilesError::Damaged { file, why });
    }
    let wrong = kernels
        .iter()
        .find(|(_, devices)| !devices.values().all(KernelTimes::is_valid));
    if let Some((key, _)) = wrong {
        let why = format!("the times of kernel `{key}` are impossible");
        return Err(KernelProfilesError::Damaged { file, why });
    }
    Ok(Kept {
        kernels,
        divisions: match contents.examination {
            EXAMINATION => contents.divisions,
            _ => Divisions::new(),
        },
        spent: contents.spent,
    })
}

/// Replaces a file.
pub(super) fn write(
    path: &Path,
    fingerprint: &str,
    kept: &Kept,
) -> Result<(), KernelProfilesError> {
    let written = KernelsFile {
        format: FORMAT,
        fingerprint,
        examination: EXAMINATION,
        kept,
    };
    let written = atomic_file::write(path, |out| {
        serde_json::to_writer(&mut *out, &written)?;
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

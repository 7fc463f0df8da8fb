//! Where the layer's library is, and what the program finds in its environment; `opencl-layer/src/settings.rs` reads it.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use pdawl_api::installed::{self, LAYER};
use pdawl_api::runtime::opencl::LAYERS;

use super::{Args, typed};
use crate::failure::Failure;

/// Variables to set, and to remove.
pub struct Environment {
    variables: Vec<(&'static str, Option<OsString>)>,
    /// Layers that the user has set besides ours.
    pub others: Vec<OsString>,
}

/// The environment for these arguments. The layer writes its reports into `folder`.
pub fn of(args: &Args, layer: &Layer, folder: &Path) -> Environment {
    let set = env::var_os(LAYERS).unwrap_or_default();
    let others: Vec<OsString> = env::split_paths(&set)
        .filter(|path| !path.as_os_str().is_empty() && *path != layer.path)
        .map(Into::into)
        .collect();
    let shown = match args.virtual_devices {
        0 => None,
        count => Some(count.to_string().into()),
    };
    let variables = vec![
        (LAYERS, Some(layers(layer.path.as_os_str(), &others))),
        ("PDAWL_VIRTUAL", shown),
        ("PDAWL_POLICY", Some(typed(&args.policy).into())),
        ("PDAWL_MAP", map(&args.map)),
        ("PDAWL_EXACT", args.exact.then(|| "1".into())),
        ("PDAWL_DEVICE_TYPE", Some(typed(&args.device_type).into())),
        ("PDAWL_DEVICES", args.devices.as_ref().map(Into::into)),
        ("PDAWL_REPORT", Some(folder.into())),
        ("PDAWL_TRACE", args.trace.as_ref().map(|_| folder.into())),
    ];
    Environment { variables, others }
}

fn map(places: &[u8]) -> Option<OsString> {
    let places: Vec<String> = places.iter().map(u8::to_string).collect();
    (!places.is_empty()).then(|| places.join(",").into())
}

/// Ours first. Loaders call the last layer first, and pdawl's calls no other: it opens
/// the drivers itself. Behind it, another layer would see nothing.
fn layers(ours: &OsStr, others: &[OsString]) -> OsString {
    let mut all = ours.to_owned();
    for other in others {
        all.push(":");
        all.push(other);
    }
    all
}

impl Environment {
    /// Gives it to a process.
    pub fn give(&self, command: &mut Command) {
        for (name, value) in &self.variables {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
    }
}

/// The library.
pub struct Layer {
    /// Absolute, since the program may change its folder.
    pub path: PathBuf,
}

/// The library that the user names, or the one near this executable.
pub fn find_layer(named: Option<&Path>) -> Result<Layer, Failure> {
    let path = match named {
        Some(path) => installed::readable(path).ok_or_else(|| {
            Failure::failed(
                format!("--layer: no file {} can be read", path.display()),
                "`cargo build --release -p pdawl-opencl-layer`, or --layer with the file's path",
            )
        })?,
        None => match installed::library(LAYER) {
            Ok(path) => path,
            Err(absent) => {
                return Err(Failure::failed(
                    format!("the OpenCL layer is missing: {absent}"),
                    format!("`{}`, or --layer with the file's path", absent.command()),
                ));
            }
        },
    };
    if path.to_string_lossy().contains(':') {
        return Err(Failure::failed(
            format!(
                "the layer's path {} has a colon, which separates layers",
                path.display()
            ),
            "a copy of the file elsewhere, and --layer with its path",
        ));
    }
    Ok(Layer { path })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_colon_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a:b.so");
        fs::write(&path, "").unwrap();
        assert!(find_layer(Some(&path)).is_err());
        assert!(find_layer(Some(&root.path().join("absent.so"))).is_err());
    }
}

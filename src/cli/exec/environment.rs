//! What the program finds in its environment; `opencl-layer/src/settings.rs` reads it.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;

use pdawl::runtime::opencl::LAYERS;

use super::layer::Layer;
use super::{Args, typed};

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
        ("PDAWL_EXACT", args.exact.then(|| "1".into())),
        ("PDAWL_DEVICE_TYPE", Some(typed(&args.device_type).into())),
        ("PDAWL_DEVICES", args.devices.as_ref().map(Into::into)),
        ("PDAWL_REPORT", Some(folder.into())),
        ("PDAWL_TRACE", args.trace.as_ref().map(|_| folder.into())),
    ];
    Environment { variables, others }
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

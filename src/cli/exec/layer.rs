//! Where the layer's library is: near the program, or where the user says.

use std::path::{Path, PathBuf};

use pdawl::installed::{self, LAYER};

use crate::failure::Failure;

/// The library.
pub struct Layer {
    /// Absolute, since the program may change its folder.
    pub path: PathBuf,
}

/// The library that the user names, or the one near this executable.
pub fn find(named: Option<&Path>) -> Result<Layer, Failure> {
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
        assert!(find(Some(&path)).is_err());
        assert!(find(Some(&root.path().join("absent.so"))).is_err());
    }
}

//! Where the library is that joins a run.

use std::path::{Path, PathBuf};

use crate::cluster::wire::WireError;
use crate::installed::{self, WIRE};

/// The library that the user names, or the one near this program.
pub fn find(named: Option<&Path>) -> Result<PathBuf, WireError> {
    let Some(file) = named else {
        return installed::library(WIRE).map_err(WireError::Absent);
    };
    installed::readable(file).ok_or_else(|| WireError::Unreadable {
        file: file.to_owned(),
    })
}

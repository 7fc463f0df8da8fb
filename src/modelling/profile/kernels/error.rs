//! Why kernel profiles cannot be read or written.

use std::io;

use thiserror::Error;

use crate::machine::StoreError;

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

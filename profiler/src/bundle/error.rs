//! The errors of model files, each with the file, the place and the remedy.

use thiserror::Error;

use super::FORMAT;
use crate::file_error::FileError;

/// An error of model files.
#[derive(Debug, Error)]
pub enum BundleError {
    #[error(transparent)]
    File(#[from] FileError),

    #[error("{file}: is cut off or no JSON: {why}; get it again from its source")]
    Json { file: String, why: String },

    #[error(
        "{file}: is no pdawl model: its `format` must be `{FORMAT}`, found {found}; \
         give a file that `pdawl model export` wrote"
    )]
    Format { file: String, found: String },

    #[error(
        "{file}: made by {program} with format `{found}`; this program reads `{FORMAT}`; \
         update pdawl"
    )]
    Newer {
        file: String,
        /// `pdawl 2.0.0`, if the file says so.
        program: String,
        found: String,
    },

    #[error(
        "{file}: was changed or cut off since it was written: its checksum is {found}, \
         that of its content {computed}; get it again from its source"
    )]
    Checksum {
        file: String,
        found: String,
        computed: String,
    },

    #[error(
        "{file}: `{path}`: {why}; no pdawl of this format wrote it so: \
         get the file again from its source, or train the model again"
    )]
    Schema {
        file: String,
        path: String,
        why: String,
    },

    #[error("{file}: `{path}`: {why}; train the model again")]
    Value {
        file: String,
        path: String,
        why: String,
    },

    #[error(
        "{file}: not written, since it could not be read: `{path}`: {why} \
         (a figure that is not finite is null); train the model again"
    )]
    Refused {
        file: String,
        path: String,
        why: String,
    },
}

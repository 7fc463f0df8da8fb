//! The errors of machine files. Each names the file, the key and the remedy.

use std::path::PathBuf;

use thiserror::Error;

use crate::file_store::StoreError;

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

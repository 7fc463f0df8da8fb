//! The failures of commands: a message, a remedy, and the exit status.

use std::fmt::Display;
use std::io;

use clap::error::ErrorKind;
use pdawl_api::runtime::RuntimeError;

use super::{interrupt, terminal};

/// Why a command does not succeed.
#[derive(Debug)]
pub enum Failure {
    /// The command line is wrong.
    Usage { what: String, remedy: String },
    /// The command line is right, and the command failed.
    Failed {
        what: String,
        remedy: Option<String>,
    },
    /// An error of the command-line parser, or the help that the user asked for.
    Parser(clap::Error),
    /// Ctrl-C or another signal. Everything has been printed.
    Interrupted,
    /// A program that the command ran ended with this status. Everything has been printed.
    Program(u8),
    /// The reader of standard output has closed it, which counts as success.
    ReaderGone,
}

impl Failure {
    /// A wrong command line.
    pub fn usage(what: impl Display, remedy: impl Display) -> Self {
        Self::Usage {
            what: what.to_string(),
            remedy: remedy.to_string(),
        }
    }

    /// A failure with its remedy.
    pub fn failed(what: impl Display, remedy: impl Display) -> Self {
        Self::Failed {
            what: what.to_string(),
            remedy: Some(remedy.to_string()),
        }
    }

    /// A failure whose message contains the remedy.
    pub fn of(error: impl std::error::Error) -> Self {
        Self::Failed {
            what: error.to_string(),
            remedy: None,
        }
    }

    /// The failure of writing to standard output.
    pub fn of_printing(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ReaderGone,
            _ => Self::failed(
                format!("standard output: {error}"),
                "send it elsewhere, or make room there",
            ),
        }
    }

    /// The same at a node of several.
    pub fn at(self, node: usize) -> Self {
        let named = |what| format!("node {node}: {what}");
        match self {
            Self::Usage { what, remedy } => Self::Usage {
                what: named(what),
                remedy,
            },
            Self::Failed { what, remedy } => Self::Failed {
                what: named(what),
                remedy,
            },
            other => other,
        }
    }

    /// The failure in words, for a node that tells another one of it.
    pub fn in_words(&self) -> String {
        match self {
            Self::Usage { what, remedy }
            | Self::Failed {
                what,
                remedy: Some(remedy),
            } => format!("{what}; try {remedy}"),
            Self::Failed { what, remedy: None } => what.clone(),
            Self::Parser(error) => error.to_string(),
            Self::Interrupted => "it was interrupted".to_owned(),
            Self::Program(status) => format!("its program ended with status {status}"),
            Self::ReaderGone => "its output was closed".to_owned(),
        }
    }

    /// Prints the failure to standard error and returns the exit status.
    pub fn print(self) -> u8 {
        match self {
            Self::Usage { what, remedy } => {
                terminal::error(&what, Some(&remedy));
                2
            }
            Self::Failed { what, remedy } => {
                terminal::error(&what, remedy.as_deref());
                1
            }
            Self::Parser(error) if !error.use_stderr() => {
                // Help and version; a reader may close the output early.
                let _ = error.print();
                0
            }
            Self::Parser(error) => {
                let text = error.render().to_string();
                let text = match error.kind() {
                    ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
                        format!("a command is missing\n\n{text}")
                    }
                    _ => text.strip_prefix("error: ").unwrap_or(&text).to_owned(),
                };
                terminal::error(text.trim_end(), None);
                2
            }
            Self::Interrupted => interrupt::status(),
            Self::Program(status) => status,
            Self::ReaderGone => 0,
        }
    }
}

impl From<clap::Error> for Failure {
    fn from(error: clap::Error) -> Self {
        Self::Parser(error)
    }
}

/// The failure of a wrong `--devices`.
pub fn wrong_devices(why: impl Display) -> Failure {
    wrong_names("--devices", why)
}

/// The failure of wrong names of devices in an option.
pub fn wrong_names(option: &str, why: impl Display) -> Failure {
    Failure::usage(
        format!("{option}: {why}"),
        "`pdawl devices`, or `pdawl machine show NAME`, for the names",
    )
}

/// The failure of an error of a runtime. A wrong selection is a wrong command line.
pub fn refused(error: RuntimeError) -> Failure {
    match error {
        RuntimeError::Selection(why) => Failure::usage(
            why,
            "`pdawl devices`, or `pdawl machine show NAME`, for what there is",
        ),
        error @ RuntimeError::DeviceLost { .. } => Failure::failed(error, LOST),
        error @ RuntimeError::OutOfMemory { .. } => Failure::failed(
            error,
            "a smaller size, or other --devices with more memory; `pdawl devices` shows it",
        ),
        other => Failure::of(other),
    }
}

/// The remedy for a strategy that the devices do not allow.
pub const OTHER_STRATEGY: &str =
    "another --strategy, or other --devices; `pdawl devices` shows them";

/// The remedy for lost devices.
pub const LOST: &str = "the same with other --devices; `pdawl devices` shows which are there";

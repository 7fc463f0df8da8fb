//! Why a program cannot run.

use thiserror::Error;

/// A program that cannot run.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ProgramError {
    #[error("{program} has no task; add one with Program::add_task")]
    NoTask { program: String },

    #[error("{program} has no space; add one with Program::space or Program::given")]
    NoSpace { program: String },

    #[error(
        "{program} has no space {space}, which another program has made; each program uses its \
         own spaces"
    )]
    OtherSpace { program: String, space: usize },
}

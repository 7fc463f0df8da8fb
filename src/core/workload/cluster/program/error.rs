//! Why a program cannot run.

use thiserror::Error;

use crate::cluster::space::Block;

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

    #[error(
        "tasks {one} and {other} both write rows {rows:?} and columns {columns:?} of space \
         {space}, and nothing says which comes first; add them with Program::add_task one after \
         the other, or let one task reduce",
        rows = block.rows, columns = block.columns
    )]
    TwoWriters {
        one: String,
        other: String,
        space: u32,
        block: Block,
    },

    #[error(
        "tasks wait for each other: each of {tasks:?} reads what the next one writes, and the \
         last one what the first one writes; let one of them write another space"
    )]
    Cycle { tasks: Vec<String> },

    #[error("{program} repeats no tasks; let the function that is given add some")]
    NothingRepeated { program: String },

    #[error("task {task} would be repeated 0 times; once is the least")]
    NoRound { task: String },

    #[error(
        "what is repeated from task {task} on ends by space {space}, of which no task of it \
         writes rows {rows:?} and columns {columns:?}; let one write all of it in each round",
        rows = block.rows, columns = block.columns
    )]
    Condition {
        task: String,
        space: usize,
        block: Block,
    },

    #[error(
        "the items of {task} do not ascend from subtask to subtask, there are none, or they may \
         yield more elements than can be counted; give each subtask a range behind the one \
         before, and a smaller `most`"
    )]
    Items { task: &'static str },

    #[error("{file} cannot be read: {why}; name a file of OpenCL C")]
    Unreadable { file: String, why: String },

    #[error("{file}: {why}")]
    Source { file: String, why: String },
}

//! `pdawl run transformer` and `pdawl bench transformer`.
//!
//! [`run`] hands a transformer to what all graphs share; [`bench`] goes through
//! the paper's experiments, and `point` lets policies take turns on one size.

pub mod bench;
mod point;
pub mod run;

use pdawl::experiment::ExperimentError;
use pdawl::machine::Host;
use pdawl::workload::transformer::{Form, MOST_HEADS, MOST_ROWS, Transformer};

use super::failure::Failure;
use super::graph;
use super::whole::whole;

/// A number of heads.
fn heads(text: &str) -> Result<u32, String> {
    whole(1..=MOST_HEADS)(text)
}

/// Rows and columns of a matrix.
fn beta(text: &str) -> Result<u32, String> {
    whole(1..=MOST_ROWS)(text)
}

/// A library's error as the user's failure.
fn failure(error: ExperimentError) -> Failure {
    match error {
        ExperimentError::Run(error) => graph::failure(error),
        error @ ExperimentError::Transformer(_) => Failure::of(error),
    }
}

/// Refuses a transformer whose data do not fit this machine's memory, `times`
/// over.
fn check_memory(transformer: &Transformer, times: u64) -> Result<(), Failure> {
    let needed = transformer.memory().saturating_mul(times);
    let free = Host::detect().memory.obtainable(0);
    if needed <= free {
        return Ok(());
    }
    Err(Failure::failed(
        format!(
            "{}: it needs {needed} bytes of host memory, and {free} are free",
            title(transformer)
        ),
        "a smaller --beta, fewer --heads or --layers",
    ))
}

/// One line for people.
fn title(of: &Transformer) -> String {
    let batch = match of.form {
        Form::Heads => "",
        Form::Batches(_) => ", in batches",
    };
    format!(
        "transformer, {} of {}, beta {}{batch}",
        counted(of.layers, "layer"),
        counted(of.heads, "head"),
        of.beta
    )
}

/// `1 layer`, `3 layers`.
fn counted(count: u32, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

//! `pdawl run transformer` and `pdawl bench transformer`.
//!
//! [`run`] runs a transformer as any graph; [`bench`] makes the experiments of the
//! PySchedCL paper.

pub mod bench;
pub mod run;

use pdawl::experiment::ExperimentError;
use pdawl::machine::Host;
use pdawl::workload::transformer::{Form, MOST_HEADS, MOST_ROWS, Transformer};

use super::failure::Failure;
use super::graph;
use super::integer::integer;

/// A number of heads.
fn heads(text: &str) -> Result<u32, String> {
    integer(1..=MOST_HEADS)(text)
}

/// Rows and columns of a matrix.
fn beta(text: &str) -> Result<u32, String> {
    integer(1..=MOST_ROWS)(text)
}

/// The failure of an experiment's error.
fn failure(error: ExperimentError) -> Failure {
    match error {
        ExperimentError::Run(error) => graph::failure(error),
        error @ ExperimentError::Transformer(_) => Failure::of(error),
    }
}

/// The remedy when memory does not suffice.
const SMALLER: &str = "a smaller --beta, fewer --heads or --layers";

/// Checks that `times` copies of a transformer's data fit in the memory of this
/// machine, with their comparison if `verify`.
fn check_memory(transformer: &Transformer, times: u64, verify: bool) -> Result<(), Failure> {
    let data = transformer.memory().saturating_mul(times);
    let needed = data.saturating_add(match verify {
        true => transformer.verification_memory(),
        false => 0,
    });
    let free = Host::detect().memory.obtainable(0);
    graph::host_memory(&title(transformer), (needed, free), "", SMALLER)
}

/// One line for people.
fn title(of: &Transformer) -> String {
    let batch = match of.form {
        Form::Heads => "",
        Form::Batches(_) => ", in batches",
    };
    format!(
        "transformer, {} of {}, beta {}, {}{batch}",
        counted(of.layers, "layer"),
        counted(of.heads, "head"),
        of.beta,
        of.format.name()
    )
}

/// `1 layer`, `3 layers`.
fn counted(count: u32, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

//! The program `pdawl`: runs the command line and returns its exit status.

mod cli;
#[cfg(test)]
#[path = "../tests/fixtures/own_home.rs"]
mod own_home;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}

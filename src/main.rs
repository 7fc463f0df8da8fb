//! The program `pdawl`: runs the command line and returns its exit status.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}

//! The program `pdawl`: runs the command line and returns its exit status.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(pdawl_cli::run(std::env::args_os().collect()))
}

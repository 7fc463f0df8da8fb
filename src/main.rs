//! The program `pdawl`: parse, dispatch, and tell the shell how it went.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}

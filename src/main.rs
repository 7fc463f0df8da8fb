//! The program `pdawl`: parse, dispatch, and tell the shell how it went.

mod cli;

use std::panic::resume_unwind;
use std::process::ExitCode;
use std::thread::Builder;

/// Bytes of the program's stack: what a main thread usually has.
const STACK: usize = 8 << 20;

/// The program runs beside the main thread. The main thread's affinity mask is
/// what `taskset` changes, and says which cores the process may use; whoever
/// drives devices binds itself to one of them.
fn main() -> ExitCode {
    let program = Builder::new()
        .name("pdawl".to_owned())
        .stack_size(STACK)
        .spawn(cli::main);
    match program.map(|thread| thread.join()) {
        Ok(Ok(code)) => code,
        Ok(Err(panic)) => resume_unwind(panic),
        Err(error) => {
            eprintln!("pdawl: the system starts no thread: {error}");
            ExitCode::FAILURE
        }
    }
}

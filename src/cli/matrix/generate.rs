//! `pdawl matrix generate`: writes a generated matrix to a file.

use std::path::PathBuf;

use pdawl_api::matrix::{FileError, MatrixSource, Origin, Stats, is_binary, market, write_binary};
use pdawl_api::report::matrix::{MatrixReport, Written};

use super::stats::{Options, timed};
use super::{failure, load, source, with_progress};
use crate::failure::Failure;
use crate::output::Output;
use crate::{interrupt, terminal};

pub const EXAMPLES: &str = "Examples:\n  pdawl matrix generate banded:100000,4 band.mtx\n  \
                            pdawl matrix generate like:eu-2005@0.1 web.mtx.gz --seed 7";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The matrix: like:NAME[@SCALE], banded:ROWS,HALF_BANDWIDTH,
    /// uniform:ROWS,PER_ROW, web:ROWS[,PER_ROW], circuit:ROWS[,PER_ROW] or
    /// rmat:SCALE,PER_ROW
    #[arg(value_name = "SPEC", value_parser = source())]
    matrix: MatrixSource,

    /// The file: Matrix Market, compressed where it ends in .gz; binary where it
    /// ends in .pdawl
    #[arg(value_name = "OUT")]
    out: PathBuf,

    #[command(flatten)]
    options: Options,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let source = args.options.apply(&args.matrix);
    if let Origin::File(path) = &source.origin {
        return Err(Failure::usage(
            format!(
                "{} is the path of a file, and generate makes matrices",
                path.display()
            ),
            "like:NAME[@SCALE], banded:ROWS,HALF_BANDWIDTH, uniform:ROWS,PER_ROW, web:ROWS[,PER_ROW], \
             circuit:ROWS[,PER_ROW] or rmat:SCALE,PER_ROW",
        ));
    }
    let stop = interrupt::listen()?;
    let output = Output::prepare(&args.out)?;
    let format = args.options.format;
    let (loaded, seconds) = timed(|| load(&source, format, stop))?;
    let mut report = MatrixReport::of(&source, &Stats::of(&loaded.csr), seconds);

    let compressed = args.out.extension().is_some_and(|ending| ending == "gz");
    let comments = [
        format!("{}: {}, seed {}", loaded.name, source.origin, source.seed),
        format!("made by pdawl {}", env!("CARGO_PKG_VERSION")),
    ];
    // `Output::write` passes only errors of files on.
    let mut refused = None;
    let written = output.write(|mut out| {
        with_progress(&loaded.name, format, stop, |control| {
            let csr = &loaded.csr;
            let done = match is_binary(&args.out) {
                true => write_binary(csr, &mut out, control),
                false => market::write(csr, &comments, compressed, &mut out, control),
            };
            match done {
                Ok(()) => Ok(()),
                Err(FileError::Io(error)) => Err(error),
                Err(FileError::Matrix(error)) => {
                    refused = Some(error);
                    Err(std::io::ErrorKind::Other.into())
                }
            }
        })
    });
    if let Some(error) = refused {
        return Err(failure(error));
    }
    written?;
    report.written = Some(Written {
        file: args.out.display().to_string(),
        bytes: std::fs::metadata(&args.out).map_or(0, |about| about.len()),
    });
    terminal::print_report(format, &report, MatrixReport::render)
}

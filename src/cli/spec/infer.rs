//! `pdawl spec infer`: writing a kernel file from a kernel's source.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pdawl_api::graph::spec::infer::{Inference, Inferred, infer};
use pdawl_api::report::Printed;
use schemars::JsonSchema;
use serde::Serialize;

use super::described::{is_name, refused};
use crate::args::Format;
use crate::failure::Failure;
use crate::paths::Paths;
use crate::terminal;

pub const EXAMPLES: &str = "Examples:\n  pdawl spec infer kernels/examples/vadd.cl\n  \
                            pdawl spec infer kernels.cl --kernel matmul --out matmul.json\n  \
                            pdawl spec infer tiled.cl -D TS=16 --format json";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The kernel's source, in OpenCL C
    #[arg(value_name = "KERNEL.cl")]
    file: PathBuf,

    /// The kernel, where the source has several [default: all]
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,

    /// A macro that the source is compiled with, such as TS=16
    #[arg(short = 'D', value_name = "NAME[=VALUE]", value_parser = macro_of)]
    macros: Vec<(String, String)>,

    /// Write the kernel file here instead of to standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// How the result is printed; json has the fields to fill in beside the file
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// What a kernel's source tells of its kernel file.
#[derive(JsonSchema, Serialize)]
pub struct Report {
    kernels: Vec<Inference>,
}

/// A macro with its value, by default 1.
fn macro_of(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').unwrap_or((text, "1"));
    match is_name(name) {
        true => Ok((name.to_owned(), value.to_owned())),
        false => Err("write NAME or NAME=VALUE, such as TS=16".to_owned()),
    }
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let mut paths = Paths::reading([args.file.as_path()]);
    let output = (args.out.as_deref().map(|out| paths.output(out))).transpose()?;
    let macros: BTreeMap<String, String> = args.macros.iter().cloned().collect();
    let made = infer(&args.file, args.kernel.as_deref(), &macros).map_err(refused)?;
    let text = files(&made)?;
    if let Some(output) = output {
        output.write(|out| out.write_all(text.as_bytes()))?;
    } else if args.format == Format::Text {
        terminal::print(&text)?;
    }
    match args.format {
        Format::Json => terminal::print_json(&Printed::from(&Report { kernels: made })),
        Format::Text => {
            for made in &made {
                tell(made);
            }
            Ok(())
        }
    }
}

/// The kernel file, or a list of several.
fn files(made: &[Inference]) -> Result<String, Failure> {
    let files: Vec<&Inferred> = made.iter().map(|made| &made.file).collect();
    let text = match files.as_slice() {
        [one] => serde_json::to_string_pretty(one),
        several => serde_json::to_string_pretty(several),
    };
    text.map(|text| text + "\n").map_err(Failure::of)
}

/// Prints a summary on standard error, apart from the file.
fn tell(made: &Inference) {
    let name = &made.file.name;
    let kind = |buffers: &[_], what: &str| match buffers.len() {
        0 => String::new(),
        count => format!(" {count} {what}"),
    };
    terminal::message(&format!(
        "{name}: {} dimensions, buffers:{}{}{}; to be filled in:",
        made.file.work_dimension,
        kind(&made.file.input_buffers, "in"),
        kind(&made.file.output_buffers, "out"),
        kind(&made.file.io_buffers, "in and out"),
    ));
    for field in &made.to_fill {
        terminal::message(&format!("  {field}"));
    }
    for note in &made.notes {
        terminal::message(&format!("  note: {note}"));
    }
}

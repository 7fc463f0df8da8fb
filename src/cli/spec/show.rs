//! `pdawl graph show`: drawing a graph for Graphviz.

use std::path::PathBuf;

use pdawl_api::graph::spec::Specification;
use pdawl_api::graph::spec::dag::{DagSpec, Node};
use pdawl_api::report::Printed;
use pdawl_api::report::drawing;
use schemars::JsonSchema;
use serde::Serialize;

use super::check;
use super::described::Values;
use crate::args::Format;
use crate::failure::Failure;
use crate::paths::Paths;
use crate::terminal;

pub const EXAMPLES: &str = "Examples:\n  \
                            pdawl graph show kernels/examples/head.dag --out head.dot\n  \
                            pdawl graph show kernels/examples/matmul.json -D n=512 | dot -Tsvg > \
                            matmul.svg";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// A graph in any of its forms, or a kernel file
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    values: Values,

    /// Write the drawing here instead of to standard output; `dot -Tsvg FILE` makes a picture of it
    #[arg(long, value_name = "FILE.dot", value_parser = dot)]
    out: Option<PathBuf>,

    /// What is printed: the drawing, or with json its contents
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// A drawing of a graph.
#[derive(JsonSchema, Serialize)]
pub struct Report {
    file: String,
    kernels: usize,
    edges: usize,
    components: usize,
    /// The file of the drawing; `None` if it was not written.
    drawing: Option<String>,
}

/// The file of a drawing.
fn dot(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let ending = path.extension().map(|ending| ending.to_ascii_lowercase());
    match ending.is_some_and(|ending| ending == "dot") || text.starts_with("/dev/") {
        true => Ok(path),
        false => Err(
            "a drawing is in the language DOT: FILE must end in .dot, and `dot -Tsvg FILE` makes \
             a picture of it"
                .to_owned(),
        ),
    }
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let dag = match args.values.load(&args.file)? {
        Specification::Dag(dag) => *dag,
        Specification::Kernel(spec) => DagSpec {
            file: args.file.clone(),
            kernels: vec![Node {
                id: 0,
                device: spec.device,
                spec: *spec,
                symbols: Default::default(),
                line: None,
            }],
            ..DagSpec::default()
        },
    };
    let described = check::all(&dag, &args.values)?;
    let warnings = check::warnings(&described, Some(&dag));
    warnings.iter().for_each(|warning| terminal::warn(warning));
    let kernels: Vec<_> = (described.into_iter())
        .map(|described| described.kernel)
        .collect();
    let mut paths = Paths::reading(check::files(&dag, &kernels));
    let output = (args.out.as_deref().map(|out| paths.output(out))).transpose()?;
    let drawn = drawing::dot(&dag, &kernels);
    if let Some(output) = output {
        output.write(|out| out.write_all(drawn.as_bytes()))?;
    } else if args.format == Format::Text {
        return terminal::print(&drawn);
    }
    let report = Report {
        file: args.file.display().to_string(),
        kernels: kernels.len(),
        edges: dag.edges.len(),
        components: dag.components.as_ref().map_or(0, Vec::len),
        drawing: args.out.as_ref().map(|path| path.display().to_string()),
    };
    match (args.format, &report.drawing) {
        (Format::Json, _) => terminal::print_json(&Printed::from(&report)),
        (Format::Text, Some(path)) => terminal::print(&format!(
            "{path}: {} kernels, {} edges, {} components\n",
            report.kernels, report.edges, report.components
        )),
        (Format::Text, None) => Ok(()),
    }
}

//! `pdawl spec check`: checking a kernel file or a graph before anything runs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use pdawl_api::graph::spec::{DagSpec, Described, Kernel, Specification};
use pdawl_api::report::spec::{KernelReport, SpecReport};
use pdawl_api::session::{self, specified::Compiler};

use super::described::{Values, refused};
use crate::args::Format;
use crate::failure::{Failure, wrong_names};
use crate::terminal;

pub const EXAMPLES: &str = "Examples:\n  \
                            pdawl spec check kernels/examples/matmul.json -D n=512\n  \
                            pdawl spec check kernels/examples/head.dag\n  \
                            pdawl spec check kernel.json -D dataset=1024 --no-compile";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// A kernel file, or a graph in any of its forms
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    values: Values,

    /// The OpenCL device whose compiler checks the kernels [default: the first]
    #[arg(long, value_name = "NAME")]
    device: Option<String>,

    /// Compare with the sources only, and compile nothing
    #[arg(long, conflicts_with = "device")]
    no_compile: bool,

    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let (kernels, dag) = described(args)?;
    let mut compiler = match args.no_compile {
        true => None,
        false => {
            let opened = Compiler::open(args.device.as_deref());
            opened.map_err(|error| match error {
                session::Error::Devices(why) => wrong_names("--device", why),
                session::Error::KernelDevices(why) => wrong_names("--device", why),
                other => other.into(),
            })?
        }
    };
    if let Some(compiler) = &mut compiler {
        for described in &kernels {
            compiler.check(described)?;
        }
    }
    let mut warnings = warnings(&kernels, dag.as_ref());
    if compiler.is_none() && !args.no_compile {
        warnings.push("nothing was compiled: there is no OpenCL device here".to_owned());
    }
    let report = SpecReport::new(
        &args.file,
        kernels
            .iter()
            .enumerate()
            .map(|(index, described)| KernelReport {
                id: dag.as_ref().map(|dag| dag.kernels[index].id),
                ..KernelReport::of(&described.kernel)
            })
            .collect(),
        dag.as_ref(),
        compiler.map(|compiler| compiler.name),
        warnings,
    );
    terminal::print_report(args.format, &report, |report| report.render())
}

/// Checks everything that the file describes.
fn described(args: &Args) -> Result<(Vec<Described>, Option<DagSpec>), Failure> {
    match args.values.load(&args.file)? {
        Specification::Kernel(spec) => {
            let symbols = args.values.symbols();
            let described = (spec.describe(&symbols, args.values.sources())).map_err(refused)?;
            Ok((vec![described], None))
        }
        Specification::Dag(dag) => {
            let kernels = all(&dag, &args.values)?;
            Ok((kernels, Some(*dag)))
        }
    }
}

/// What looks wrong in kernels and their graph, each once.
pub(super) fn warnings(kernels: &[Described], dag: Option<&DagSpec>) -> Vec<String> {
    let of_kernels = kernels.iter().flat_map(|described| &described.warnings);
    let of_graph = dag.into_iter().flat_map(|dag| &dag.warnings);
    let all: BTreeSet<&String> = of_kernels.chain(of_graph).collect();
    all.into_iter().cloned().collect()
}

/// The files that a graph and its kernels were read from.
pub(super) fn files<'a>(dag: &'a DagSpec, kernels: &'a [Kernel]) -> Vec<&'a Path> {
    let specs = dag.kernels.iter().map(|node| node.spec.file.as_path());
    let sources = kernels.iter().map(|kernel| kernel.source.as_path());
    let mut all: Vec<&Path> = specs.chain(sources).chain([dag.file.as_path()]).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Checks the kernels of a graph, and the graph.
pub(super) fn all(dag: &DagSpec, values: &Values) -> Result<Vec<Described>, Failure> {
    let given = values.symbols();
    let kernels: Vec<Described> = (dag.kernels.iter().enumerate())
        .map(|(index, node)| {
            let symbols = dag.symbols_of(node, &given);
            let described = node.spec.clone().describe(&symbols, values.sources());
            described.map_err(|error| refused(dag.fault_of(index, error)))
        })
        .collect::<Result<_, _>>()?;
    let resolved: Vec<_> = kernels.iter().map(|d| d.kernel.clone()).collect();
    dag.check(&resolved).map_err(refused)?;
    Ok(kernels)
}

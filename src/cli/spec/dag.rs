//! `pdawl run dag`: running a graph of a specification.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pdawl_api::graph::DatumId;
use pdawl_api::graph::spec::scalar::Base;
use pdawl_api::graph::spec::source::KernelInfo;
use pdawl_api::graph::spec::task::{BuiltGraph, Loaded, build};
use pdawl_api::graph::spec::{Argument, DagSpec, Described, Direction, Kernel, Specification};
use pdawl_api::machine::DeviceKind;
use pdawl_api::report::run::workload::DagParameters;
use pdawl_api::report::{Parameters, Workload};
use pdawl_api::session::specified::{KernelDevices, Words};
use pdawl_api::session::{GraphJob, Placed, Queues, Reference};

use super::check;
use super::described as contents;
use super::described::{Values, refused};
use super::kernel::first_launch;
use super::starpu;
use crate::failure::Failure;
use crate::graph::{self, GraphArgs, GraphRequest};
use crate::size::integer;
use crate::{interrupt, terminal};

pub const EXAMPLES: &str = "Examples:\n  \
                            pdawl run dag kernels/examples/head.dag --adaptive\n  \
                            pdawl run dag kernels/examples/three.json --policy heft --verify\n  \
                            pdawl run dag SPEC.json -D n=512 --policy clustering --search\n  \
                            pdawl run dag graph.dag --load 0:0=in.bin --save 3:2=out.bin\n  \
                            pdawl run dag --starpu datasets/starpu/cholesky --policy recorded";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The graph, in any of its forms; docs/specifications.md describes them
    #[arg(value_name = "SPEC", required_unless_present = "starpu")]
    file: Option<PathBuf>,

    /// Instead of a graph, the folder of a recorded run of StarPU's, simulated on its machine
    ///
    /// It has tasks.rec, data.rec and activity.data as `starpu_fxt_tool` writes them, and
    /// `sampling` of $STARPU_HOME/.starpu. With --policy recorded, tasks run where and in the order
    /// in which StarPU ran them.
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["file", "symbols"])]
    starpu: Option<PathBuf>,

    #[command(flatten)]
    values: Values,

    /// Seed of the random numbers that buffers begin with
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = integer(0..=u64::MAX))]
    seed: u64,

    /// What a buffer that no kernel makes begins with, or a value, at a position of a kernel's
    /// arguments: the bytes of a file
    #[arg(long, value_name = "KERNEL:POS=FILE", value_parser = at)]
    load: Vec<(At, PathBuf)>,

    /// A file for the bytes at the end of a buffer that a kernel writes and no other one reads
    #[arg(long, value_name = "KERNEL:POS=FILE", value_parser = at)]
    save: Vec<(At, PathBuf)>,

    #[command(flatten)]
    graph: GraphArgs,
}

/// A kernel's id in the file, and a position among its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct At {
    kernel: u64,
    position: usize,
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kernel, self.position)
    }
}

fn at(text: &str) -> Result<(At, PathBuf), String> {
    contents::assigned(text, "KERNEL:POS=FILE, such as 0:2=result.bin", |place| {
        let (kernel, position) = place.split_once(':')?;
        Some(At {
            kernel: kernel.parse().ok()?,
            position: position.parse().ok()?,
        })
    })
}

impl Args {
    /// Gives values the bytes of files, and returns those of buffers.
    fn load(&self, dag: &DagSpec, kernels: &mut [(Kernel, KernelInfo)]) -> Result<Loaded, Failure> {
        contents::once(&self.load, |at| format!("position {at}"))?;
        let mut loaded = Loaded::new();
        for (at, file) in &self.load {
            let index = index_of(dag, "--load", at.kernel)?;
            let is_made = (dag.edges.iter()).any(|edge| edge.to == (index, at.position as u64));
            let only_written = (kernels[index].0.buffers()).any(|(position, buffer)| {
                position == at.position && buffer.direction == Direction::Output
            });
            if is_made || only_written {
                return Err(Failure::usage(
                    format!("--load: a kernel makes the buffer at position {at}"),
                    "buffers that no kernel makes, and values",
                ));
            }
            let bytes = contents::load(&mut kernels[index].0, at.position, file)?;
            loaded.extend(bytes.map(|bytes| ((index, at.position), bytes)));
        }
        Ok(loaded)
    }

    /// The results to be saved.
    fn saves(&self, dag: &DagSpec, built: &BuiltGraph) -> Result<Vec<(DatumId, PathBuf)>, Failure> {
        let save = |(at, file): &(At, PathBuf)| {
            let index = index_of(dag, "--save", at.kernel)?;
            let mut results = built.results.iter();
            let found =
                results.find(|(kernel, position, _)| (*kernel, *position) == (index, at.position));
            let Some((_, _, datum)) = found else {
                let all = built.results.iter().map(|(kernel, position, _)| At {
                    kernel: dag.kernels[*kernel].id,
                    position: *position,
                });
                let all: Vec<String> = all.map(|at| at.to_string()).collect();
                return Err(Failure::usage(
                    format!("--save: the graph has no result at position {at}"),
                    format!("one of {}", all.join(", ")),
                ));
            };
            Ok((*datum, file.clone()))
        };
        self.save.iter().map(save).collect()
    }
}

/// The place of a kernel in the file's list.
fn index_of(dag: &DagSpec, option: &str, id: u64) -> Result<usize, Failure> {
    (dag.kernels.iter().position(|node| node.id == id)).ok_or_else(|| {
        Failure::usage(
            format!("{option}: the graph has no kernel {id}"),
            "an id as `pdawl spec check` shows them",
        )
    })
}

/// Runs a graph.
pub fn run(args: &Args) -> Result<(), Failure> {
    if let Some(folder) = &args.starpu {
        return starpu::run(folder, &args.graph, args.seed);
    }
    let file = args.file.as_deref().unwrap_or(Path::new(""));
    let dag = match args.values.load(file)? {
        Specification::Dag(dag) => *dag,
        Specification::Kernel(_) => {
            return Err(Failure::usage(
                format!("{}: it is a kernel, not a graph", file.display()),
                "`pdawl run kernel` with it",
            ));
        }
    };
    let described = check::all(&dag, &args.values)?;
    let all: Vec<&Described> = described.iter().collect();
    let mut devices = KernelDevices::of(&all, args.graph.options.machine.devices.as_deref())?;
    let mut kernels: Vec<_> = (described.iter())
        .map(|described| (described.kernel.clone(), described.info.clone()))
        .collect();
    let loaded = args.load(&dag, &mut kernels)?;
    let stop = interrupt::listen()?;
    let words: Vec<Words> = (kernels.iter())
        .map(|(kernel, info)| Words::of(kernel, info))
        .collect();
    let graph = build(&dag, &kernels, args.seed, &loaded).map_err(refused)?;
    let tried = (&graph.graph, &words[..], true);
    first_launch(&mut devices, &all, tried, (file, stop))?;
    let warnings = check::warnings(&described, Some(&dag));
    warnings.iter().for_each(|warning| terminal::warn(warning));
    let dag = without_missing_kinds(dag, &devices.kinds());
    let built = build(&dag, &kernels, args.seed, &loaded).map_err(refused)?;
    let saves = args.saves(&dag, &built)?;
    let fp64 = kernels.iter().any(|(_, info)| info.fp64);
    let kernels: Vec<Kernel> = kernels.into_iter().map(|(kernel, _)| kernel).collect();
    let given = args.load.iter().map(|(_, file)| file.as_path());
    let reads = (check::files(&dag, &kernels).into_iter().chain(given))
        .map(Path::to_owned)
        .collect();
    let graph = Arc::new(built.graph.clone());
    let name = file.file_name().unwrap_or(file.as_os_str());
    let name = name.to_string_lossy().into_owned();
    let results = built.results.iter().map(|(kernel, position, datum)| {
        let kernel = kernels.get(*kernel);
        let base = match kernel.and_then(|kernel| kernel.arguments.get(*position)) {
            Some(Argument::Buffer(buffer)) => buffer.element.base,
            _ => Base::Uchar,
        };
        (*datum, base)
    });
    let request = GraphRequest {
        job: GraphJob {
            workload: Workload {
                name: "dag",
                title: format!("dag {name}, {} kernels", kernels.len()),
                parameters: Parameters::Dag(DagParameters {
                    file: name,
                    seed: args.seed,
                }),
            },
            graph,
            placed: Placed::Components(Arc::new(built.components.clone())),
            computes: true,
            reference: Some(Reference::Sequential(results.collect())),
        },
        policy: None,
        queues: (!dag.queues.is_empty()).then(|| Queues::of_file(&dag.file, &dag.queues)),
        fp64,
        seed: args.seed,
        smaller: "smaller sizes, in the graph or with -D",
        reads,
        saves,
        notes: devices.notes,
    };
    let mut of_graph = args.graph.clone();
    of_graph.options.machine.devices = Some(devices.list);
    graph::run(request, &of_graph)
}

/// The graph without preferences for kinds of devices of which none takes part.
fn without_missing_kinds(mut dag: DagSpec, kinds: &[DeviceKind]) -> DagSpec {
    for (kind, name) in [(DeviceKind::Cpu, "CPU"), (DeviceKind::Gpu, "GPU")] {
        let mut count = 0;
        for node in dag
            .kernels
            .iter_mut()
            .filter(|node| node.device == Some(kind))
        {
            if !kinds.contains(&kind) {
                node.device = None;
                count += 1;
            }
        }
        if count > 0 {
            terminal::warn(&format!(
                "{count} kernels are meant for a {name}, and none takes part; they run on any \
                 device"
            ));
        }
    }
    dag
}

//! `pdawl run dag`: running a graph of a specification.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pdawl::engine::first_launch::{Tried, Words};
use pdawl::engine::graph::PreparedGraph;
use pdawl::engine::graph::reference::reference;
use pdawl::graph::spec::scalar::Base;
use pdawl::graph::spec::task::{BuiltGraph, build};
use pdawl::graph::spec::{Argument, DagSpec, Kernel, KernelSpec, Specification};
use pdawl::machine::DeviceKind;
use pdawl::report::run::workload::DagParameters;
use pdawl::report::{Parameters, Workload};
use pdawl::runtime::{Runtime, cuda, opencl};
use pdawl::workload::kernel::compare::compare;

use super::check;
use super::compile::Compiler;
use super::described::{Described, Values, refused};
use super::devices::{left_out, running};
use super::first_launch::survivors;
use crate::cli::failure::Failure;
use crate::cli::graph::{GraphArgs, GraphJob, Queues, Verified, failure, run as run_job};
use crate::cli::integer::integer;
use crate::cli::{interrupt, terminal};

pub const EXAMPLES: &str = "Examples:\n  \
                            pdawl run dag kernels/examples/head.dag --adaptive\n  \
                            pdawl run dag kernels/examples/three.json --policy heft --verify\n  \
                            pdawl run dag SPEC.json -D n=512 --policy clustering --search";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The graph, in any of its forms; docs/specifications.md describes them
    #[arg(value_name = "SPEC")]
    file: PathBuf,

    #[command(flatten)]
    values: Values,

    /// Seed of the random numbers that buffers begin with
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = integer(0..=u64::MAX))]
    seed: u64,

    #[command(flatten)]
    graph: GraphArgs,
}

/// Runs a graph.
pub fn run(args: &Args) -> Result<(), Failure> {
    let dag = match args.values.load(&args.file)? {
        Specification::Dag(dag) => *dag,
        Specification::Kernel(_) => {
            return Err(Failure::usage(
                format!("{}: it is a kernel, not a graph", args.file.display()),
                "`pdawl run kernel` with it",
            ));
        }
    };
    let described = check::all(&dag, &args.values)?;
    let all: Vec<&Described> = described.iter().collect();
    let (mut machine, chosen) = running(&all, &args.graph.machine)?;
    let kernels: Vec<_> = (described.iter())
        .map(|described| (described.kernel.clone(), described.info.clone()))
        .collect();
    let stop = interrupt::listen()?;
    let words: Vec<Words> = (kernels.iter())
        .map(|(kernel, info)| Words::of(kernel, info))
        .collect();
    let specs: Vec<&KernelSpec> = described.iter().map(|described| &described.spec).collect();
    let survivors = survivors(
        machine.devices.as_deref().unwrap_or_default(),
        &args.file.display().to_string(),
        &specs,
        &Tried {
            graph: &build(&dag, &kernels, args.seed).map_err(refused)?.graph,
            words: &words,
            contents: true,
            stop,
        },
    )?;
    let warnings = check::warnings(&described, Some(&dag));
    warnings.iter().for_each(|warning| terminal::warn(warning));
    let dag = without_missing_kinds(dag, &survivors.devices);
    if !survivors.checked
        && let Some(mut compiler) = Compiler::first_of(&survivors.devices)?
    {
        for kernel in &described {
            compiler.check(kernel)?;
        }
    }
    machine.devices = Some(survivors.devices);
    let built = build(&dag, &kernels, args.seed).map_err(refused)?;
    let fp64 = kernels.iter().any(|(_, info)| info.fp64);
    let kernels: Vec<Kernel> = kernels.into_iter().map(|(kernel, _)| kernel).collect();
    let reads = (check::files(&dag, &kernels).into_iter())
        .map(Path::to_owned)
        .collect();
    let graph = Arc::new(built.graph.clone());
    let name = args.file.file_name().unwrap_or(args.file.as_os_str());
    let name = name.to_string_lossy().into_owned();
    let mut job = GraphJob {
        workload: Workload {
            name: "dag",
            title: format!("dag {name}, {} kernels", kernels.len()),
            parameters: Parameters::Dag(DagParameters {
                file: name,
                seed: args.seed,
            }),
        },
        graph,
        components: Arc::new(built.components.clone()),
        queues: (!dag.queues.is_empty()).then(|| Queues::of_file(&dag.file, &dag.queues)),
        fp64,
        seed: args.seed,
        // The reference keeps every datum.
        verification: built.graph.data().iter().map(|datum| datum.bytes).sum(),
        smaller: "smaller sizes, in the graph or with -D",
        reads,
        notes: [chosen, left_out(&args.graph.machine), survivors.notes].concat(),
        verify: Box::new(move |prepared, runtime, stop| {
            verify(prepared, (runtime, stop), &built, &kernels)
        }),
    };
    run_job(
        &mut job,
        &GraphArgs {
            machine,
            ..args.graph.clone()
        },
    )
}

/// The graph without preferences for kinds of devices of which none takes part.
fn without_missing_kinds(mut dag: DagSpec, devices: &str) -> DagSpec {
    let listed = |name: &str| devices.split(',').any(|item| of(item) == name);
    let opencl = opencl::discover().devices.into_iter();
    let cuda = match devices.contains("cuda") {
        true => cuda::discover().devices,
        false => Vec::new(),
    };
    let found = opencl.map(|found| found.info);
    let kinds: Vec<DeviceKind> = found
        .chain(cuda.into_iter().map(|found| found.info))
        .filter(|device| listed(&device.name))
        .map(|device| device.kind)
        .collect();
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

/// The device of an item of a list: opencl0.1 of `opencl0.1:4=own`.
fn of(item: &str) -> &str {
    item.trim()
        .split([':', '=', '@'])
        .next()
        .unwrap_or_default()
}

/// Compares the results with the sequential reference: bit for bit if all devices are
/// of one model.
fn verify(
    prepared: &PreparedGraph,
    (runtime, stop): (&mut dyn Runtime, &AtomicBool),
    built: &BuiltGraph,
    kernels: &[Kernel],
) -> Result<Verified, Failure> {
    let devices = runtime.devices();
    let alike = devices
        .iter()
        .all(|device| device.model == devices[0].model);
    let best = (devices.iter()).position(|device| device.kind != DeviceKind::Cpu);
    let made = reference(runtime, prepared.graph(), best.unwrap_or(0), stop).map_err(failure)?;
    let Some(wanted) = made else {
        return Ok(None);
    };
    let (mut right, mut largest) = (true, 0.0f64);
    for (kernel, position, datum) in &built.results {
        let base = match kernels
            .get(*kernel)
            .and_then(|k| k.arguments.get(*position))
        {
            Some(Argument::Buffer(buffer)) => buffer.element.base,
            _ => Base::Uchar,
        };
        let ours = prepared
            .bytes(runtime, *datum)
            .map_err(|e| failure(e.into()))?;
        let difference = compare(base, ours, &wanted[datum.0], alike);
        right &= difference.right;
        largest = largest.max(difference.largest);
    }
    Ok(Some((right, largest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_distinguished_from_one_with_a_longer_name() {
        assert_eq!(of("opencl0.1"), "opencl0.1");
        assert_eq!(of(" opencl0.10:4=own"), "opencl0.10");
        assert_eq!(of("host@spread"), "host");
    }
}

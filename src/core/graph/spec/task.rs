//! Building the task graph of a specification: data for its buffers, codelets for
//! its kernels, and its components.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use super::dag::DagSpec;
use super::kernel::Direction;
use super::resolve::{Argument as Given, Kernel as Resolved};
use super::source::KernelInfo;
use super::{SpecError, fill};
use crate::codelet::{Codelet, Cost, KernelSource, NdRange, OpenClKernel, RawValue, Shape, Value};
use crate::graph::datum::Filler;
use crate::graph::{
    Argument, Components, Contents, Datum, DatumId, GraphBuilder, GraphError, Kernel, KernelId,
    TaskGraph,
};

/// A task graph, and which data are the results.
#[derive(Clone, Debug)]
pub struct BuiltGraph {
    pub graph: TaskGraph,
    /// The file's components; if it has none, one for each kernel.
    pub components: Components,
    /// The results: kernel, position of the argument, and datum.
    pub results: Vec<(usize, usize, DatumId)>,
}

/// Bytes that buffers begin with, by the kernel's place in the graph and the argument's.
pub type Loaded = HashMap<(usize, usize), Arc<[u8]>>;

/// Builds the graph of `dag`'s kernels, given in its order with what their sources
/// say. Buffers that no kernel makes begin with the bytes that `loaded` has for their kernel and
/// position, as many as the buffer has, or with random numbers of `seed`. An output begins with
/// zeros, since its kernel may write only part of it.
///
/// # Errors
/// When the graph has an error that [`DagSpec::check`] does not find, such as two
/// kernels that overwrite the same buffer.
pub fn build(
    dag: &DagSpec,
    kernels: &[(Resolved, KernelInfo)],
    seed: u64,
    loaded: &Loaded,
) -> Result<BuiltGraph, SpecError> {
    let refused = |error: GraphError| SpecError::file(&dag.file, error.to_string());
    let mut builder = GraphBuilder::default();
    // By kernel and argument: the datum that it writes.
    let mut written: Vec<Vec<Option<DatumId>>> = Vec::new();
    let read: HashSet<(usize, u64)> = dag.edges.iter().map(|edge| edge.from).collect();
    let sources: HashMap<(usize, u64), (usize, u64)> =
        dag.edges.iter().map(|edge| (edge.to, edge.from)).collect();
    let mut results = Vec::new();
    let mut codelets = HashMap::new();
    for (index, (kernel, _)) in kernels.iter().enumerate() {
        let mut row = vec![None; kernel.arguments.len()];
        for (position, buffer) in kernel.buffers() {
            if !buffer.direction.writes() {
                continue;
            }
            let name = name(dag, index, kernel, position);
            let mut datum = Datum::new(name, buffer.bytes());
            let wanted = !read.contains(&(index, position as u64));
            if wanted {
                datum = datum.wanted();
            }
            let id = builder.datum(datum);
            row[position] = Some(id);
            if wanted {
                results.push((index, position, id));
            }
        }
        written.push(row);
    }
    for (index, (kernel, info)) in kernels.iter().enumerate() {
        let mut arguments = Vec::new();
        for (position, given) in kernel.arguments.iter().enumerate() {
            let buffer = match given {
                Given::Buffer(buffer) => buffer,
                Given::Scalar { bytes, .. } => {
                    let value = RawValue::new(bytes).ok_or_else(|| {
                        SpecError::file(&dag.file, format!("argument {position} is too long"))
                    })?;
                    arguments.push(Argument::Value(Value::Raw(value)));
                    continue;
                }
                Given::Local { bytes, .. } => {
                    arguments.push(Argument::Value(Value::Local(*bytes)));
                    continue;
                }
            };
            let made = written[index][position];
            let source = sources.get(&(index, position as u64));
            let source = source.and_then(|(kernel, position)| {
                written.get(*kernel)?.get(*position as usize).copied()?
            });
            let mut from = || match source {
                Some(datum) => datum,
                None => {
                    let datum = Datum::new(name(dag, index, kernel, position), buffer.bytes());
                    let contents = match loaded.get(&(index, position)) {
                        Some(bytes) => Contents::Bytes(Arc::clone(bytes)),
                        None => Contents::Filled(filler(kernel, position, seed, index)),
                    };
                    builder.datum(datum.with(contents))
                }
            };
            arguments.push(match (buffer.direction, made) {
                (Direction::Both, Some(to)) => Argument::InOut { from: from(), to },
                (Direction::Output, Some(to)) => Argument::Output(to),
                _ => Argument::Input(from()),
            });
        }
        builder.kernel(Kernel {
            name: format!("{} {}", dag.kernels[index].id, kernel.name).into(),
            codelet: shared(&mut codelets, kernel, info),
            units: 0..1,
            arguments,
            cost: Cost {
                flops: 0.0,
                bytes: kernel.buffers().map(|(_, b)| b.bytes()).sum::<u64>() as f64,
            },
            prefers: dag.kernels[index].device,
        });
    }
    for (before, after) in &dag.order {
        builder.order(KernelId(*before), KernelId(*after));
    }
    let graph = builder.build().map_err(refused)?;
    let components = match &dag.components {
        None => Components::single_kernels(&graph),
        Some(components) => {
            let ids = |component: &Vec<usize>| component.iter().map(|k| KernelId(*k)).collect();
            let kernels: Vec<Vec<KernelId>> = components.iter().map(ids).collect();
            Components::new(&graph, &kernels).map_err(refused)?
        }
    };
    Ok(BuiltGraph {
        graph,
        components,
        results,
    })
}

fn name(dag: &DagSpec, index: usize, kernel: &Resolved, position: usize) -> String {
    format!(
        "argument {position} of {} {}",
        dag.kernels[index].id, kernel.name
    )
}

/// Random contents, different for each buffer.
fn filler(kernel: &Resolved, position: usize, seed: u64, index: usize) -> Filler {
    let indices = fill::indices(kernel);
    let base = kernel.buffers().find(|(at, _)| *at == position);
    let (base, length) = match base {
        Some((_, buffer)) => (buffer.element.base, buffer.bytes() as usize),
        None => (super::scalar::Base::Uchar, 0),
    };
    let seed = seed.wrapping_add(((index as u64) << 16) + position as u64);
    Arc::new(move |bytes| {
        let length = length.min(bytes.len());
        fill::random(base, indices, seed, 0, &mut bytes[..length]);
    })
}

/// What kernels have in common that share a codelet: source, name, options and sizes.
type Sort<'a> = (&'a str, &'a str, &'a str, &'a [u64], Option<&'a [u64]>);

/// The codelet of a kernel. Kernels of one source and size share it, so that times
/// that are measured for one serve for all.
fn shared<'a>(
    known: &mut HashMap<Sort<'a>, Arc<Codelet>>,
    kernel: &'a Resolved,
    info: &KernelInfo,
) -> Arc<Codelet> {
    let sort = (
        kernel.text.as_str(),
        kernel.name.as_str(),
        kernel.options.as_str(),
        kernel.global.as_slice(),
        kernel.local.as_deref(),
    );
    let made = known.entry(sort).or_insert_with(|| codelet(kernel, info));
    Arc::clone(made)
}

/// A codelet that launches the whole kernel at once.
fn codelet(kernel: &Resolved, info: &KernelInfo) -> Arc<Codelet> {
    let sizes = |sizes: &[u64]| -> Vec<usize> { sizes.iter().map(|n| *n as usize).collect() };
    let range = NdRange::new(sizes(&kernel.global));
    let needs_groups = info.uses_groups || info.required_local.is_some();
    let range = match &kernel.local {
        Some(local) if needs_groups => range.exactly(sizes(local)),
        Some(local) => range.near(sizes(local)),
        None => range,
    };
    Arc::new(Codelet {
        name: kernel.name.clone().into(),
        host: None,
        opencl: Some(OpenClKernel {
            source: KernelSource::new(
                kernel.text.clone(),
                kernel.source.display().to_string(),
                kernel.name.clone(),
                kernel.options.clone(),
            ),
            fp64: info.fp64,
            shape: Shape::with(move |_: &Range<u64>, _: &[Value]| range.clone()),
        }),
        library: None,
    })
}

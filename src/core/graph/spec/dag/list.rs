//! A graph as a JSON list of kernels with `id`, `depends` and `from`, as the
//! authors' program writes it.

use std::collections::BTreeMap;
use std::path::Path;

use super::{DagSpec, Edge, Ids, Location, Node, device};
use crate::expression::Symbols;
use crate::graph::spec::error::SpecError;
use crate::graph::spec::kernel::{ArgumentKind, KernelSpec, parse};
use crate::graph::spec::raw::RawKernel;

pub(super) fn read(file: &Path, text: &str) -> Result<DagSpec, SpecError> {
    let raw: Vec<RawKernel> = parse(file, text)?;
    of(file, "", raw).map(|(dag, _)| dag)
}

/// The graph of a list of kernels at `prefix` of a file.
pub(super) fn of(
    file: &Path,
    prefix: &str,
    raw: Vec<RawKernel>,
) -> Result<(DagSpec, Ids), SpecError> {
    let mut nodes = Vec::new();
    for (index, kernel) in raw.iter().enumerate() {
        let location = format!("{prefix}[{index}].");
        let id = kernel.id.ok_or_else(|| {
            let field = format!("{location}id");
            SpecError::field(
                file,
                field,
                "the kernel has no id, by which other kernels name it",
            )
        })?;
        let spec = KernelSpec::of(file, location, kernel.clone())?;
        nodes.push(Node {
            device: device(&spec, &Symbols::new()),
            id: id.0,
            spec,
            symbols: Symbols::new(),
            line: None,
        });
    }
    let ids = Ids::of(file, &nodes, &format!("{prefix}[N].id"))?;
    let mut dag = DagSpec {
        file: file.to_owned(),
        warnings: nodes
            .iter()
            .flat_map(|node| node.spec.warnings.clone())
            .collect(),
        kernels: nodes,
        components: components(&raw),
        ..DagSpec::default()
    };
    for (index, kernel) in raw.iter().enumerate() {
        link(&mut dag, &ids, (prefix, index), kernel)?;
    }
    Ok((dag, ids))
}

/// Adds the edges into one kernel.
fn link(
    dag: &mut DagSpec,
    ids: &Ids,
    (prefix, index): (&str, usize),
    raw: &RawKernel,
) -> Result<(), SpecError> {
    let mut sources = Vec::new();
    for argument in &dag.kernels[index].spec.arguments {
        if let ArgumentKind::Buffer {
            from: Some(from), ..
        } = argument.kind
        {
            let field = format!("{prefix}[{index}].{}.from", argument.field);
            sources.push((argument.position, from, field));
        }
    }
    for (position, (kernel, output), field) in sources {
        let location = Location::field(field);
        let producer = ids.find(dag, kernel, &location)?;
        dag.edges.push(Edge {
            from: (producer, output),
            to: (index, position),
            location,
        });
    }
    for (which, parent) in raw.depends.iter().enumerate() {
        let location = Location::field(format!("{prefix}[{index}].depends[{which}]"));
        let parent = ids.find(dag, parent.0, &location)?;
        dag.order.push((parent, index));
    }
    Ok(())
}

/// A component for each `task`, if every kernel has one.
fn components(raw: &[RawKernel]) -> Option<Vec<Vec<usize>>> {
    let mut tasks: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (index, kernel) in raw.iter().enumerate() {
        tasks.entry(kernel.task?.0).or_default().push(index);
    }
    Some(tasks.into_values().collect())
}

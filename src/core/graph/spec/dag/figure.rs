//! A graph as in Figure 8 of the PySchedCL paper: kernels by name with their
//! `dev`, task components `tc`, queues `cq`, and edges.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::{DagSpec, Edge, Ids, Location, Node, device, edge, find, unknown_symbols};
use crate::expression::Symbols;
use crate::graph::spec::SpecError;
use crate::graph::spec::kernel::{KernelSpec, parse, unknown_fields};
use crate::graph::spec::raw::{Amount, Count, RawKernel};
use crate::machine::DeviceKind;

#[derive(Deserialize)]
struct RawFigure {
    kernels: Vec<Value>,
    #[serde(default)]
    tc: Option<Vec<Vec<Count>>>,
    #[serde(default)]
    cq: Option<Value>,
    #[serde(default)]
    edges: Vec<String>,
    #[serde(rename = "symbolicVariables", default)]
    symbols: BTreeMap<String, Amount>,
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

/// A kernel with a kernel file of its own.
#[derive(Deserialize)]
struct RawNode {
    id: Count,
    /// The name of the function, and of the kernel file unless `file` names that.
    name: String,
    #[serde(default)]
    file: Option<String>,
    #[serde(default)]
    dev: Option<String>,
    #[serde(rename = "symbolicVariables", default)]
    symbols: BTreeMap<String, Amount>,
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

pub(super) fn read(file: &Path, text: &str) -> Result<DagSpec, SpecError> {
    let raw: RawFigure = parse(file, text)?;
    let whole = raw.kernels.iter().all(|kernel| kernel.get("src").is_some());
    let (mut dag, ids) = match whole {
        true => {
            let kernels = inline_kernels(file, &raw.kernels)?;
            super::of(file, "kernels", kernels)?
        }
        false => kernels_of_files(file, &raw)?,
    };
    dag.warnings.extend(unknown_fields(&raw.others, ""));
    let common = values(file, "symbolicVariables", &raw.symbols)?;
    let specs = dag.kernels.iter().map(|node| &node.spec);
    let unknown = unknown_symbols(&common, specs, "symbolicVariables: ");
    dag.warnings.extend(unknown);
    for node in &mut dag.kernels {
        for (name, value) in &common {
            node.symbols.entry(name.clone()).or_insert(*value);
        }
    }
    for (index, text) in raw.edges.iter().enumerate() {
        let location = Location::field(format!("edges[{index}]"));
        let (from, to) = edge(text).map_err(|why| dag.fault(&location, why))?;
        let known = |id: u64| ids.find(&dag, id, &location);
        let (from, to) = ((known(from.0)?, from.1), (known(to.0)?, to.1));
        dag.edges.push(Edge { from, to, location });
    }
    if let Some(tc) = &raw.tc {
        dag.components = Some(components(&dag, &ids, tc)?);
    }
    if let Some(cq) = &raw.cq {
        dag.queues = queues(file, cq)?;
    }
    Ok(dag)
}

/// Kernels that the graph's file describes itself.
fn inline_kernels(file: &Path, kernels: &[Value]) -> Result<Vec<RawKernel>, SpecError> {
    let of = |(index, value): (usize, &Value)| {
        serde_path_to_error::deserialize(value).map_err(|error: serde_path_to_error::Error<_>| {
            let field = format!("kernels[{index}].{}", error.path());
            SpecError::field(file, field, error.inner().to_string())
        })
    };
    kernels.iter().enumerate().map(of).collect()
}

/// Kernels that have kernel files of their own.
fn kernels_of_files(file: &Path, raw: &RawFigure) -> Result<(DagSpec, Ids), SpecError> {
    let mut nodes = Vec::new();
    let mut warnings = Vec::new();
    for (index, value) in raw.kernels.iter().enumerate() {
        let at = |field: &str| format!("kernels[{index}].{field}");
        let node: RawNode = serde_path_to_error::deserialize(value).map_err(|error| {
            let field = at(&error.path().to_string());
            SpecError::field(file, field, error.inner().to_string())
        })?;
        let (name, field) = match &node.file {
            Some(name) => (name.clone(), "file"),
            None => (format!("{}.json", node.name), "name"),
        };
        let found = find(file, &name).map_err(|why| SpecError::field(file, at(field), why))?;
        let spec = KernelSpec::load(&found)?;
        if spec.name != node.name {
            let why = format!(
                "it is `{}`, and {} describes `{}`",
                node.name,
                found.display(),
                spec.name
            );
            return Err(SpecError::field(file, at("name"), why));
        }
        let symbols = values(file, &at("symbolicVariables"), &node.symbols)?;
        warnings.extend(unknown_fields(&node.others, &at("")));
        let location = at("symbolicVariables: ");
        warnings.extend(unknown_symbols(&symbols, [&spec].into_iter(), &location));
        let wanted = match node.dev.as_deref() {
            None => device(&spec, &symbols),
            Some("cpu") => Some(DeviceKind::Cpu),
            Some("gpu") => Some(DeviceKind::Gpu),
            Some(other) => {
                let why = format!("`{other}` is neither cpu nor gpu");
                return Err(SpecError::field(file, at("dev"), why));
            }
        };
        nodes.push(Node {
            device: wanted,
            id: node.id.0,
            spec,
            symbols,
            line: None,
        });
    }
    let ids = Ids::of(file, &nodes, "kernels[N].id")?;
    let dag = DagSpec {
        file: file.to_owned(),
        kernels: nodes,
        warnings,
        ..DagSpec::default()
    };
    Ok((dag, ids))
}

fn values(file: &Path, field: &str, raw: &BTreeMap<String, Amount>) -> Result<Symbols, SpecError> {
    (raw.iter())
        .map(|(name, amount)| {
            let value = amount.0.value(&Symbols::new());
            let fault = |e| SpecError::expression(file, format!("{field}.{name}"), &e);
            Ok((name.clone(), value.map_err(fault)?))
        })
        .collect()
}

/// The components, with every kernel in exactly one.
fn components(dag: &DagSpec, known: &Ids, tc: &[Vec<Count>]) -> Result<Vec<Vec<usize>>, SpecError> {
    let mut of: Vec<Option<usize>> = vec![None; dag.kernels.len()];
    let mut all = Vec::new();
    for (index, ids) in tc.iter().enumerate() {
        let mut kernels = Vec::new();
        for (which, id) in ids.iter().enumerate() {
            let location = Location::field(format!("tc[{index}][{which}]"));
            let kernel = known.find(dag, id.0, &location)?;
            if let Some(other) = of[kernel].replace(index) {
                let why = format!("kernel {} is in component {other} already", id.0);
                return Err(dag.fault(&location, why));
            }
            kernels.push(kernel);
        }
        if !kernels.is_empty() {
            all.push(kernels);
        }
    }
    if let Some(kernel) = of.iter().position(Option::is_none) {
        let why = format!(
            "kernel {} is in no component; each belongs to one",
            dag.kernels[kernel].id
        );
        return Err(SpecError::field(&dag.file, "tc", why));
    }
    Ok(all)
}

/// Queues by device name, or in the order of the devices.
fn queues(file: &Path, raw: &Value) -> Result<Vec<(String, u32)>, SpecError> {
    let given: Vec<(String, &Value)> = match raw {
        Value::Object(queues) => queues.iter().map(|(d, n)| (d.clone(), n)).collect(),
        Value::Array(queues) => (1..)
            .zip(queues)
            .map(|(device, queues): (u32, &Value)| (format!("r{device}"), queues))
            .collect(),
        other => {
            let why =
                format!("{other} is neither queues by device, such as {{\"gpu\": 2}}, nor a list");
            return Err(SpecError::field(file, "cq", why));
        }
    };
    let count = |(device, count): (String, &Value)| {
        let fault = |why: String| SpecError::field(file, format!("cq.{device}"), why);
        if !is_device(&device) {
            return Err(fault(format!(
                "`{device}` is no device; gpu, cpu, r1 for the first one, or one as opencl0.0 or \
                 cuda0"
            )));
        }
        let wanted = count.as_u64().filter(|n| (1..=64).contains(n));
        let wanted =
            wanted.ok_or_else(|| fault(format!("{count} queues; give a device 1 to 64")))?;
        Ok((device, wanted as u32))
    };
    given.into_iter().map(count).collect()
}

/// Whether a key can name a device: `gpu`, `r1`, `opencl0.0`, `cuda0`.
fn is_device(key: &str) -> bool {
    let numbered = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match key.strip_prefix("opencl") {
        Some(of) => of.starts_with(|c: char| c.is_ascii_digit()),
        None => {
            matches!(key, "gpu" | "cpu" | "accelerator")
                || key.strip_prefix('r').is_some_and(numbered)
                || key.strip_prefix("cuda").is_some_and(numbered)
        }
    }
}

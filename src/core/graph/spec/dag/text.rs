//! A graph as text: `id file.json {"m1": 64}` lines, `---`, edges, `---`.

use std::collections::BTreeMap;
use std::path::Path;

use super::{DagSpec, Edge, Ids, Location, Node, device, edge, find, unknown_symbols};
use crate::expression::Symbols;
use crate::graph::spec::error::SpecError;
use crate::graph::spec::fields::Amount;
use crate::graph::spec::kernel::KernelSpec;

const END: &str = "---";

pub(super) fn read(file: &Path, text: &str) -> Result<DagSpec, SpecError> {
    let mut lines = (1..)
        .zip(text.lines().map(str::trim))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let (mut kernels, mut warnings) = (Vec::new(), Vec::new());
    let mut ended = false;
    for (number, line) in lines.by_ref() {
        if line == END {
            ended = true;
            break;
        }
        let node = kernel(file, number, line)?;
        let location = format!("{}, line {number}: ", file.display());
        warnings.extend(unknown_symbols(
            &node.symbols,
            [&node.spec].into_iter(),
            &location,
        ));
        kernels.push(node);
    }
    if !ended {
        return Err(SpecError::file(
            file,
            "it is neither JSON nor a list of kernels that ends with a line of `---`",
        ));
    }
    let ids = Ids::of(file, &kernels, "")?;
    let mut dag = DagSpec {
        file: file.to_owned(),
        kernels,
        warnings,
        ..DagSpec::default()
    };
    let mut ended = false;
    for (number, line) in lines.by_ref() {
        if line == END {
            ended = true;
            break;
        }
        let location = Location {
            line: Some(number),
            field: None,
        };
        let (from, to) = edge(line).map_err(|why| dag.fault(&location, why))?;
        let known = |id: u64| ids.find(&dag, id, &location);
        let (from, to) = ((known(from.0)?, from.1), (known(to.0)?, to.1));
        dag.edges.push(Edge { from, to, location });
    }
    if !ended {
        return Err(SpecError::file(
            file,
            "the line of `---` after its edges is missing; is the file truncated?",
        ));
    }
    if let Some((number, line)) = lines.next() {
        let why = format!("`{line}` stands after the second `---`, where nothing is read");
        return Err(SpecError::line(file, number, why));
    }
    Ok(dag)
}

fn kernel(file: &Path, number: usize, line: &str) -> Result<Node, SpecError> {
    let fault = |why: String| SpecError::line(file, number, why);
    let mut words = line.splitn(3, char::is_whitespace);
    let (id, name) = (words.next().unwrap_or(""), words.next());
    let id: u64 = id.parse().map_err(|_| {
        fault(format!(
            "`{id}` is not an id; write `0 kernel.json {{\"n\": 64}}`, or `---` where the edges begin"
        ))
    })?;
    let name = name.ok_or_else(|| fault("the kernel's file is missing after its id".to_owned()))?;
    let symbols = symbols(words.next().unwrap_or("{}").trim()).map_err(fault)?;
    let found = find(file, name).map_err(fault)?;
    let spec = KernelSpec::load(&found)?;
    Ok(Node {
        device: device(&spec, &symbols),
        id,
        spec,
        symbols,
        line: Some(number),
    })
}

/// The symbols of a kernel's line. Single quotes are read, too, as Python does.
fn symbols(text: &str) -> Result<Symbols, String> {
    let json = match text.contains('"') {
        true => text.to_owned(),
        false => text.replace('\'', "\""),
    };
    let amounts: BTreeMap<String, Amount> = serde_json::from_str(&json).map_err(|error| {
        format!("`{text}` is not an object of symbols such as {{\"n\": 64}}: {error}")
    })?;
    (amounts.into_iter())
        .map(|(name, amount)| {
            let value = amount.0.value(&Symbols::new());
            value
                .map(|n| (name.clone(), n))
                .map_err(|e| format!("{name}: {e}"))
        })
        .collect()
}

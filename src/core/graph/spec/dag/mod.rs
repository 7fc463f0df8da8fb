//! A graph of kernels as a file describes it, in one of three forms.
//!
//! * `text`: a line for each kernel, `---`, a line for each edge, `---`.
//! * `list`: a JSON list of kernels with `id`, `depends` and `from`.
//! * `figure`: a JSON object as in Figure 8 of the PySchedCL paper, with kernels
//!   and their `dev`, `tc`, `cq` and edges.
//!
//! [`load`] recognizes the form by the first character.

mod figure;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use super::kernel::{KernelSpec, parse};
use super::raw::{Amount, last_of_each};
use super::{SpecError, read};
use crate::expression::Symbols;
use crate::graph::spec::kernel::ArgumentKind;
use crate::graph::spec::raw::RawKernel;
use crate::machine::DeviceKind;

/// Folders, beside that of a graph, in which its kernel files are looked for.
const FOLDERS: [&str; 5] = ["", "info", "../info", "../../info", "../../database/info"];

/// A graph of kernels as a file describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DagSpec {
    pub file: PathBuf,
    pub kernels: Vec<Node>,
    pub edges: Vec<Edge>,
    /// Pairs of indices of `kernels`: the first must end before the second begins,
    /// whatever data they exchange.
    pub order: Vec<(usize, usize)>,
    /// The task components, as indices of `kernels`; `None` if the file has none.
    pub components: Option<Vec<Vec<usize>>>,
    /// Queues by device, named as in the file: `gpu`, or `r1` for the first device.
    pub queues: Vec<(String, u32)>,
    pub warnings: Vec<String>,
}

/// A kernel of a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub id: u64,
    pub spec: KernelSpec,
    /// Values that the graph gives to the kernel's symbols.
    pub symbols: Symbols,
    /// The kind of device that it is to run on, by `dev` or by a partition of 0 or
    /// 10.
    pub device: Option<DeviceKind>,
    /// The line that names it, in the form with lines.
    pub line: Option<usize>,
}

/// An output of a kernel that is an input of another.
#[derive(Clone, Debug, PartialEq)]
pub struct Edge {
    /// The index of the producer in the list of kernels, and its argument.
    pub from: (usize, u64),
    pub to: (usize, u64),
    /// Where the file has it.
    pub location: Location,
}

/// A location in a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Location {
    pub line: Option<usize>,
    pub field: Option<String>,
}

impl Location {
    /// A field of the file.
    pub fn field(name: impl Into<String>) -> Self {
        Self {
            line: None,
            field: Some(name.into()),
        }
    }
}

/// A specification of either kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Specification {
    Kernel(Box<KernelSpec>),
    Dag(Box<DagSpec>),
}

/// Reads a file of any form.
///
/// # Errors
/// As [`KernelSpec::load`], and when a graph names kernels or files that do not
/// exist.
pub fn load(file: &Path) -> Result<Specification, SpecError> {
    let content = read(file)?;
    let dag = match content.trim_start().chars().next() {
        None => return Err(SpecError::file(file, "it is empty")),
        Some('[' | '{') => {
            let (content, mut warnings) = last_of_each(&content);
            let whole: serde_json::Value = parse(file, &content)?;
            let mut dag = match whole.get("kernels") {
                Some(_) => figure::read(file, &content)?,
                None if whole.is_array() => read_list(file, &content)?,
                None => {
                    let kernel = KernelSpec::load(file)?;
                    return Ok(Specification::Kernel(Box::new(kernel)));
                }
            };
            dag.warnings.append(&mut warnings);
            dag
        }
        Some(_) => read_text(file, &content)?,
    };
    Ok(Specification::Dag(Box::new(dag)))
}

impl Specification {
    /// The symbols whose values matter to it.
    pub fn symbol_names(&self) -> BTreeSet<String> {
        match self {
            Self::Kernel(kernel) => kernel.symbol_names(),
            Self::Dag(dag) => (dag.kernels.iter())
                .flat_map(|node| node.spec.symbol_names())
                .collect(),
        }
    }
}

impl DagSpec {
    /// An error at a location of its file.
    pub fn fault(&self, location: &Location, why: impl Into<String>) -> SpecError {
        SpecError {
            file: self.file.clone(),
            line: location.line,
            field: location.field.clone(),
            why: why.into(),
        }
    }

    /// An error of a kernel's file with the values that the graph gives it. It names
    /// the location in the graph as well.
    pub fn fault_of(&self, index: usize, error: SpecError) -> SpecError {
        let node = &self.kernels[index];
        if node.symbols.is_empty() || error.file == self.file {
            return error;
        }
        let values: Vec<String> = (node.symbols.iter())
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        let location = Location {
            line: node.line,
            field: node.line.is_none().then(|| format!("kernels[{index}]")),
        };
        self.fault(&location, format!("with {}: {error}", values.join(", ")))
    }

    /// The symbols of a kernel: `given` ones first, then those of the graph.
    pub fn symbols_of(&self, node: &Node, given: &Symbols) -> Symbols {
        let mut symbols = node.symbols.clone();
        symbols.extend(given.iter().map(|(name, n)| (name.clone(), *n)));
        symbols
    }
}

/// The index of each kernel by its id.
struct Ids(HashMap<u64, usize>);

impl Ids {
    /// Checks that there are kernels and that no two have the same id.
    fn of(file: &Path, nodes: &[Node], field: &str) -> Result<Self, SpecError> {
        if nodes.is_empty() {
            return Err(SpecError::file(
                file,
                "it has no kernel; a graph needs at least one",
            ));
        }
        let mut ids = HashMap::with_capacity(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            if ids.insert(node.id, index).is_some() {
                let why = format!("two kernels have the id {}; each needs its own", node.id);
                let error = match node.line {
                    Some(line) => SpecError::line(file, line, why),
                    None => SpecError::field(file, field.replace("N", &index.to_string()), why),
                };
                return Err(error);
            }
        }
        Ok(Self(ids))
    }

    /// The kernel that a location of the graph's file names.
    fn find(&self, dag: &DagSpec, id: u64, location: &Location) -> Result<usize, SpecError> {
        let index = self.0.get(&id).copied();
        index.ok_or_else(|| dag.fault(location, format!("there is no kernel {id}")))
    }
}

/// Finds a kernel file that a graph names.
fn find(file: &Path, name: &str) -> Result<PathBuf, String> {
    let beside = file.parent().unwrap_or(Path::new(""));
    (FOLDERS.iter().map(|folder| beside.join(folder).join(name)))
        .find(|path| path.is_file())
        .ok_or_else(|| {
            format!("there is no kernel file `{name}` beside it, nor in a folder `info` there")
        })
}

/// A warning of each value at `location` that is for no symbol of these kernels.
fn unknown_symbols<'a>(
    symbols: &Symbols,
    specs: impl Iterator<Item = &'a KernelSpec> + Clone,
    location: &str,
) -> Vec<String> {
    if symbols.is_empty() {
        return Vec::new();
    }
    let known: BTreeSet<String> = specs.clone().flat_map(KernelSpec::symbol_names).collect();
    let files: BTreeSet<String> = specs.map(|spec| spec.file.display().to_string()).collect();
    let [files, names] = [&files, &known].map(|set| {
        let all: Vec<&str> = set.iter().map(String::as_str).collect();
        all.join(", ")
    });
    (symbols.keys().filter(|name| !known.contains(*name)))
        .map(|name| {
            format!("{location}`{name}` is no symbol of {files}; it is ignored; known are {names}")
        })
        .collect()
}

/// The kind of device that a kernel is to run on: by its `dev`, else by a partition
/// of all or nothing.
fn device(spec: &KernelSpec, symbols: &Symbols) -> Option<DeviceKind> {
    use crate::expression::Number;
    let partition = || {
        let symbols = spec.symbols(symbols).ok()?;
        let own = spec.partition.as_ref().and_then(|p| p.value(&symbols).ok());
        match symbols.get("partition").copied().or(own)? {
            Number::Int(0) => Some(DeviceKind::Cpu),
            Number::Int(10) => Some(DeviceKind::Gpu),
            _ => None,
        }
    };
    spec.device.or_else(partition)
}

/// A kernel's id and an argument's position.
type End = (u64, u64);

/// Reads an edge: `0 2->4 0`, or `0,2 -> 2,0`. The error is a message.
fn edge(text: &str) -> Result<(End, End), String> {
    let wrong = || {
        format!(
            "`{}` is not an edge; write `0 2->4 0` for argument 2 of kernel 0 that is argument 0 \
             of kernel 4",
            text.trim()
        )
    };
    let end = |text: &str| -> Option<End> {
        let mut numbers = text
            .split(|c: char| c.is_whitespace() || c == ',')
            .filter(|part| !part.is_empty())
            .map(|part| part.parse::<u64>().ok());
        match (numbers.next(), numbers.next(), numbers.next()) {
            (Some(Some(kernel)), Some(Some(position)), None) => Some((kernel, position)),
            _ => None,
        }
    };
    let (from, to) = text.split_once("->").ok_or_else(wrong)?;
    Ok((end(from).ok_or_else(wrong)?, end(to).ok_or_else(wrong)?))
}

const END: &str = "---";

fn read_text(file: &Path, text: &str) -> Result<DagSpec, SpecError> {
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

// A graph as a JSON list of kernels with `id`, `depends` and `from`, as the
// authors' program writes it.

fn read_list(file: &Path, text: &str) -> Result<DagSpec, SpecError> {
    let raw: Vec<RawKernel> = parse(file, text)?;
    of(file, "", raw).map(|(dag, _)| dag)
}

/// The graph of a list of kernels at `prefix` of a file.
fn of(file: &Path, prefix: &str, raw: Vec<RawKernel>) -> Result<(DagSpec, Ids), SpecError> {
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

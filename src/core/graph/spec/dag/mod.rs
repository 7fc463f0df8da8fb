//! A graph of kernels as a file describes it, in one of three forms.
//!
//! * `text`: a line for each kernel, `---`, a line for each edge, `---`.
//! * `list`: a JSON list of kernels with `id`, `depends` and `from`.
//! * `figure`: a JSON object as in Figure 8 of the PySchedCL paper, with kernels
//!   and their `dev`, `tc`, `cq` and edges.
//!
//! [`load`] recognizes the form by the first character.

mod figure;
mod list;
mod text;

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use super::error::{SpecError, read};
use super::kernel::{KernelSpec, parse};
use super::repeated::last_of_each;
use crate::expression::Symbols;
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
                None if whole.is_array() => list::read(file, &content)?,
                None => {
                    let kernel = KernelSpec::load(file)?;
                    return Ok(Specification::Kernel(Box::new(kernel)));
                }
            };
            dag.warnings.append(&mut warnings);
            dag
        }
        Some(_) => text::read(file, &content)?,
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

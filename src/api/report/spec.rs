//! The report of `pdawl spec check`, schema `pdawl-spec/1`: the kernels and the graph
//! of a specification, with their sizes.

use std::fmt::Write;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use super::table::plain;
use crate::graph::spec::{Argument, DagSpec, Direction, Kernel};
use crate::quantity::Bytes;

/// A specification without errors; specifications.md describes the files.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct SpecReport {
    pub file: String,
    pub kernels: Vec<KernelReport>,
    pub edges: Vec<EdgeReport>,
    /// Ids of each component's kernels; empty if the file has none.
    pub components: Vec<Vec<u64>>,
    /// The device that compiled the kernels; `None` if none did.
    pub compiled_on: Option<String>,
    pub warnings: Vec<String>,
}

/// A kernel.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct KernelReport {
    /// Its id in the graph; `None` for a kernel file.
    pub id: Option<u64>,
    pub name: String,
    pub source: String,
    pub options: String,
    /// Work-items along each dimension.
    pub global: Vec<u64>,
    /// Of a work-group; `None`: the driver chooses.
    pub local: Option<Vec<u64>>,
    pub arguments: Vec<ArgumentReport>,
    /// 0, all on the CPU, to 10, all on the GPU; `None` if the file has none.
    pub partition: Option<u8>,
}

/// An argument of a kernel.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct ArgumentReport {
    /// `input`, `output`, `io`, `value` or `local`.
    pub kind: &'static str,
    /// Type of an element.
    #[serde(rename = "type")]
    pub element: String,
    /// Of a buffer; `None` for others.
    pub elements: Option<u64>,
    /// Of the buffer, the value, or a work-group's local memory.
    pub bytes: u64,
}

/// An output of a kernel that is an input of another.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct EdgeReport {
    /// Kernel ids and argument positions.
    pub from_kernel: u64,
    pub from_argument: u64,
    pub to_kernel: u64,
    pub to_argument: u64,
}

impl KernelReport {
    /// The report of a kernel.
    pub fn of(kernel: &Kernel) -> Self {
        let argument = |argument: &Argument| match argument {
            Argument::Buffer(buffer) => ArgumentReport {
                kind: match buffer.direction {
                    Direction::Input => "input",
                    Direction::Output => "output",
                    Direction::Both => "io",
                },
                element: buffer.element.to_string(),
                elements: Some(buffer.elements),
                bytes: buffer.bytes(),
            },
            Argument::Scalar { element, bytes } => ArgumentReport {
                kind: "value",
                element: element.to_string(),
                elements: None,
                bytes: bytes.len() as u64,
            },
            Argument::Local { element, bytes } => ArgumentReport {
                kind: "local",
                element: element.to_string(),
                elements: None,
                bytes: *bytes,
            },
        };
        Self {
            id: None,
            name: kernel.name.clone(),
            source: kernel.source.display().to_string(),
            options: kernel.options.clone(),
            global: kernel.global.clone(),
            local: kernel.local.clone(),
            arguments: kernel.arguments.iter().map(argument).collect(),
            partition: kernel.partition,
        }
    }
}

impl SpecReport {
    /// The report of kernels, and of their graph if there is one.
    pub fn new(
        file: &Path,
        kernels: Vec<KernelReport>,
        dag: Option<&DagSpec>,
        compiled_on: Option<String>,
        warnings: Vec<String>,
    ) -> Self {
        let id = |kernel: usize| dag.map_or(0, |dag| dag.kernels[kernel].id);
        let edges = dag.map_or(&[][..], |dag| &dag.edges);
        let components = dag.and_then(|dag| dag.components.as_deref()).unwrap_or(&[]);
        Self {
            file: file.display().to_string(),
            edges: (edges.iter())
                .map(|edge| EdgeReport {
                    from_kernel: id(edge.from.0),
                    from_argument: edge.from.1,
                    to_kernel: id(edge.to.0),
                    to_argument: edge.to.1,
                })
                .collect(),
            components: (components.iter())
                .map(|component| component.iter().map(|kernel| id(*kernel)).collect())
                .collect(),
            kernels,
            compiled_on,
            warnings,
        }
    }

    /// The report as text.
    pub fn render(&self) -> String {
        let mut text = format!("{}: right", self.file);
        match &self.compiled_on {
            Some(device) => _ = writeln!(text, ", and compiled on {device}"),
            None => text.push('\n'),
        }
        let header = [
            "kernel",
            "id",
            "work-items",
            "group",
            "in",
            "out",
            "both",
            "bytes",
        ];
        let mut table = plain(&header, |column| column > 0);
        for kernel in &self.kernels {
            let count = |kind: &str| {
                let of_kind = kernel.arguments.iter().filter(|a| a.kind == kind);
                of_kind.count().to_string()
            };
            let buffers = kernel.arguments.iter().filter(|a| a.elements.is_some());
            table.add_row(vec![
                kernel.name.clone(),
                kernel
                    .id
                    .map_or_else(|| "-".to_owned(), |id| id.to_string()),
                sizes(&kernel.global),
                kernel
                    .local
                    .as_deref()
                    .map_or_else(|| "any".to_owned(), sizes),
                count("input"),
                count("output"),
                count("io"),
                Bytes(buffers.map(|a| a.bytes).sum()).to_string(),
            ]);
        }
        _ = writeln!(text, "{table}");
        if !self.edges.is_empty() {
            _ = writeln!(
                text,
                "{} edges, {} components",
                self.edges.len(),
                self.components.len()
            );
        }
        for warning in &self.warnings {
            _ = writeln!(text, "warning: {warning}");
        }
        text
    }
}

fn sizes(sizes: &[u64]) -> String {
    let sizes: Vec<String> = sizes.iter().map(u64::to_string).collect();
    sizes.join(" x ")
}

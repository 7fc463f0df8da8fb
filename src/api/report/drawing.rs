//! Draws a graph of kernels for Graphviz: kernels as ellipses, buffers as rectangles, components
//! as frames, as in the PySchedCL paper (Figures 1, 3 and 6).

use std::collections::HashSet;
use std::fmt::{self, Write};

use super::style::written;
use crate::graph::spec::{Argument, DagSpec, Kernel};
use crate::machine::DeviceKind;

/// The graph in the language DOT. `kernels` are in the order of `dag`.
pub fn dot(dag: &DagSpec, kernels: &[Kernel]) -> String {
    written(|out| write(dag, kernels, out))
}

fn write(dag: &DagSpec, kernels: &[Kernel], out: &mut String) -> fmt::Result {
    let title = quoted(&dag.file.display().to_string());
    writeln!(
        out,
        "digraph {title} {{\n  label={title}; labelloc=t;\n  \
         node [style=filled, fontname=\"sans-serif\", fontsize=11];"
    )?;
    let made: HashSet<(usize, u64)> = dag.edges.iter().map(|edge| edge.to).collect();
    for (index, kernel) in kernels.iter().enumerate() {
        let node = &dag.kernels[index];
        let (device, colour) = match node.device {
            Some(DeviceKind::Cpu) => ("\ncpu", "#dafbe1"),
            Some(_) => ("\ngpu", "#ffd8b5"),
            None => ("", "#eaeef2"),
        };
        let name = quoted(&format!("{} {}{device}", node.id, kernel.name));
        writeln!(out, "  k{index} [label={name}, fillcolor=\"{colour}\"];")?;
        for (position, argument) in (0u64..).zip(&kernel.arguments) {
            let Argument::Buffer(buffer) = argument else {
                continue;
            };
            let what = quoted(&format!(
                "{position}: {} {}",
                buffer.elements, buffer.element
            ));
            // An input that another kernel makes is that one's output.
            if buffer.direction.reads() && !made.contains(&(index, position)) {
                let name = format!("i{index}_{position}");
                writeln!(
                    out,
                    "  {name} [label={what}, shape=box, fillcolor=\"#ddf4ff\"];"
                )?;
                writeln!(out, "  {name} -> k{index};")?;
            }
            if buffer.direction.writes() {
                let name = format!("o{index}_{position}");
                writeln!(
                    out,
                    "  {name} [label={what}, shape=box, fillcolor=\"#fff8c5\"];"
                )?;
                writeln!(out, "  k{index} -> {name};")?;
            }
        }
    }
    for edge in &dag.edges {
        let ((from, position), (to, _)) = (edge.from, edge.to);
        writeln!(out, "  o{from}_{position} -> k{to};")?;
    }
    for (from, to) in &dag.order {
        writeln!(out, "  k{from} -> k{to} [style=dashed];")?;
    }
    for (index, component) in dag.components.iter().flatten().enumerate() {
        let kernels: Vec<String> = component
            .iter()
            .map(|kernel| format!("k{kernel};"))
            .collect();
        writeln!(
            out,
            "  subgraph cluster_{index} {{ label=\"T{index}\"; style=dashed; {} }}",
            kernels.join(" ")
        )?;
    }
    writeln!(out, "}}")
}

/// A string of DOT, whose lines are lines of a label.
fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", text.replace('\n', "\\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_end_a_string() {
        assert_eq!(quoted("a\"b\\c\nd"), r#""a\"b\\c\nd""#);
    }
}

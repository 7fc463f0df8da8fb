//! The sequential reference of checking tasks.

use crate::codelet::Value;
use crate::codelet::mix::Digest;
use crate::graph::{Argument, TaskGraph};

/// What every datum holds when tasks with the body [`super::Body::Mix`] have run, by
/// the datum's id: the tasks are computed in topological order, each version in
/// memory of its own. `None` if a task has another body.
pub fn mix_reference(graph: &TaskGraph) -> Option<Vec<Vec<u8>>> {
    let mut data: Vec<Vec<u8>> = Vec::new();
    for datum in graph.data() {
        let mut bytes = vec![0; datum.bytes as usize];
        if let Some(contents) = &datum.contents {
            contents.write(&mut bytes);
        }
        data.push(bytes);
    }
    for kernel in graph.order() {
        let kernel = graph.kernel(*kernel);
        let Some(Argument::Value(Value::U64(number))) = kernel.arguments.first() else {
            return None;
        };
        if kernel.codelet.name != "mix" {
            return None;
        }
        let mut digest = Digest::new(*number);
        for argument in &kernel.arguments {
            digest = match argument {
                Argument::Input(datum) | Argument::InOut { from: datum, .. } => {
                    digest.take(&data[datum.0])
                }
                // It begins with zeros.
                Argument::Output(datum) => digest.take(&data[datum.0]),
                Argument::FullOutput(_)
                | Argument::Value(_)
                | Argument::Again(_)
                | Argument::Stride { .. }
                | Argument::First { .. } => digest,
            };
        }
        let results = kernel.arguments.iter().filter_map(Argument::writes);
        for (number, result) in (0..).zip(results) {
            digest.give(number, &mut data[result.0]);
        }
    }
    Some(data)
}

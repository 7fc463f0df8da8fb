//! The trace of a run over nodes.

use super::{Span, Trace};
use crate::cluster::record::{ClusterOutcome, Stage};
use crate::codelet::Name;
use crate::runtime::CommandKind;
use crate::time::Nanos;

/// The trace of a run over nodes: a device for each device of each node, the nodes by their
/// rank, and a step for each task. Times count from the first task's begin. A node that was
/// lost has no spans, as nobody tells them.
pub fn of(outcome: &ClusterOutcome) -> Trace {
    let zero = outcome.timeline.first().map_or(0, |task| task.began);
    // Clocks of nodes are compared, which errs by microseconds.
    let since = |time: Nanos| time.saturating_sub(zero);
    let names: Vec<Name> = (outcome.timeline.iter())
        .map(|task| Name::from(task.name.clone()))
        .collect();
    let mut trace = Trace {
        steps: (outcome.timeline.iter())
            .map(|task| (since(task.began), since(task.ended)))
            .collect(),
        ..Trace::default()
    };
    for (rank, node) in outcome.nodes.iter().enumerate() {
        let first = trace.devices.len();
        let devices = node.devices.iter();
        let devices = devices.map(|device| format!("node {rank}, {}, {}", node.name, device.name));
        trace.devices.extend(devices);
        let spans = node.commands.iter().map(|command| {
            let queued = since(command.queued);
            Span {
                device: first + command.device as usize,
                queue: command.queue as usize,
                kind: match command.stage {
                    Stage::Write => CommandKind::Write,
                    Stage::Compute => CommandKind::Launch,
                    Stage::Read => CommandKind::Read,
                },
                label: (names.get(command.task as usize).cloned()).unwrap_or("task".into()),
                codelet: None,
                step: command.task,
                units: command.subtask..command.subtask + 1,
                ready: since(command.started),
                queued,
                submitted: queued,
                started: since(command.started),
                ended: since(command.ended),
                bytes: command.bytes,
                workers: None,
            }
        });
        trace.spans.extend(spans);
    }
    trace
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::record::{CommandRecord, DevicePart, NodeRecord, TaskRecord};

    fn command(device: u32, task: u32, stage: Stage, started: Nanos) -> CommandRecord {
        CommandRecord {
            device,
            queue: 1,
            stage,
            task,
            subtask: 7,
            bytes: 64,
            queued: started - 5,
            started,
            ended: started + 20,
        }
    }

    fn node(name: &str, devices: &[&str], commands: Vec<CommandRecord>) -> NodeRecord {
        let part = |name: &&str| DevicePart {
            name: (*name).to_owned(),
            ..DevicePart::default()
        };
        NodeRecord {
            name: name.to_owned(),
            devices: devices.iter().map(part).collect(),
            commands,
            ..NodeRecord::default()
        }
    }

    #[test]
    fn devices_of_all_nodes_have_their_spans() {
        let task = |name: &str, began| TaskRecord {
            name: name.to_owned(),
            began,
            ended: began + 100,
        };
        let outcome = ClusterOutcome {
            seconds: 0.0,
            tasks: 2,
            restarts: 0,
            nodes: vec![
                node(
                    "one",
                    &["host", "gpu0"],
                    vec![command(1, 0, Stage::Compute, 1010)],
                ),
                node("two", &[], Vec::new()),
                node("two", &["host"], vec![command(0, 1, Stage::Read, 1200)]),
            ],
            figure: None,
            requests: None,
            timeline: vec![task("product", 1000), task("sum", 1150)],
        };
        let trace = of(&outcome);
        assert_eq!(
            trace.devices,
            [
                "node 0, one, host",
                "node 0, one, gpu0",
                "node 2, two, host"
            ]
        );
        assert_eq!(trace.steps, [(0, 100), (150, 250)]);
        let [first, last] = &trace.spans[..] else {
            panic!("{:?}", trace.spans);
        };
        assert_eq!(
            (first.device, first.kind, &*first.label),
            (1, CommandKind::Launch, "product")
        );
        assert_eq!((first.queued, first.started, first.ended), (5, 10, 30));
        assert_eq!(
            (last.device, last.kind, &*last.label),
            (2, CommandKind::Read, "sum")
        );
        assert_eq!((last.units.clone(), last.bytes, last.step), (7..8, 64, 1));
    }
}

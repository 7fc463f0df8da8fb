//! What the nodes of a simulated co-run report.

use super::{Node, Nodes};
use crate::Outcome;
use crate::cluster::simulate::{Busiest, Report, Resource};
use crate::cluster::traced::Traced;
use crate::time::Nanos;
use pdawl_core::cluster::record::{ClusterOutcome, DevicePart, NodeRecord, TaskRecord};

impl Nodes<'_> {
    pub(super) fn report(mut self, traces: bool) -> Report {
        self.nodes.iter_mut().for_each(close);
        let seconds = |time: Nanos| time as f64 / 1e9;
        let all = seconds(self.ended);
        let mut busiest: Option<Busiest> = None;
        let mut regard = |resource: Resource, busy: f64| {
            let share = (busy / all.max(f64::MIN_POSITIVE)).min(1.0);
            if busy > 0.0 && busiest.as_ref().is_none_or(|most| share > most.share) {
                busiest = Some(Busiest { resource, share });
            }
        };
        let (mut records, mut sent) = (Vec::with_capacity(self.nodes.len()), 0.0);
        for (rank, node) in (0..).zip(self.nodes) {
            let record = NodeRecord {
                busy_seconds: seconds(node.computing),
                idle_seconds: (all - seconds(node.computing)).max(0.0),
                commands: node.traced,
                ..node.record
            };
            for device in &record.devices {
                regard(Resource::Device(rank, device.name.clone()), device.seconds);
            }
            let bytes = [record.received_bytes, record.sent_bytes];
            let [bytes_in, bytes_out] = bytes.map(|bytes| bytes as f64);
            let bandwidth = self.spec.bandwidth;
            match self.spec.full_duplex {
                true => {
                    regard(Resource::LinkOut(rank), bytes_out / bandwidth);
                    regard(Resource::LinkIn(rank), bytes_in / bandwidth);
                }
                false => regard(Resource::LinkOut(rank), (bytes_in + bytes_out) / bandwidth),
            }
            sent += bytes_out;
            records.push(record);
        }
        if let Some(bandwidth) = self.spec.switch_bandwidth {
            regard(Resource::Switch, sent / bandwidth);
        }
        let name = self.bands.workload.name();
        let timeline = self.timeline.iter().filter(|_| traces);
        let timeline = timeline.map(|(began, ended)| TaskRecord {
            name: name.to_owned(),
            began: *began,
            ended: *ended,
        });
        Report {
            outcome: ClusterOutcome {
                seconds: all,
                tasks: self.bands.supersteps.steps().into(),
                nodes: records,
                timeline: timeline.collect(),
                ..ClusterOutcome::default()
            },
            busiest,
            messages: self.messages,
        }
    }
}

/// Closes a node's units, and notes what its devices did.
pub(super) fn close(node: &mut Node) {
    let Some(session) = node.session.take() else {
        return;
    };
    let outcome: Outcome = session.close(&mut node.sim);
    let record = &mut node.record;
    if record.devices.is_empty() {
        let names = node.info.devices.iter().map(|device| device.name.clone());
        record.devices = names
            .map(|name| DevicePart {
                name,
                ..DevicePart::default()
            })
            .collect();
    }
    let shifts = std::mem::take(&mut node.shifts);
    let mut traced = Traced::default();
    traced.corun(&outcome.trace, 0);
    for mut command in traced.commands {
        let step = command.task as usize;
        let shift = shifts.get(step).copied().unwrap_or_default();
        for time in [
            &mut command.queued,
            &mut command.started,
            &mut command.ended,
        ] {
            *time = time.saturating_add_signed(shift);
        }
        command.task += node.before;
        node.traced.push(command);
    }
    node.before += shifts.len() as u32;
    for step in &outcome.steps {
        for (device, part) in step.devices.iter().zip(&mut record.devices) {
            part.subtasks += device.chunks;
            part.seconds += device.busy_seconds;
            record.subtasks += device.chunks;
        }
    }
}

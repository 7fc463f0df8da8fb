//! A simulated run in the form of a real one.

use super::Report;
use pdawl_core::cluster::record::{ClusterOutcome, NodeRecord, TouchRecord};

impl Report {
    /// What the nodes of a real run would have reported. `names` are those of the nodes'
    /// machines, by rank. The figures of a lost node are left out, as nobody tells them.
    pub fn outcome(&self, names: &[String], tasks: u64) -> ClusterOutcome {
        let nodes = self.nodes.iter().zip(names);
        let nodes = nodes.map(|(row, name)| match row.lost {
            true => NodeRecord {
                name: name.clone(),
                lost: true,
                ..NodeRecord::default()
            },
            false => NodeRecord {
                name: name.clone(),
                devices: row.devices.clone(),
                subtasks: row.counts.subtasks,
                copied: row.counts.copied,
                given_back: row.counts.given_back,
                divided: 0,
                touched: TouchRecord::default(),
                lost: false,
                busy_seconds: row.computing,
                idle_seconds: (self.seconds - row.computing).max(0.0),
                received_bytes: row.bytes_in,
                sent_bytes: row.bytes_out,
                checked: None,
                notes: Vec::new(),
                commands: row.commands.clone(),
            },
        });
        let requests = self.requests;
        ClusterOutcome {
            seconds: self.seconds,
            tasks,
            restarts: self.restarts,
            nodes: nodes.collect(),
            figure: None,
            requests: (requests.asked > 0).then_some([requests.asked, requests.brought]),
            timeline: self.timeline.clone(),
        }
    }
}

//! Tasks of subtasks of equal cost.

use std::sync::Arc;

use pdawl_api::cluster::space::{Block, Extent, SpaceBlock, SpaceId};
use pdawl_api::cluster::task::{Computed, SubtaskLaunch, Task};
use pdawl_api::codelet::{Codelet, Cost, convolution};
use pdawl_api::verify::Checked;
use pdawl_api::workload::cluster::{Check, ClusterWorkload, Contents, Layout, NewSpace};

/// Subtasks of equal cost that read and write little, of what each node has equally much.
#[derive(Clone)]
pub struct Equal {
    count: u64,
    flops: f64,
    nodes: u64,
    codelet: Arc<Codelet>,
}

impl Equal {
    pub fn new(count: u64, flops: f64, nodes: u64) -> Self {
        Self {
            count,
            flops,
            nodes,
            codelet: Arc::new(convolution::codelet(3, 1)),
        }
    }
}

impl ClusterWorkload for Equal {
    fn name(&self) -> &'static str {
        "equal"
    }

    fn spaces(&self) -> Vec<NewSpace> {
        let extent = Extent {
            rows: 1,
            columns: self.count,
            element: 4096,
        };
        let cuts = (0..=self.nodes).map(|node| self.count * node / self.nodes);
        let layout = Layout::Columns(cuts.collect::<Vec<u64>>().into());
        let unused = Arc::new(|_: &Block, _: &mut [u8]| panic!("a simulation has no contents"));
        let contents = [Some(Contents::placed(layout, unused)), None];
        contents
            .map(|contents| NewSpace { extent, contents })
            .into()
    }

    fn tasks(&self) -> u64 {
        1
    }

    fn task(&self, _: u64, spaces: &[SpaceId]) -> Arc<dyn Computed> {
        Arc::new(EqualTask {
            of: self.clone(),
            spaces: [spaces[0], spaces[1]],
        })
    }

    fn result(&self) -> usize {
        1
    }

    fn check(&self) -> Check<'_> {
        Check::Blocks(Box::new(|_, _, _| Checked::default()))
    }
}

struct EqualTask {
    of: Equal,
    spaces: [SpaceId; 2],
}

impl EqualTask {
    fn part(&self, space: usize, subtask: u64) -> Vec<SpaceBlock> {
        let (space, block) = (self.spaces[space], Block::new(0..1, subtask..subtask + 1));
        vec![SpaceBlock { space, block }]
    }
}

impl Task for EqualTask {
    fn name(&self) -> &str {
        "equal"
    }

    fn count(&self) -> u64 {
        self.of.count
    }

    fn reads(&self, subtask: u64) -> Vec<SpaceBlock> {
        self.part(0, subtask)
    }

    fn writes(&self, subtask: u64) -> Vec<SpaceBlock> {
        self.part(1, subtask)
    }

    fn cost(&self, _: u64) -> Cost {
        Cost {
            flops: self.of.flops,
            bytes: 8192.0,
        }
    }
}

impl Computed for EqualTask {
    fn launch(&self, _: u64) -> SubtaskLaunch {
        SubtaskLaunch {
            codelet: Arc::clone(&self.of.codelet),
            units: 0..4096,
            values: Vec::new(),
        }
    }
}

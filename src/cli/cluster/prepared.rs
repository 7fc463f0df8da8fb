//! A workload that was made from the command line.

use pdawl::cluster::space::Extent;
use pdawl::report::cluster::WorkloadDescription;
use pdawl::workload::cluster::ClusterWorkload;

/// A workload over nodes.
pub struct PreparedWorkload {
    pub workload: Box<dyn ClusterWorkload>,
    /// Its sizes, in words.
    pub size: String,
    /// Rows and columns of blocks.
    pub tile: u64,
}

impl PreparedWorkload {
    /// Bytes of all spaces.
    pub fn bytes(&self) -> u128 {
        let bytes = self.workload.spaces().into_iter().map(|space| {
            let Extent {
                rows,
                columns,
                element,
            } = space.extent;
            u128::from(rows) * u128::from(columns) * u128::from(element)
        });
        bytes.sum()
    }

    /// What is computed, for reports.
    pub fn described(&self) -> WorkloadDescription {
        let tasks = self.workload.tasks();
        let ids: Vec<_> = (0..)
            .map(pdawl::cluster::space::SpaceId)
            .take(self.workload.spaces().len())
            .collect();
        let (mut subtasks, mut flops) = (0, 0.0);
        for number in 0..tasks {
            let task = self.workload.task(number, &ids);
            subtasks += task.count();
            flops += (0..task.count())
                .map(|subtask| task.cost(subtask).flops)
                .sum::<f64>();
        }
        WorkloadDescription {
            name: self.workload.name(),
            size: self.size.clone(),
            tasks,
            subtasks,
            flops,
        }
    }
}

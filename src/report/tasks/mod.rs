//! The report of policies on sets of tasks that share data, as JSON of schema
//! `pdawl-tasks/1` and as text.

mod text;

use pdawl_profiler::median;
use serde::Serialize;

use crate::experiment::tasks::TaskFigures;

/// The schema's name and version.
pub const SCHEMA: &str = "pdawl-tasks/1";

/// Policies that ran in turns on sets of several sizes. Times and rates are simulated if
/// `simulated`, but for `deciding_seconds`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskReport {
    pub schema: &'static str,
    /// Of the program.
    pub version: &'static str,
    pub machine: String,
    pub simulated: bool,
    /// Names of the devices that took part.
    pub devices: Vec<String>,
    /// The most bytes of each device's own memory; `None`: all.
    pub gpu_memory_bytes: Option<u64>,
    /// `matmul2d`, `matmul3d`, `cholesky`, `sparse` or `random`.
    pub set: &'static str,
    /// Rows and columns of a tile; `None` for random tasks.
    pub tile: Option<u32>,
    /// Whether tasks of this set write results, add up their tiles, and depend on one
    /// another.
    pub outputs: bool,
    pub sum: bool,
    pub dependencies: bool,
    /// Tasks that a device has at once; `None`: the policies' default.
    pub window: Option<usize>,
    pub seed: u64,
    /// Runs of each policy that were asked for.
    pub repeats: u32,
    pub rows: Vec<TaskRow>,
    pub interrupted: bool,
    pub notes: Vec<String>,
}

/// A policy on a set of one size. The figures are those of the run with the median time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskRow {
    pub n: u32,
    pub tasks: usize,
    pub policy: String,
    /// `natural` or `random`.
    pub order: &'static str,
    pub seconds: f64,
    pub gflops: f64,
    /// What the machine's rates and its bus allow at most; `None` if they are unknown.
    pub bound_gflops: Option<f64>,
    pub loaded_bytes: u64,
    pub written_back_bytes: u64,
    /// Copied from device to device.
    pub peer_bytes: u64,
    pub evictions: u64,
    /// The median of all runs, in real seconds.
    pub deciding_seconds: f64,
    /// Runs that ended.
    pub repeats: usize,
}

/// A size of a set under one policy, and its runs.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskRuns {
    pub n: u32,
    pub tasks: usize,
    pub policy: String,
    pub order: &'static str,
    /// Operations of all tasks.
    pub flops: f64,
    /// The least seconds that the machine allows, if they are known.
    pub least_seconds: Option<f64>,
    pub runs: Vec<TaskFigures>,
}

impl TaskRuns {
    /// The row of these runs; `None` without any.
    pub fn row(mut self) -> Option<TaskRow> {
        (self.runs).sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
        let deciding: Vec<f64> = self.runs.iter().map(|run| run.deciding_seconds).collect();
        // The lower one of two in the middle.
        let run = self.runs.get(self.runs.len().saturating_sub(1) / 2)?;
        let gflops = |seconds: f64| self.flops / seconds / 1e9;
        Some(TaskRow {
            n: self.n,
            tasks: self.tasks,
            policy: self.policy,
            order: self.order,
            seconds: run.seconds,
            gflops: gflops(run.seconds),
            bound_gflops: self.least_seconds.map(gflops),
            loaded_bytes: run.loaded_bytes,
            written_back_bytes: run.written_back_bytes,
            peer_bytes: run.peer_bytes,
            evictions: run.evictions,
            deciding_seconds: median(&deciding)?,
            repeats: self.runs.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_figures_of_the_median_run() {
        let run = |seconds: f64, loaded_bytes, deciding_seconds| TaskFigures {
            seconds,
            loaded_bytes,
            peer_bytes: 0,
            written_back_bytes: 0,
            evictions: 0,
            deciding_seconds,
            interrupted: false,
            lost: Vec::new(),
        };
        let runs = TaskRuns {
            n: 2,
            tasks: 4,
            policy: "eager".into(),
            order: "natural",
            flops: 8e9,
            least_seconds: Some(1.0),
            runs: vec![run(4.0, 40, 0.3), run(1.0, 10, 0.1), run(2.0, 20, 0.2)],
        };
        let none = TaskRuns {
            runs: Vec::new(),
            ..runs.clone()
        };
        assert_eq!(none.row(), None);
        let row = runs.row().unwrap();
        assert_eq!((row.seconds, row.loaded_bytes), (2.0, 20));
        assert_eq!((row.gflops, row.bound_gflops), (4.0, Some(8.0)));
        assert_eq!((row.deciding_seconds, row.repeats), (0.2, 3));
    }
}

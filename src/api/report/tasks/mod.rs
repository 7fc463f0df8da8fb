//! The report of policies on sets of tasks that share data, as JSON of schema
//! `pdawl-tasks/1` and as text.

#[cfg(feature = "text")]
mod text;

use pdawl_profiler::median;
use schemars::JsonSchema;
use serde::Serialize;

use crate::experiment::tasks::TaskFigures;

/// Policies that ran in turns on sets of several sizes: each repeat runs every policy once, and
/// on real devices each run follows one that does not count. Times and rates are simulated if
/// `simulated`, but for `deciding_seconds`.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct TaskReport {
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
    /// Of the first repeat; each further one has the next for its policies.
    pub seed: u64,
    /// Runs of each policy that were asked for.
    pub repeats: u32,
    pub rows: Vec<TaskRow>,
    pub interrupted: bool,
    pub notes: Vec<String>,
}

/// A policy on a set of one size. The figures are those of the run with the median time.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct TaskRow {
    /// Tiles along a matrix; of random tasks their number.
    pub n: u32,
    /// Number of tasks.
    pub tasks: usize,
    pub policy: String,
    /// `natural` or `random`.
    pub order: &'static str,
    /// From the first decision until the last result is there, of the run with the median time
    /// (the shorter of two).
    pub seconds: f64,
    /// Operations of all tasks over `seconds`, in 10^9/s.
    pub gflops: f64,
    /// Operations over the least time that the machine file allows, the greater of two: all
    /// devices compute at their single-precision rates all the time; every given datum that is
    /// read and every wanted result cross the host's bus once (the links, if the file has no
    /// bus). `None` on real devices.
    pub bound_gflops: Option<f64>,
    /// Copied from host memory to devices, and back.
    pub loaded_bytes: u64,
    pub written_back_bytes: u64,
    /// Copied from device to device.
    pub peer_bytes: u64,
    /// Data that left a device's memory, to make room or since nothing needed them.
    pub evictions: u64,
    /// Real time to make the policy and within its calls, the median of all runs. Simulated
    /// `seconds` do not contain it, measured ones contain the calls.
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

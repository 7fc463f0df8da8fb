//! The report of a comparison of strategies as JSON, schema `pdawl-bench/1`.

use pdawl_profiler::median;
use schemars::JsonSchema;
use serde::Serialize;

use super::run::{Machine, Throughput, Workload};
use crate::engine::Outcome;

/// Strategies that ran in turns on one workload and machine: each repeat runs every strategy
/// once.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Bench {
    pub workload: Workload,
    pub machine: Machine,
    /// Runs of each strategy, as asked for.
    pub repeats: u32,
    pub results: Vec<BenchResult>,
    /// Null if `cpu` was not run, or the bandwidth is unknown.
    pub host: Option<HostRatio>,
    pub interrupted: bool,
    pub notes: Vec<String>,
}

/// The result of one strategy.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct BenchResult {
    #[serde(flatten)]
    pub runs: Runs,
    /// The throughput of the median run.
    pub throughput: Throughput,
    /// That throughput over the throughput of the best single device; `None` if no
    /// device ran alone.
    pub to_best_single: Option<f64>,
    /// That throughput over the oracle's; `None` if the oracle did not run.
    pub to_oracle: Option<f64>,
}

/// The times of a strategy's runs.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize)]
pub struct Runs {
    /// As on the command line.
    pub strategy: String,
    /// Seconds of all steps, by run.
    pub seconds: Vec<f64>,
    /// Seconds before the first step, by run.
    pub setup_seconds: Vec<f64>,
    /// The part of `setup_seconds` in which devices were probed, by run.
    pub probe_seconds: Vec<f64>,
    /// Seconds after the last step, by run.
    pub gather_seconds: Vec<f64>,
}

impl Runs {
    /// A strategy without runs.
    pub fn of(strategy: impl ToString) -> Self {
        Self {
            strategy: strategy.to_string(),
            ..Self::default()
        }
    }

    /// Adds a run.
    pub fn add(&mut self, outcome: &Outcome) {
        self.seconds.push(outcome.seconds);
        self.setup_seconds.push(outcome.setup_seconds);
        self.probe_seconds.push(outcome.probe_seconds);
        self.gather_seconds.push(outcome.gather_seconds);
    }
}

/// The host's throughput compared with what its memory bandwidth allows.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct HostRatio {
    /// Bytes a second that a copy reads and writes: measured, or in a simulation from
    /// the machine file.
    pub copy_bandwidth: f64,
    /// Bytes of memory traffic that a point needs at least.
    pub bytes_per_point: f64,
    /// The throughput that this bandwidth allows.
    pub allowed: Throughput,
    /// The throughput of `cpu` over `allowed`.
    pub ratio: f64,
    /// Seconds of one step of a product by one core in a plain loop, if it was timed.
    pub sequential_seconds: Option<f64>,
    /// `sequential_seconds` over the seconds of a step of `cpu`.
    pub speedup: Option<f64>,
}

impl HostRatio {
    /// The ratio with the seconds that one core takes for `points` points.
    pub fn with_sequential(mut self, sequential: Option<f64>, points: u64) -> Self {
        let step = points as f64 / (self.allowed.value * self.ratio);
        self.sequential_seconds = sequential;
        self.speedup = sequential.map(|seconds| seconds / step);
        self
    }
}

/// The results on a workload, in the order of the strategies and without those that
/// never ran. `singles` are the strategies that use one device alone.
pub fn results(workload: &Workload, runs: &[Runs], singles: &[String]) -> Vec<BenchResult> {
    let points = (workload.points()).saturating_mul(workload.steps().into());
    let throughput =
        |seconds: &[f64]| median(seconds).map(|seconds| workload.throughput(points, seconds));
    let value = |name: &str| {
        let runs = runs.iter().find(|runs| runs.strategy == name)?;
        throughput(&runs.seconds)
            .map(|t| t.value)
            .filter(|v| *v > 0.0)
    };
    let single = singles
        .iter()
        .filter_map(|name| value(name))
        .reduce(f64::max);
    let oracle = value("oracle");
    runs.iter()
        .filter_map(|runs| {
            let throughput = throughput(&runs.seconds)?;
            Some(BenchResult {
                runs: runs.clone(),
                to_best_single: single.map(|s| throughput.value / s),
                to_oracle: oracle.map(|o| throughput.value / o),
                throughput,
            })
        })
        .collect()
}

/// The host's ratio, if `cpu` ran.
pub fn host_ratio(
    results: &[BenchResult],
    copy_bandwidth: f64,
    bytes_per_point: f64,
) -> Option<HostRatio> {
    let cpu = results
        .iter()
        .find(|result| result.runs.strategy == "cpu")?;
    let allowed = copy_bandwidth / bytes_per_point;
    Some(HostRatio {
        copy_bandwidth,
        bytes_per_point,
        allowed: Throughput {
            value: allowed,
            unit: cpu.throughput.unit,
        },
        ratio: cpu.throughput.value / allowed,
        sequential_seconds: None,
        speedup: None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::run::Parameters;
    use super::super::run::workload::StencilParameters;
    use super::*;

    fn runs(of: &[(&str, &[f64])]) -> Vec<Runs> {
        of.iter()
            .map(|(name, seconds)| Runs {
                seconds: seconds.to_vec(),
                ..Runs::of(name)
            })
            .collect()
    }

    /// A thousand points in all steps.
    fn thousand() -> Workload {
        Workload::new(
            "stencil",
            Parameters::Stencil(StencilParameters {
                nx: 25,
                ny: 10,
                nz: None,
                precision: "f64",
                coefficients: None,
                input: None,
                steps: 4,
                superstep: 1,
                until: None,
                check_every: None,
                seed: 1,
            }),
        )
    }

    #[test]
    fn ratios_are_of_medians() {
        let results = results(
            &thousand(),
            &runs(&[
                ("cpu", &[2.0, 9.0, 2.0]),
                ("gpu", &[4.0, 4.0]),
                ("dawl", &[1.25, 1.0, 1.5]),
                ("oracle", &[1.0]),
                ("guided", &[]),
            ]),
            &["cpu".into(), "gpu".into()],
        );
        assert_eq!(results.len(), 4);
        assert_eq!(results[0].throughput.value, 500.0);
        assert_eq!(results[2].to_best_single, Some(1.6));
        assert_eq!(results[2].to_oracle, Some(0.8));
        let host = host_ratio(&results, 10_000.0, 16.0).unwrap();
        assert_eq!((host.allowed.value, host.ratio), (625.0, 0.8));
        let beside = host.clone().with_sequential(Some(1.5), 250);
        assert_eq!(
            (beside.sequential_seconds, beside.speedup),
            (Some(1.5), Some(3.0))
        );
        assert_eq!(host.with_sequential(None, 250).speedup, None);
    }

    #[test]
    fn what_was_not_run_is_not_compared_with() {
        let results = results(&thousand(), &runs(&[("dawl", &[1.0])]), &["cpu".into()]);
        assert_eq!(results[0].to_best_single, None);
        assert_eq!(results[0].to_oracle, None);
        assert_eq!(host_ratio(&results, 1e9, 16.0), None);
    }
}

//! The report of a comparison of runs: JSON of schema `pdawl-bench/2`, and text.

mod text;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// Runs of one command with different options, in turns: each repeat runs all of them once.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Bench {
    /// What all runs have, as on the command line.
    pub command: String,
    /// What differs: the options of `--vary`, and `case` for `--case`, in the order of the
    /// command line. The last one varies first.
    pub varied: Vec<String>,
    /// How often each run was asked for.
    pub repeats: u32,
    /// Without those that never ended.
    pub runs: Vec<BenchRun>,
    pub interrupted: bool,
}

/// A run with its own options.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct BenchRun {
    /// What differs, by name.
    pub values: BTreeMap<String, String>,
    /// `seconds` of the reports of all repeats, in their order.
    pub seconds: Vec<f64>,
    /// How many times as fast as the run with the first value of what varies first, by the
    /// medians; null if that did not end.
    pub to_first: Option<f64>,
    /// The report of the repeat with the median `seconds` (the shorter of two), as `pdawl run
    /// --format json` prints it.
    pub report: Value,
}

impl BenchRun {
    /// The run of these reports of its repeats, in their order; `None` without any.
    pub fn of(values: BTreeMap<String, String>, mut reports: Vec<Value>) -> Option<Self> {
        let seconds: Vec<f64> = reports.iter().map(seconds).collect();
        reports.sort_by(|a, b| self::seconds(a).total_cmp(&self::seconds(b)));
        let middle = reports.len().saturating_sub(1) / 2;
        (middle < reports.len()).then(|| Self {
            values,
            seconds,
            to_first: None,
            report: reports.swap_remove(middle),
        })
    }

    /// The median of the repeats, the shorter of two.
    pub fn median(&self) -> f64 {
        seconds(&self.report)
    }
}

fn seconds(report: &Value) -> f64 {
    report["seconds"].as_f64().unwrap_or(f64::NAN)
}

impl Bench {
    /// Compares each run with that of the first value, `first`, of what varies first.
    pub fn compare(&mut self, first: &str) {
        let Some(name) = self.varied.last() else {
            return;
        };
        let others = |run: &BenchRun| {
            let mut values = run.values.clone();
            values.remove(name).map(|value| (value, values))
        };
        let firsts: Vec<_> = (self.runs.iter())
            .filter_map(|run| Some((others(run)?, run.median())))
            .filter(|((value, _), _)| value == first)
            .map(|((_, others), median)| (others, median))
            .collect();
        for run in &mut self.runs {
            let Some((_, own)) = others(run) else {
                continue;
            };
            let found = firsts.iter().find(|(others, _)| *others == own);
            run.to_first = found.map(|(_, first)| first / run.median());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Runs on these nodes under these policies with medians in whole seconds.
    fn bench(runs: &[(&str, &str, f64)]) -> Bench {
        let run = |(nodes, policy, median): &(&str, &str, f64)| {
            let value = |name: &str, value: &str| (name.to_owned(), value.to_owned());
            let values = [value("nodes", nodes), value("policy", policy)];
            let report = json!({"seconds": median});
            BenchRun::of(values.into(), vec![report]).unwrap()
        };
        Bench {
            command: "run some".to_owned(),
            varied: vec!["nodes".to_owned(), "policy".to_owned()],
            repeats: 1,
            runs: runs.iter().map(run).collect(),
            interrupted: false,
        }
    }

    #[test]
    fn the_report_is_that_of_the_median_run() {
        let of = |seconds: &[f64]| {
            let reports = seconds.iter().map(|seconds| json!({"seconds": seconds}));
            BenchRun::of(BTreeMap::new(), reports.collect())
        };
        assert_eq!(of(&[]), None);
        let run = of(&[4.0, 1.0, 3.0]).unwrap();
        assert_eq!(
            (run.median(), &run.seconds[..]),
            (3.0, &[4.0, 1.0, 3.0][..])
        );
        assert_eq!(of(&[4.0, 1.0]).unwrap().median(), 1.0);
    }

    #[test]
    fn runs_are_compared_where_only_the_last_option_differs() {
        let mut bench = bench(&[
            ("1", "eager", 8.0),
            ("1", "heft", 4.0),
            ("2", "eager", 3.0),
            ("2", "heft", 6.0),
            ("4", "heft", 1.0),
        ]);
        bench.compare("eager");
        let ratios: Vec<_> = bench.runs.iter().map(|run| run.to_first).collect();
        assert_eq!(ratios, [Some(1.0), Some(2.0), Some(1.0), Some(0.5), None]);
    }
}

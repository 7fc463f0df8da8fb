//! The report of a comparison of strategies as text.

use std::fmt::{self, Write};

use super::bench::Bench;
use super::style::{MAIN, STRONG, cell, column, ending, line, origin, styled, written};
use super::table;
use crate::quantity::{Count, Percent, Seconds};
use pdawl_profiler::median;

/// Writes the comparison, with ANSI styles.
pub fn render(bench: &Bench) -> String {
    written(|out| write_bench(bench, out))
}

fn write_bench(bench: &Bench, out: &mut String) -> fmt::Result {
    let origin = origin(bench.machine.simulated);
    writeln!(
        out,
        "{}, {} steps, {} runs a strategy, in turns\non {}{origin}\n",
        styled(STRONG, &bench.workload.title),
        bench.workload.steps(),
        bench.repeats,
        styled(STRONG, &bench.machine.name),
    )?;
    let throughput = column("Throughput", bench.machine.simulated);
    let header = [
        "Strategy",
        &throughput,
        "Median",
        "Least",
        "Greatest",
        "To best single",
        "To oracle",
    ];
    let mut table = table::plain(&header, |column| column > 0);
    for result in &bench.results {
        let seconds =
            |value: Option<f64>| value.map_or_else(String::new, |v| Seconds(v).to_string());
        let runs = || result.runs.seconds.iter().copied();
        table.add_row(vec![
            result.runs.strategy.clone(),
            Count(result.throughput.value, result.throughput.each()).to_string(),
            seconds(median(&result.runs.seconds)),
            seconds(runs().min_by(f64::total_cmp)),
            seconds(runs().max_by(f64::total_cmp)),
            cell(result.to_best_single, |ratio| format!("{ratio:.3}")),
            cell(result.to_oracle, |ratio| format!("{ratio:.3}")),
        ]);
    }
    writeln!(out, "{}\n", table.trim_fmt())?;
    if let Some(host) = &bench.host {
        line(
            out,
            "Host",
            format!(
                "{} of the {} that its copy bandwidth of {} allows at {} bytes a {}{origin}",
                styled(MAIN, Percent(host.ratio)),
                Count(host.allowed.value, host.allowed.each()),
                Count(host.copy_bandwidth, "B/s"),
                (host.bytes_per_point * 10.0).round() / 10.0,
                host.allowed.each().trim_end_matches("/s")
            ),
        )?;
    }
    let host = bench.host.as_ref();
    if let Some((host, speedup)) = host.and_then(|host| Some((host, host.speedup?))) {
        let sequential = host.sequential_seconds.unwrap_or(f64::NAN);
        line(
            out,
            "",
            format!(
                "{} as fast as one core in a plain loop, which takes {}",
                styled(MAIN, format!("{speedup:.2} x")),
                Seconds(sequential)
            ),
        )?;
    }
    ending(out, bench.interrupted, &bench.notes)
}

#[cfg(test)]
mod tests {
    use super::super::bench::{Runs, host_ratio, results};
    use super::super::run::fixtures::context;
    use super::*;

    #[test]
    fn reads_like_this() {
        let context = context();
        let runs = |strategy: &str, seconds: [f64; 3]| Runs {
            seconds: seconds.to_vec(),
            ..Runs::of(strategy)
        };
        let results = results(
            &context.workload,
            &[
                runs("cpu", [0.8, 0.82, 0.81]),
                runs("dawl", [0.4, 0.41, 0.42]),
            ],
            &["cpu".into()],
        );
        let bench = Bench {
            workload: context.workload,
            machine: context.machine,
            repeats: 3,
            host: host_ratio(&results, 1e6, 16.0),
            results,
            interrupted: false,
            notes: vec!["a busy machine".into()],
        };
        let text = anstream::adapter::strip_str(&render(&bench)).to_string();
        assert_eq!(text, include_str!("bench.txt"));
    }
}

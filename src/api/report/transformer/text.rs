//! The report of the experiments as text.

use std::fmt::{self, Write};

use super::super::style::{ALARM, STRONG, cell, column, ending, origin, styled, written};
use super::super::table;
use super::{CandidateResult, Experiments, PointReport};
use crate::quantity::{Count, Seconds};

impl Experiments {
    /// The report as text, with ANSI styles.
    pub fn render(&self) -> String {
        written(|out| self.write(out))
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        let stay = match self.resident {
            true => "data stay on the devices",
            false => "data go to the devices and back in every run",
        };
        writeln!(
            out,
            "{}, {} runs each, in turns, each after one that does not count; {stay}\non {}{}\n",
            styled(
                STRONG,
                format!("transformer, layers: {}, {}", self.layers, self.precision)
            ),
            self.repeats,
            styled(STRONG, &self.machine.name),
            origin(self.machine.simulated),
        )?;
        let seconds = column("Median", self.machine.simulated);
        let header = [
            "Heads x beta",
            "Policy",
            "Queues",
            "On CPU",
            &seconds,
            "Least",
            "Operations",
            "To clustering",
            "Host/kernel",
            "Driver/kernel",
            "Error",
        ];
        let mut table = table::plain(&header, |column| column > 1);
        for point in &self.points {
            for (index, candidate) in point.candidates.iter().enumerate() {
                table.add_row(row(point, candidate, index == 0));
            }
        }
        writeln!(out, "{}\n", table.trim_fmt())?;
        writeln!(out, "{}", styled(STRONG, "What the paper's text says"))?;
        for claim in &self.paper {
            writeln!(
                out,
                "  {} {} to {} for {}: {}",
                claim.ratio, claim.least, claim.greatest, claim.points, claim.source
            )?;
        }
        ending(out, self.interrupted, &self.notes)
    }
}

fn row(point: &PointReport, candidate: &CandidateResult, first: bool) -> Vec<String> {
    let ratio = candidate.over_clustering(&point.candidates);
    let least = candidate.seconds.iter().copied().min_by(f64::total_cmp);
    let name = match (first, point.heads, point.beta) {
        (true, heads, beta) => format!("{heads} x {beta}"),
        (false, ..) => String::new(),
    };
    let error = match (candidate.right, candidate.error) {
        (Some(true), Some(error)) => format!("{error:.1e}"),
        (Some(_), _) => styled(ALARM, "wrong"),
        (None, _) => "-".to_owned(),
    };
    let queues = match candidate.width < candidate.q_gpu {
        true => format!(
            "{} + {}, {} a head",
            candidate.q_gpu, candidate.q_cpu, candidate.width
        ),
        false => format!("{} + {}", candidate.q_gpu, candidate.q_cpu),
    };
    vec![
        name,
        candidate.name.clone(),
        queues,
        cell(candidate.h_cpu, |heads| heads),
        cell(candidate.median(), Seconds),
        cell(least, Seconds),
        cell(candidate.flops_per_second, |rate| Count(rate, "flop/s")),
        cell(ratio, |ratio| format!("{ratio:.2}")),
        cell(candidate.host_seconds_per_kernel, Seconds),
        cell(candidate.driver_seconds_per_kernel, Seconds),
        error,
    ]
}

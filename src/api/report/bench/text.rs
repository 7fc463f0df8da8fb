//! A comparison of runs as text: a table with a line for each.

use std::fmt::{self, Write};

use serde_json::Value;

use super::super::run::Throughput;
use super::super::style::{STRONG, cell, column, ending, origin, styled, written};
use super::super::table;
use super::{Bench, BenchRun};
use crate::quantity::{Count, Seconds};

impl Bench {
    /// The comparison as text, with ANSI styles.
    pub fn render(&self) -> String {
        written(|out| self.write(out))
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        let machine = self.runs.first().map(|run| &run.report["machine"]);
        let simulated = machine.is_some_and(|machine| machine["simulated"] == true);
        writeln!(
            out,
            "{}: {} repeats of each run, in turns\non {}{}\n",
            styled(STRONG, &self.command),
            self.repeats,
            styled(STRONG, machine.map_or("", |machine| text(&machine["name"]))),
            origin(simulated),
        )?;
        let times = ["Throughput", "Median"].map(|name| column(name, simulated));
        let times = times.iter().map(String::as_str);
        let header: Vec<&str> = (self.varied.iter().map(String::as_str).chain(times))
            .chain(["Least", "Greatest", "To first"])
            .collect();
        let mut table = table::plain(&header, |column| column >= self.varied.len());
        for run in &self.runs {
            table.add_row(self.cells(run));
        }
        writeln!(out, "{}\n", table.trim_fmt())?;
        ending(out, self.interrupted, &self.notes())
    }

    fn cells(&self, run: &BenchRun) -> Vec<String> {
        let rate = &run.report["throughput"];
        let rate = rate["value"].as_f64().zip(rate["unit"].as_str());
        let ends = [f64::min, f64::max].map(|end| run.seconds.iter().copied().reduce(end));
        let values = self.varied.iter().map(|name| run.values[name].clone());
        let figures = [
            cell(rate, |(value, unit)| {
                Count(value, Throughput::singular(unit))
            }),
            Seconds(run.median()).to_string(),
        ];
        let ends = ends.map(|end| cell(end, Seconds));
        let to_first = cell(run.to_first, |ratio| format!("{ratio:.3}"));
        let figures = figures.into_iter().chain(ends).chain([to_first]);
        values.chain(figures).collect()
    }

    /// What the reports of the runs note, each once, and the losses of each run.
    fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = Vec::new();
        for run in &self.runs {
            for note in list(&run.report["notes"]).map(text) {
                if !notes.iter().any(|known| known == note) {
                    notes.push(note.to_owned());
                }
            }
        }
        for run in &self.runs {
            let which: Vec<String> = (self.varied.iter())
                .map(|name| format!("{name} {}", run.values[name]))
                .collect();
            let losses = list(&run.report["lost"]).map(|lost| {
                let what = match lost["device"].as_str() {
                    Some(device) => device.to_owned(),
                    None => format!("node {}", lost["node"]),
                };
                format!(
                    "{}: {what} was lost: {}",
                    which.join(", "),
                    text(&lost["why"])
                )
            });
            notes.extend(losses);
        }
        notes
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_like_this() {
        let run = |strategy: &str, seconds: [f64; 3], lost: Value| {
            let report = |seconds: f64| {
                json!({
                    "machine": {"name": "k40", "simulated": true},
                    "seconds": seconds,
                    "throughput": {"value": 40_000.0 / seconds, "unit": "points/s"},
                    "notes": ["a busy machine"],
                    "lost": lost,
                })
            };
            let values = [("strategy".to_owned(), strategy.to_owned())];
            BenchRun::of(values.into(), seconds.map(report).into()).unwrap()
        };
        let lost = json!([{"device": "gpu0", "why": "unplugged"}]);
        let mut bench = Bench {
            command: "pdawl run stencil".to_owned(),
            varied: vec!["strategy".to_owned()],
            repeats: 3,
            runs: vec![
                run("cpu", [0.8, 0.82, 0.81], json!([])),
                run("dawl", [0.4, 0.41, 0.42], lost),
            ],
            interrupted: true,
        };
        bench.compare("cpu");
        let text = anstream::adapter::strip_str(&bench.render()).to_string();
        assert_eq!(
            text,
            "pdawl run stencil: 3 repeats of each run, in turns\n\
             on k40 simulated\n\
             \n  strategy  Throughput (simulated)  Median (simulated)   Least  Greatest  To first\n  \
             cpu                49.4 kpoint/s              810 ms  800 ms    820 ms     1.000\n  \
             dawl               97.6 kpoint/s              410 ms  400 ms    420 ms     1.976\n\
             \n\
             Interrupted on request\n\
             Note: a busy machine\n\
             Note: strategy dawl: gpu0 was lost: unplugged\n"
        );
    }
}

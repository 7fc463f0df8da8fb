//! What is known of the runs that were measured on a machine, as text.

use std::collections::BTreeMap;

use super::super::table;
use crate::profile::kernels::{KernelTimes, PartRow, RunRow};

/// A table of the kinds of runs, and the parts of the devices on which each was measured or
/// expected. Seconds are those of a run, or of a step.
pub fn render(runs: &BTreeMap<String, RunRow>) -> String {
    if runs.is_empty() {
        return "no runs are known; `pdawl run` leaves what it takes\n".to_owned();
    }
    let header = [
        "Run", "Devices", "Runs", "Least", "Median", "Spread", "Expected",
    ];
    let mut table = table::plain(&header, |column| column > 1);
    for (kind, row) in runs {
        // The end of a kind tells apart what is called alike.
        let title = kind
            .rsplit_once(' ')
            .map_or(kind.as_str(), |(title, _)| title);
        let each = |of: &dyn Fn(&String, &PartRow) -> String| {
            let lines = row.parts.iter().map(|(part, row)| of(part, row));
            lines.collect::<Vec<_>>().join("\n")
        };
        let time =
            |of: fn(&KernelTimes) -> f64| each(&|_, row| milliseconds(row.times.as_ref().map(of)));
        table.add_row(vec![
            title.to_owned(),
            each(&|part, _| part.clone()),
            each(&|_, row| row.count().to_string()),
            time(KernelTimes::least),
            time(KernelTimes::median),
            time(KernelTimes::spread),
            each(&|_, row| milliseconds(row.expected)),
        ]);
    }
    format!("{table}\n")
}

fn milliseconds(seconds: Option<f64>) -> String {
    seconds.map_or(String::new(), |seconds| format!("{:.3} ms", 1e3 * seconds))
}

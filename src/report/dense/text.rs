//! The report as text.

use std::fmt::{self, Write};

use super::super::style::{ALARM, FAINT, MAIN, STRONG, line, notes, origin, styled, written};
use super::super::table;
use super::{DenseDevice, DenseReport, DenseVerification};
use crate::quantity::{Bytes, Count, Percent, Seconds};

const HEADER: [&str; 9] = [
    "Device", "Tasks", "Share", "Finished", "Busy", "Loaded", "Back", "Peer", "Evicted",
];

impl DenseReport {
    /// The report as text, with ANSI styles.
    pub fn render(&self) -> String {
        written(|out| self.write(out))
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        self.heading(out)?;
        self.figures(out)?;
        let mut table = table::plain(&HEADER, |column| column > 0);
        for device in &self.devices {
            table.add_row(cells(device));
        }
        writeln!(out, "{}\n", table.trim_fmt())?;
        for lost in &self.lost {
            writeln!(out, "{} lost {lost}", styled(ALARM, "!"))?;
        }
        if self.interrupted {
            writeln!(out, "{} interrupted", styled(ALARM, "!"))?;
        }
        notes(out, &self.notes)
    }

    fn heading(&self, out: &mut String) -> fmt::Result {
        let of = &self.operation;
        let size = match of.depth {
            Some(depth) => format!("{} x {depth} by {depth} x {}", of.rows, of.columns),
            None => format!("{} x {}", of.rows, of.columns),
        };
        let memory = self.gpu_memory_bytes.map_or(String::new(), |bytes| {
            format!(", {} of each GPU's memory", Bytes(bytes))
        });
        let devices = self.machine.devices.iter();
        let devices: Vec<String> = devices
            .map(|device| format!("{} ({})", device.name, device.model))
            .collect();
        writeln!(
            out,
            "{}, {}: {} tasks on tiles of {}\non {}{}: {}{memory}\n",
            styled(STRONG, format!("{} {size} {}", of.name, of.precision)),
            styled(STRONG, &self.policy),
            of.tasks,
            of.tile,
            styled(STRONG, &self.machine.name),
            origin(self.machine.simulated),
            styled(FAINT, devices.join(", "))
        )
    }

    fn figures(&self, out: &mut String) -> fmt::Result {
        let origin = origin(self.machine.simulated);
        if let Some(gflops) = self.gflops {
            let rate = styled(MAIN, Count(gflops * 1e9, "flop/s"));
            line(out, "Rate", format!("{rate}{origin}"))?;
        }
        let spread = match &self.runs[..] {
            [] | [_] => String::new(),
            runs => {
                let least = runs.iter().copied().fold(f64::INFINITY, f64::min);
                let most = runs.iter().copied().fold(0.0, f64::max);
                let (least, most) = (Seconds(least), Seconds(most));
                format!(", median of {}, {least} to {most}", runs.len())
            }
        };
        line(
            out,
            "Time",
            format!("{}{origin}{spread}", Seconds(self.seconds)),
        )?;
        let (setup, deciding) = (Seconds(self.setup_seconds), Seconds(self.deciding_seconds));
        line(
            out,
            "Real time",
            format!("setup {setup}, deciding {deciding}"),
        )?;
        if let Some(verification) = &self.verification {
            line(out, "Result", verdict(verification))?;
        }
        writeln!(out)
    }
}

fn verdict(of: &DenseVerification) -> String {
    let right = match of.right {
        true => styled(MAIN, "right"),
        false => styled(ALARM, "WRONG"),
    };
    let error = (of.error).map_or("not finite".to_owned(), |error| format!("{error:.2e}"));
    format!("{right}, error {error}, allowed {:.2e}", of.tolerance)
}

fn cells(device: &DenseDevice) -> Vec<String> {
    let seconds = |of: Option<f64>| of.map_or("-".to_owned(), |of| Seconds(of).to_string());
    vec![
        device.name.clone(),
        device.tasks.to_string(),
        Percent(device.share).to_string(),
        seconds(device.finished_seconds),
        seconds(device.busy_seconds),
        Bytes(device.loaded_bytes).to_string(),
        Bytes(device.written_back_bytes).to_string(),
        Bytes(device.peer_bytes).to_string(),
        device.evictions.to_string(),
    ]
}

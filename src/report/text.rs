//! The report of a run as text.

use std::fmt::{self, Write};

use anstyle::AnsiColor;

use super::schema::{Model, Report, Step};
use super::style::{ALARM, FAINT, MAIN, STRONG, line, notes, origin, styled, written};
use super::{bars, table};
use crate::quantity::{Bytes, Count, Percent, Seconds};

/// Writes the report, with ANSI styles.
pub fn render(report: &Report) -> String {
    written(|out| write_report(report, out))
}

fn write_report(report: &Report, out: &mut String) -> fmt::Result {
    heading(report, out)?;
    figures(report, out)?;
    devices(report, out)?;
    shares(report, out)?;
    remarks(report, out)
}

fn heading(report: &Report, out: &mut String) -> fmt::Result {
    writeln!(
        out,
        "{}, {} steps, {}",
        styled(STRONG, report.workload.title()),
        report.workload.steps(),
        styled(STRONG, &report.strategy)
    )?;
    let machine = &report.machine;
    writeln!(
        out,
        "on {}{}: {}",
        styled(STRONG, &machine.name),
        origin(machine.simulated),
        styled(
            FAINT,
            machine
                .devices
                .iter()
                .map(|d| format!("{} ({})", d.name, d.model))
                .collect::<Vec<_>>()
                .join(", ")
        )
    )?;
    writeln!(out)
}

fn figures(report: &Report, out: &mut String) -> fmt::Result {
    let simulated = report.machine.simulated;
    line(
        out,
        "Throughput",
        format!(
            "{}{}",
            styled(
                MAIN,
                Count(report.throughput.value, report.throughput.each())
            ),
            origin(simulated)
        ),
    )?;
    line(
        out,
        "Time",
        format!(
            "{} for {} steps; setup {}, gather {}",
            styled(MAIN, Seconds(report.seconds)),
            report.steps.len(),
            Seconds(report.setup_seconds),
            Seconds(report.gather_seconds)
        ),
    )?;
    if let Some((least, median, most)) = spread(&report.steps) {
        line(
            out,
            "Step",
            format!(
                "{} median, {} to {}",
                Seconds(median),
                Seconds(least),
                Seconds(most)
            ),
        )?;
    }
    line(out, "Imbalance", Percent(report.imbalance))?;
    for device in &report.devices {
        if let Some(imbalance) = device.worker_imbalance {
            let of = format!(
                "{} between the workers of {}",
                Percent(imbalance),
                device.name
            );
            line(out, "", of)?;
        }
    }
    if let Some(device) = &report.alone {
        let why = format!("{device}: a step on several devices would take longer");
        line(out, "Alone", why)?;
    }
    if let Some(overlap) = report.overlap {
        line(
            out,
            "Overlap",
            format!("{} of copy time under kernels", Percent(overlap)),
        )?;
    }
    if report.seconds > 0.0 {
        line(
            out,
            "Engine",
            format!(
                "{} ({} of the time)",
                Seconds(report.engine_seconds),
                Percent(report.engine_seconds / report.seconds)
            ),
        )?;
    }
    if let Some(model) = &report.model {
        line(out, "Model", in_words(model, report.steps.first()))?;
    }
    if let Some(right) = report.verified {
        let error = match report.max_abs_error {
            Some(0.0) => ", bit for bit".into(),
            Some(error) => format!(", largest difference {error:e}"),
            None => String::new(),
        };
        let verdict = match right {
            true => styled(MAIN, "right"),
            false => styled(ALARM, "WRONG"),
        };
        line(out, "Verified", format!("{verdict}{error}"))?;
    }
    if let Some(eigenvalue) = report.eigenvalue {
        line(
            out,
            "Eigenvalue",
            format!(
                "{} in magnitude, the estimate after the last step",
                styled(MAIN, format!("{eigenvalue:.9}"))
            ),
        )?;
    }
    for single in &report.comparison {
        line(
            out,
            &format!("vs {}", single.strategy),
            format!(
                "{:.2} x its {}{}",
                report.throughput.value / single.throughput.value,
                Count(single.throughput.value, single.throughput.each()),
                origin(simulated)
            ),
        )?;
    }
    writeln!(out)
}

/// The line of a cost model: its prediction, and how far it was followed.
fn in_words(model: &Model, first: Option<&Step>) -> String {
    let mut words = model.name.clone();
    if let (Some(predicted), Some(first)) = (model.predicted_step_seconds, first) {
        let _ = write!(
            words,
            ": first step predicted {}, measured {}",
            Seconds(predicted),
            Seconds(first.seconds)
        );
    }
    if model.replans > 0 {
        let _ = write!(words, "; planned anew {}", times(model.replans));
    }
    if let Some(step) = model.handed_over {
        let _ = write!(words, "; left to DAWL from step {step} on");
    }
    words
}

fn times(count: u32) -> String {
    match count {
        1 => "once".into(),
        2 => "twice".into(),
        count => format!("{count} times"),
    }
}

/// Least, median and greatest seconds of a step.
fn spread(steps: &[Step]) -> Option<(f64, f64, f64)> {
    let mut seconds: Vec<f64> = steps.iter().map(|s| s.seconds).collect();
    seconds.sort_by(f64::total_cmp);
    let (least, most) = (*seconds.first()?, *seconds.last()?);
    Some((least, pdawl_profiler::median(&seconds)?, most))
}

fn devices(report: &Report, out: &mut String) -> fmt::Result {
    let header = [
        "Device", "Kind", "Share", "Units", "Busy", "Idle", "Waits", "Chunks", "H2D", "D2H",
    ];
    let mut table = table::plain(&header, |column| column > 1);
    for device in &report.devices {
        table.add_row(vec![
            device.name.clone(),
            kind(device.kind).into(),
            Percent(device.share).to_string(),
            device.units.to_string(),
            Seconds(device.busy_seconds).to_string(),
            Seconds(device.idle_seconds).to_string(),
            (device.wait_seconds).map_or_else(|| "-".into(), |w| Seconds(w).to_string()),
            device.chunks.to_string(),
            Bytes(device.bytes_h2d).to_string(),
            Bytes(device.bytes_d2h).to_string(),
        ]);
    }
    writeln!(out, "{}\n", table.trim_fmt())
}

/// A kind of device as in the JSON report.
pub fn kind(kind: crate::machine::DeviceKind) -> &'static str {
    use crate::machine::DeviceKind::{Accelerator, Cpu, Gpu};
    match kind {
        Cpu => "cpu",
        Gpu => "gpu",
        Accelerator => "accelerator",
    }
}

fn shares(report: &Report, out: &mut String) -> fmt::Result {
    let (Some(first), Some(last)) = (report.steps.first(), report.steps.last()) else {
        return Ok(());
    };
    if report.devices.len() < 2 || report.steps.len() < 2 {
        return Ok(());
    }
    writeln!(out, "  Shares over steps {} to {}", first.step, last.step)?;
    let widths = report.devices.iter().map(|d| d.name.chars().count());
    let width = widths.max().unwrap_or(0);
    for (i, device) in report.devices.iter().enumerate() {
        let of = |step: &Step| step.shares.get(i).copied().unwrap_or(0.0);
        let series: Vec<f64> = report.steps.iter().map(of).collect();
        writeln!(
            out,
            "  {:<width$}  {:>7} {} {}",
            device.name,
            Percent(of(first)),
            styled(AnsiColor::Cyan.on_default(), bars::row(&series)),
            Percent(of(last)),
        )?;
    }
    writeln!(out)
}

fn remarks(report: &Report, out: &mut String) -> fmt::Result {
    for lost in &report.lost {
        let back = lost.back.map(|step| format!("; back in step {step}"));
        writeln!(
            out,
            "{} {} in step {}: {}; steps computed again: {}{}",
            styled(ALARM, "Lost"),
            lost.device,
            lost.step,
            lost.why,
            lost.repeated,
            back.unwrap_or_default()
        )?;
    }
    if report.interrupted {
        writeln!(
            out,
            "{} after {} of {} steps, on request",
            styled(ALARM, "Interrupted"),
            report.steps.len(),
            report.workload.steps()
        )?;
    }
    notes(out, &report.notes)
}

#[cfg(test)]
mod tests {
    use super::super::build::report;
    use super::super::fixtures::{account, context, outcome};
    use super::super::schema::{Single, Throughput};
    use super::*;
    use crate::balance::Account;
    use crate::engine::Loss;

    fn plain(report: &Report) -> String {
        anstream::adapter::strip_str(&render(report)).to_string()
    }

    #[test]
    fn reads_like_this() {
        let mut context = context();
        context.comparison.push(Single {
            strategy: "cpu".into(),
            throughput: Throughput::of_points(40_000, 0.8),
        });
        context.notes.push("no fingerprint matched".into());
        let mut outcome = outcome();
        outcome.verified = Some(true);
        outcome.max_abs_error = Some(0.0);
        outcome.losses.push(Loss {
            device: 1,
            step: 3,
            why: "fell off the bus".into(),
            repeated: 2,
            back: None,
        });
        outcome.interrupted = true;
        assert_eq!(
            plain(&report(&outcome, &context)),
            include_str!("golden/report.txt")
        );
    }

    #[test]
    fn simulated_is_said_in_the_heading_and_at_the_throughput() {
        let mut context = context();
        let text = plain(&report(&outcome(), &context));
        let with: Vec<&str> = text.lines().filter(|l| l.contains("simulated")).collect();
        assert!(with[0].starts_with("on k40 simulated"));
        assert!(with[1].contains("Throughput"));
        context.machine.simulated = false;
        assert!(!plain(&report(&outcome(), &context)).contains("simulated"));
    }

    #[test]
    fn a_models_part_is_a_line() {
        let line = |account: Account| {
            let mut outcome = outcome();
            outcome.model = Some(account);
            let text = plain(&report(&outcome, &context()));
            let model = text.lines().find(|l| l.trim().starts_with("Model"));
            model.map(|l| l.trim_start().trim_start_matches("Model").trim().to_owned())
        };
        assert_eq!(
            line(account()).as_deref(),
            Some("lab: first step predicted 96.0 ms, measured 100 ms; planned anew once")
        );
        let left = Account {
            predicted_step_seconds: None,
            replans: 0,
            handed_over: Some(0),
            ..account()
        };
        assert_eq!(
            line(left).as_deref(),
            Some("lab; left to DAWL from step 0 on")
        );
    }

    #[test]
    fn nothing_done_is_still_a_report() {
        let mut outcome = outcome();
        outcome.steps.clear();
        outcome.seconds = 0.0;
        let text = plain(&report(&outcome, &context()));
        assert!(text.contains("0 ns for 0 steps"));
        assert!(!text.contains("NaN"));
    }
}

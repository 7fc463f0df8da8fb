//! A co-run as text.

use std::fmt::{self, Write};

use anstyle::AnsiColor;

use super::super::super::style::{MAIN, STRONG, bars, cell, line, origin, styled};
use super::super::super::table;
use super::super::corun::{CoRun, Model, Step};
use super::super::{Parameters, Report};
use super::{place, rate, verified};
use crate::machine::DeviceKind;
use crate::quantity::{Bytes, Count, Percent, Seconds};

/// Writes all but what every run has.
pub fn write(report: &Report, own: &CoRun, out: &mut String) -> fmt::Result {
    writeln!(
        out,
        "{}, {} steps, {}",
        styled(STRONG, &report.workload.title),
        report.workload.steps(),
        styled(STRONG, &report.policy)
    )?;
    place(report, "", out)?;
    figures(report, own, out)?;
    devices(report, out)?;
    shares(report, &own.steps, out)
}

fn figures(report: &Report, own: &CoRun, out: &mut String) -> fmt::Result {
    rate(report, "Throughput", out)?;
    line(
        out,
        "Time",
        format!(
            "{} for {} steps; setup {}, gather {}",
            styled(MAIN, Seconds(report.seconds)),
            own.done(),
            Seconds(report.setup_seconds.unwrap_or(0.0)),
            Seconds(own.gather_seconds)
        ),
    )?;
    let ends = match &report.workload.parameters {
        Parameters::Spmv(of) => of.tolerance.map(|most| (most, of.steps, "tolerance")),
        Parameters::Stencil(of) => of.until.map(|most| (most, of.steps, "until")),
        _ => None,
    };
    if let Some((most, steps, until)) = ends {
        let is_reached = own.change.is_some_and(|change| change <= most);
        let reached = if is_reached { "" } else { " not reached" };
        let done = own.done();
        line(
            out,
            "Steps",
            format!("{done} of {steps}, {until} {most:e}{reached}"),
        )?;
    }
    if let Some((least, median, most)) = spread(&own.steps) {
        let (least, median, most) = (Seconds(least), Seconds(median), Seconds(most));
        let spread = format!("{median} median, {least} to {most}");
        match report.workload.superstep() {
            1 => line(out, "Step", spread)?,
            steps => line(out, "Superstep", format!("{spread}, of {steps} steps"))?,
        }
    }
    line(out, "Imbalance", Percent(own.imbalance))?;
    for device in &report.devices {
        if let Some(imbalance) = device.worker_imbalance {
            let imbalance = Percent(imbalance);
            let of = format!("{imbalance} between the workers of {}", device.name);
            line(out, "", of)?;
        }
    }
    if let Some(device) = &own.alone {
        let why = format!("{device}: a step on several devices would take longer");
        line(out, "Alone", why)?;
    }
    if let Some(overlap) = own.overlap {
        let overlap = format!("{} of copy time under kernels", Percent(overlap));
        line(out, "Overlap", overlap)?;
    }
    if report.seconds > 0.0 {
        let part = Percent(own.engine_seconds / report.seconds);
        let engine = format!("{} ({part} of the time)", Seconds(own.engine_seconds));
        line(out, "Engine", engine)?;
    }
    if let Some(model) = &own.model {
        line(out, "Model", in_words(model, own.steps.first()))?;
    }
    verified(report, out)?;
    if let Some(eigenvalue) = own.eigenvalue {
        let eigenvalue = styled(MAIN, format!("{eigenvalue:.9}"));
        let estimate = format!("{eigenvalue} in magnitude, the estimate after the last step");
        line(out, "Eigenvalue", estimate)?;
    }
    if let Some(change) = own.change {
        let of = match &report.workload.parameters {
            Parameters::Stencil(_) => "the largest of a point",
            _ => "the sum of all ranks'",
        };
        let change = format!("{change:.3e}, {of} in the last step");
        line(out, "Change", change)?;
    }
    let own_rate = report.throughput.as_ref().map_or(0.0, |rate| rate.value);
    for single in &own.comparison {
        let rate = &single.throughput;
        line(
            out,
            &format!("vs {}", single.strategy),
            format!(
                "{:.2} x its {}{}",
                own_rate / rate.value,
                Count(rate.value, rate.each()),
                origin(report.machine.simulated)
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
            cell(device.kind, DeviceKind::name),
            Percent(device.share).to_string(),
            device.units.to_string(),
            cell(device.busy_seconds, Seconds),
            cell(device.idle_seconds, Seconds),
            cell(device.wait_seconds, Seconds),
            cell(device.chunks, |chunks| chunks),
            cell(device.bytes_h2d, Bytes),
            cell(device.bytes_d2h, Bytes),
        ]);
    }
    writeln!(out, "{}\n", table.trim_fmt())
}

fn shares(report: &Report, steps: &[Step], out: &mut String) -> fmt::Result {
    let (Some(first), Some(last)) = (steps.first(), steps.last()) else {
        return Ok(());
    };
    if report.devices.len() < 2 || steps.len() < 2 {
        return Ok(());
    }
    let what = match report.workload.superstep() {
        1 => "steps",
        _ => "supersteps",
    };
    writeln!(out, "  Shares over {what} {} to {}", first.step, last.step)?;
    let widths = report.devices.iter().map(|d| d.name.chars().count());
    let width = widths.max().unwrap_or(0);
    for (i, device) in report.devices.iter().enumerate() {
        let of = |step: &Step| step.shares.get(i).copied().unwrap_or(0.0);
        let series: Vec<f64> = steps.iter().map(of).collect();
        writeln!(
            out,
            "  {:<width$}  {:>7} {} {}",
            device.name,
            Percent(of(first)),
            styled(AnsiColor::Cyan.on_default(), bars(&series)),
            Percent(of(last)),
        )?;
    }
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::super::super::corun::{Single, report};
    use super::super::super::fixtures::{account, context, outcome};
    use super::super::super::{Context, Throughput};
    use crate::balance::Account;
    use crate::engine::{Loss, Outcome};

    fn plain(outcome: &Outcome, context: Context, comparison: Vec<Single>) -> String {
        let text = report(outcome, context, comparison).render();
        anstream::adapter::strip_str(&text).to_string()
    }

    #[test]
    fn reads_like_this() {
        let mut context = context();
        let cpu = Single {
            strategy: "cpu".into(),
            throughput: Throughput::of(40_000.0, "points/s", 0.8),
        };
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
            plain(&outcome, context, vec![cpu]),
            include_str!("report.txt")
        );
    }

    #[test]
    fn simulated_is_said_in_the_heading_and_at_the_throughput() {
        let mut context = context();
        let text = plain(&outcome(), context.clone(), Vec::new());
        let with: Vec<&str> = text.lines().filter(|l| l.contains("simulated")).collect();
        assert!(with[0].starts_with("on k40 simulated"));
        assert!(with[1].contains("Throughput"));
        context.machine.simulated = false;
        assert!(!plain(&outcome(), context, Vec::new()).contains("simulated"));
    }

    #[test]
    fn a_models_part_is_a_line() {
        let line = |account: Account| {
            let mut outcome = outcome();
            outcome.model = Some(account);
            let text = plain(&outcome, context(), Vec::new());
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
        let text = plain(&outcome, context(), Vec::new());
        assert!(text.contains("0 ns for 0 steps"));
        assert!(!text.contains("NaN"));
    }
}

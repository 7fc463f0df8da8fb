//! One model for people.

use std::fmt::{self, Write};

use pdawl_profiler::Fitted;
use pdawl_profiler::bundle::{Bundle, CodeletModel};
use pdawl_profiler::train::{Candidate, Validation};
use pdawl_profiler::validate::Accuracy;

use super::{date, heading, percent};
use crate::model::serving::poor;
use crate::report::style::{ALARM, FAINT, STRONG, column, line, origin, styled, written};
use crate::report::table;

/// Writes a model, with ANSI styles. `kept` says where it is.
pub fn render(bundle: &Bundle, name: &str, kept: &str) -> String {
    written(|out| write(bundle, name, kept, out))
}

fn write(bundle: &Bundle, name: &str, kept: &str, out: &mut String) -> fmt::Result {
    heading(out, name, &bundle.machine, bundle.simulated)?;
    let trained = format!("{} by pdawl {}", date(bundle.trained_at), bundle.version);
    line(out, "Trained", trained)?;
    line(out, "Kept in", kept)?;
    if let Some(fingerprint) = &bundle.fingerprint {
        line(out, "Fingerprint", fingerprint)?;
    }
    if let Some(adapted) = &bundle.adapted {
        let from = format!(
            "from a model of {} by {} calibration runs; the validation is of that model",
            adapted.machine, adapted.runs
        );
        line(out, "Adapted", from)?;
    }
    for (key, value) in bundle.provenance.pairs() {
        writeln!(out, "  {key}: {value}")?;
    }
    for entry in &bundle.models {
        writeln!(out)?;
        write_validation(
            &entry.validation,
            &subject(bundle, entry, &entry.fitted, false),
            out,
        )?;
        if let Some(explaining) = &entry.explaining {
            writeln!(out)?;
            let subject = subject(bundle, entry, &explaining.fitted, true);
            write_validation(&explaining.validation, &subject, out)?;
        }
    }
    Ok(())
}

fn subject<'a>(
    bundle: &Bundle,
    entry: &'a CodeletModel,
    fitted: &'a Fitted,
    explains: bool,
) -> Subject<'a> {
    Subject {
        kind: &entry.kind,
        codelet: &entry.codelet,
        explains,
        simulated: bundle.simulated,
        inputs: fitted
            .inputs
            .iter()
            .map(|input| input.name.as_str())
            .collect(),
    }
}

/// The subject of a validation.
pub struct Subject<'a> {
    /// `cpu` or `gpu`.
    pub kind: &'a str,
    pub codelet: &'a str,
    /// Whether the model uses counters and traces, which are known only after
    /// a run.
    pub explains: bool,
    pub simulated: bool,
    /// The inputs of the model that was chosen.
    pub inputs: Vec<&'a str>,
}

/// Writes the candidates and the baselines with ANSI styles.
pub fn write_validation(
    validation: &Validation,
    subject: &Subject,
    out: &mut String,
) -> fmt::Result {
    let purpose = match subject.explains {
        false => "from what is known before a run: plans",
        true => "from its counters and traces as well: explains, cannot plan",
    };
    writeln!(
        out,
        "{} {purpose}{}",
        styled(STRONG, format!("{} {}", subject.kind, subject.codelet)),
        origin(subject.simulated)
    )?;
    let mape = column("MAPE", subject.simulated);
    let header = [
        "", "Model", "Clusters", "Score", &mape, "Median", "Worst", "R^2", "Beyond",
    ];
    let mut table = table::plain(&header, |column| column > 1);
    for (place, candidate) in validation.candidates.iter().enumerate() {
        let mark = if place == validation.chosen { "*" } else { "" };
        let mut row = vec![
            mark.to_owned(),
            candidate.family.to_string(),
            candidate.clusters.to_string(),
            score(candidate),
        ];
        row.extend(figures(&candidate.accuracy, candidate.beyond.as_ref()));
        table.add_row(row);
    }
    for baseline in &validation.baselines {
        let none = || "-".to_owned();
        let mut row = vec![String::new(), baseline.name.clone(), none(), none()];
        row.extend(figures(&baseline.accuracy, baseline.beyond.as_ref()));
        table.add_row(row);
    }
    writeln!(out, "{}", table.trim_fmt())?;
    for failed in &validation.failed {
        writeln!(out, "  {}: {}", failed.family, failed.reason)?;
    }
    line(out, "Chosen", &validation.why)?;
    line(out, "Score", styled(FAINT, scored(validation)))?;
    if let (Some(why), false) = (
        poor(subject.kind, subject.codelet, validation),
        subject.explains,
    ) {
        line(out, "Poor", styled(ALARM, why))?;
    }
    let inputs = match subject.inputs.is_empty() {
        true => "none beside the prior".to_owned(),
        false => subject.inputs.join(", "),
    };
    line(out, "Inputs", inputs)?;
    let Validation {
        rows,
        groups,
        folds,
        outliers,
        ..
    } = validation;
    let mut by = format!("{rows} runs of {groups} configurations in {folds} folds");
    if *outliers > 0 {
        write!(by, "; {outliers} runs that others contradict count little")?;
    }
    line(out, "Validated", styled(FAINT, by))?;
    if let Some(beyond) = &validation.beyond {
        let of = format!(
            "the {} runs where {} ends, predicted without them",
            beyond.rows, beyond.feature
        );
        line(out, "Beyond", styled(FAINT, of))?;
    }
    Ok(())
}

/// What decides between candidates, with its standard error.
fn score(candidate: &Candidate) -> String {
    let [score, error] = [candidate.score, candidate.score_error].map(|part| 100.0 * part);
    format!("{score:.2} +- {error:.2} %")
}

/// What a score is.
fn scored(validation: &Validation) -> &'static str {
    match validation.beyond {
        Some(_) => {
            "the geometric mean of the MAPE and of that beyond, of runs that others do not \
             contradict, with its standard error"
        }
        None => "the MAPE of runs that others do not contradict, with its standard error",
    }
}

fn figures(accuracy: &Accuracy, beyond: Option<&Accuracy>) -> [String; 5] {
    [
        percent(accuracy.mape),
        percent(accuracy.median),
        percent(accuracy.greatest),
        format!("{:.4}", accuracy.r_squared),
        beyond.map_or_else(|| "-".to_owned(), |beyond| percent(beyond.mape)),
    ]
}

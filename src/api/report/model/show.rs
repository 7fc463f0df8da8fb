//! One model for people.

use std::fmt::{self, Write};

use pdawl_profiler::Fitted;
use pdawl_profiler::bundle::{Bundle, CodeletModel};

use super::validation::{self, Subject};
use super::{date, heading};
use crate::report::style::{line, written};

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
        validation::write(
            &entry.validation,
            &subject(bundle, entry, &entry.fitted, false),
            out,
        )?;
        if let Some(explaining) = &entry.explaining {
            writeln!(out)?;
            let subject = subject(bundle, entry, &explaining.fitted, true);
            validation::write(&explaining.validation, &subject, out)?;
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

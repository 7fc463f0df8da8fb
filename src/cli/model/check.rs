//! `pdawl model check`.

use std::path::PathBuf;

use pdawl_api::model::ModelStore;
use pdawl_api::model::evaluate::evaluate;
use pdawl_api::model::store::{ModelQuery, fits};
use pdawl_api::report::model::CheckReport;
use pdawl_api::report::model::check::{Fit, HeldOut};
use pdawl_api::session::this_machine::fingerprint_beside;
use pdawl_profiler::bundle::{Bundle, FORMAT};
use pdawl_profiler::dataset;

use super::Source;
use crate::args::Format;
use crate::failure::Failure;
use crate::machine_session::machine_file;
use crate::terminal;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// As `pdawl model list` shows it, or a file
    #[arg(value_name = "NAME|FILE")]
    model: String,
    /// The machine that it should fit, by name or by its file [default: this
    /// one]
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
    /// Runs to predict, as `pdawl profile` writes them
    #[arg(long, value_name = "FILE")]
    dataset: Option<PathBuf>,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub fn run(store: &ModelStore, args: &Args) -> Result<(), Failure> {
    let source = Source::find(store, &args.model)?;
    let bundle = &source.bundle;
    let report = CheckReport {
        format: FORMAT,
        checksum: bundle.checksum().map_err(Failure::of)?,
        version: bundle.version.clone(),
        trained_at: bundle.trained_at,
        machine: bundle.machine.clone(),
        simulated: bundle.simulated,
        fits: fit(bundle, args.machine.as_deref())?,
        held_out: match &args.dataset {
            Some(path) => Some(held_out(bundle, path)?),
            None => None,
        },
        model: source.name.clone(),
        file: source.place.clone(),
    };
    terminal::print_report(args.format, &report, |report| report.render())
}

/// Whether the model is of a machine, by name or this one.
fn fit(bundle: &Bundle, machine: Option<&str>) -> Result<Fit, Failure> {
    let (machine, fingerprint) = match machine {
        Some(name) => {
            let file = machine_file(name)?;
            (file.name, file.fingerprint)
        }
        None => (
            "this machine".to_owned(),
            Some(fingerprint_beside(bundle.fingerprint.as_deref()).to_string()),
        ),
    };
    let wanted = ModelQuery {
        machine: &machine,
        fingerprint: fingerprint.as_deref(),
        simulated: bundle.simulated,
        codelet: None,
    };
    let fits = fits(bundle, wanted);
    let why = match (&bundle.fingerprint, &fingerprint) {
        (Some(of_model), Some(of_machine)) => match fits {
            true => format!("both are `{of_machine}`"),
            false => format!("the model is of `{of_model}`, the machine is `{of_machine}`"),
        },
        _ if fits => "the model is of a machine of that name".to_owned(),
        _ => format!(
            "the model is of `{}`; `pdawl model adapt` corrects it by a few runs",
            bundle.machine
        ),
    };
    Ok(Fit { machine, fits, why })
}

fn held_out(bundle: &Bundle, path: &std::path::Path) -> Result<HeldOut, Failure> {
    let dataset = dataset::read(path).map_err(Failure::of)?;
    let first = dataset.samples.first();
    Ok(HeldOut {
        dataset: path.display().to_string(),
        machine: first.map_or_else(String::new, |sample| sample.machine.clone()),
        simulated: first.is_some_and(|sample| sample.simulated),
        groups: evaluate(bundle, &dataset.samples).map_err(Failure::of)?,
    })
}

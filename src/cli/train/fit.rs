//! Fitting the models, and keeping them.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use pdawl::model::ModelStore;
use pdawl::model::serving::poor;
use pdawl::model::training::{
    GroupModel, ModelDescription, TrainedModels, TrainingError, TrainingRequest, bundle, fit_all,
};
use pdawl::report::training::{GroupReport, ModelReport, TrainingReport};
use pdawl_profiler::dataset::Provenance;
use pdawl_profiler::train::{Recipe, Trained};

use super::runs::Runs;
use super::{Args, plots};
use crate::cli::failure::Failure;
use crate::cli::{invocation, terminal};

/// Trains as asked, and keeps the model. After a failure the previous model stays.
///
/// # Errors
/// Runs that are missing or cannot be learned; a model or chart that cannot be written;
/// Ctrl-C.
pub fn train(args: &Args, stop: &AtomicBool) -> Result<TrainingReport, Failure> {
    let store = ModelStore::of_user();
    if let Some(name) = &args.name {
        // Profiling takes a while, so an invalid name is refused first.
        store.path(name).map_err(Failure::of)?;
    }
    if let Some(directory) = &args.plots {
        plots::prepare(directory)?;
    }
    let deadline = args.budget().map(|budget| Instant::now() + budget);
    let runs = Runs::find(args, stop)?;
    let began = Instant::now();
    let models = fitted(args, &runs, deadline, stop)?;
    let seconds = began.elapsed().as_secs_f64();
    let simulated = runs.simulated();
    let machine = &runs.machine;
    let name = args.name.as_deref().unwrap_or(&machine.name);
    let charts = match args.plots {
        Some(_) => plots::draw(&models.groups, &machine.name, simulated)?,
        None => Vec::new(),
    };
    let about = ModelDescription {
        name,
        machine,
        simulated,
        trained_at: invocation::now(),
        provenance: provenance(&runs),
    };
    let bundle = bundle(&models.groups, about).map_err(Failure::of)?;
    let file = store.save(&bundle).map_err(Failure::of)?;
    let plots = match &args.plots {
        Some(directory) => plots::write(&charts, directory)?,
        None => Vec::new(),
    };
    let mut notes = runs.notes;
    notes.extend(models.left_out);
    notes.extend(models.groups.iter().flat_map(remarks));
    Ok(TrainingReport {
        model: name.to_owned(),
        file: file.display().to_string(),
        machine: machine.name.clone(),
        simulated,
        fingerprint: machine.fingerprint.clone(),
        dataset: runs.path.display().to_string(),
        rows: runs.dataset.samples.len(),
        measured_now: runs.measured_now,
        seed: args.wanted.session.seed,
        seconds,
        groups: models.groups.into_iter().map(group).collect(),
        plots: plots
            .iter()
            .map(|path| path.display().to_string())
            .collect(),
        notes,
    })
}

fn fitted(
    args: &Args,
    runs: &Runs,
    deadline: Option<Instant>,
    stop: &AtomicBool,
) -> Result<TrainedModels, Failure> {
    let recipe = Recipe {
        seed: args.wanted.session.seed,
        deadline,
        ..Recipe::default()
    };
    let kinds: Vec<String> = runs.kinds.iter().map(ToString::to_string).collect();
    let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
    let request = TrainingRequest {
        machine: &runs.machine.name,
        samples: &runs.dataset.samples,
        codelet: runs.codelet,
        kinds: &kinds,
        recipe: &recipe,
    };
    let bar = terminal::progress(args.format, 0, "");
    let mut progress = |what: &str, done: usize, fits: usize| {
        bar.set_message(format!("training {what}"));
        bar.set_length(fits as u64);
        bar.set_position(done as u64);
    };
    let models = fit_all(&request, &mut progress, stop);
    bar.finish_and_clear();
    models.map_err(|error| match error {
        TrainingError::Interrupted => {
            terminal::warn(&format!(
                "interrupted: the runs are kept in {}, and no model was written",
                runs.path.display()
            ));
            Failure::Interrupted
        }
        error => Failure::of(error),
    })
}

/// What the user should know of a group's models.
fn remarks(group: &GroupModel) -> Vec<String> {
    let (kind, codelet) = (&group.kind, &group.codelet);
    let validation = &group.planning.validation;
    let late = validation.failed.iter().filter(|failed| failed.is_late());
    let late = late.count();
    let unfitted = (late > 0).then(|| {
        format!(
            "the budget left no time for {late} of the families of models of {codelet} on \
             {kind}; the same command with --no-profile compares all"
        )
    });
    unfitted
        .into_iter()
        .chain(poor(kind, codelet, validation))
        .collect()
}

fn group(model: GroupModel) -> GroupReport {
    let (explaining, explaining_missing) = match model.explaining {
        Ok(trained) => (Some(report(trained)), None),
        Err(why) => (None, Some(why)),
    };
    GroupReport {
        kind: model.kind,
        codelet: model.codelet,
        planning: report(model.planning),
        explaining,
        explaining_missing,
    }
}

fn report(trained: Trained) -> ModelReport {
    ModelReport {
        inputs: trained
            .fitted
            .inputs
            .into_iter()
            .map(|input| input.name)
            .collect(),
        validation: trained.validation,
    }
}

/// The provenance of the runs, and the command that learned them.
fn provenance(runs: &Runs) -> Provenance {
    let mut provenance = runs.dataset.provenance.clone();
    provenance.add("trained by", &invocation::command_line());
    provenance
}

//! Fitting the models, and keeping them.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use pdawl_api::model::ModelStore;
use pdawl_api::model::serving::poor;
use pdawl_api::model::training::{
    GroupModel, ModelDescription, TrainedModels, TrainingError, TrainingRequest, fit_all,
};
use pdawl_api::quantity::Seconds;
use pdawl_api::report::training::{GroupReport, ModelReport, TrainingReport};
use pdawl_profiler::dataset::Provenance;
use pdawl_profiler::train::{Recipe, Trained};

use super::Args;
use super::runs::Runs;
use crate::failure::Failure;
use crate::{saved_report, terminal};

/// What fitting may take after a signal: batch systems kill what goes on for half a minute.
const AFTER_SIGNAL: Duration = Duration::from_secs(8);

/// Trains as asked, and keeps the model. After a failure the previous model stays.
///
/// # Errors
/// Runs that are missing or cannot be learned; a model that cannot be written.
pub fn train(args: &Args, stop: &AtomicBool) -> Result<TrainingReport, Failure> {
    let store = ModelStore::of_user();
    if let Some(name) = &args.name {
        // Profiling takes a while, so an invalid name is refused first.
        store.path(name).map_err(Failure::of)?;
    }
    let runs = Runs::find(args, stop)?;
    let began = Instant::now();
    let deadline = (args.budget()).map(|budget| began + budget.saturating_sub(runs.took()));
    let models = fitted(args, &runs, deadline, stop)?;
    let seconds = began.elapsed().as_secs_f64();
    let simulated = runs.simulated();
    let machine = &runs.machine;
    let name = args.name.as_deref().unwrap_or(&machine.name);
    let about = ModelDescription {
        name,
        machine,
        simulated,
        trained_at: saved_report::now(),
        provenance: provenance(&runs),
        adapted: None,
    };
    let bundle = about.bundle(models.entries()).map_err(Failure::of)?;
    let file = store.save(&bundle).map_err(Failure::of)?;
    let mut notes = runs.notes();
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
        measured_now: runs.made.as_ref().map_or(0, |made| made.rows.measured),
        seed: args.wanted.session.seed,
        seconds,
        groups: models.groups.into_iter().map(group).collect(),
        notes,
    })
}

/// The models of the runs. A signal ends what takes long, the measuring or the comparison of all
/// families, and not the training: what there is becomes a model.
fn fitted(
    args: &Args,
    runs: &Runs,
    deadline: Option<Instant>,
    stop: &AtomicBool,
) -> Result<TrainedModels, Failure> {
    let kinds: Vec<String> = runs.kinds.iter().map(ToString::to_string).collect();
    let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
    let bar = terminal::progress(args.format, 0, "");
    let fit = |deadline: Option<Instant>, stop: &AtomicBool| {
        let recipe = Recipe {
            seed: args.wanted.session.seed,
            deadline,
            ..Recipe::default()
        };
        let request = TrainingRequest {
            machine: &runs.machine.name,
            samples: &runs.dataset.samples,
            codelet: runs.codelet,
            kinds: &kinds,
            recipe: &recipe,
        };
        let mut progress = |what: &str, done: usize, fits: usize| {
            let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
            let left = left.map(|left| format!(", at most {} left", Seconds(left.as_secs_f64())));
            bar.set_message(format!("training {what}{}", left.unwrap_or_default()));
            bar.set_length(fits as u64);
            bar.set_position(done as u64);
        };
        fit_all(&request, &mut progress, stop)
    };
    let models = match runs.interrupted() {
        true => Err(TrainingError::Interrupted),
        false => fit(deadline, stop),
    };
    let models = match models {
        Err(TrainingError::Interrupted) => {
            let fitted = fit(Some(Instant::now() + AFTER_SIGNAL), &AtomicBool::new(false));
            fitted.map_err(|why| {
                terminal::warn(&format!(
                    "interrupted: the runs are kept in {}, and no model was written: {why}",
                    runs.path.display()
                ));
                Failure::Interrupted
            })
        }
        models => models.map_err(Failure::of),
    };
    bar.finish_and_clear();
    models
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
    provenance.add("trained by", &saved_report::command_line());
    provenance
}

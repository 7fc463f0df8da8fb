//! The cost model that the user chooses for a session.

use pdawl::model::ModelStore;
use pdawl::model::serving::{ModelSearch, NoModel, ServingModel};

use crate::args::ModelChoice;
use crate::failure::Failure;
use crate::model::Source;
use crate::terminal;

/// Looks for a model of the session's machine that supports the workload.
///
/// # Errors
/// When a model that the user named does not exist or does not support the session.
pub fn find(
    search: &ModelSearch,
    choice: ModelChoice,
) -> Result<Result<ServingModel, NoModel>, Failure> {
    let named = match choice {
        ModelChoice::None => return Ok(Err(NoModel::unwanted())),
        ModelChoice::Named(name) => {
            let source = Source::find_for(&ModelStore::of_user(), name, search.codelet)?;
            Some(source.bundle)
        }
        ModelChoice::Fitting => None,
    };
    let must = named.is_some();
    match search.find(named, &mut terminal::warn) {
        Err(missing) if must => Err(failure(&missing)),
        found => Ok(found),
    }
}

/// The failure of a run that needs a model.
pub fn failure(missing: &NoModel) -> Failure {
    let what = format!("strategy pdawl needs a cost model, and {}", missing.what);
    let without = "--strategy dawl, which needs none";
    match &missing.remedy {
        Some(remedy) => Failure::failed(what, format!("{remedy}, or {without}")),
        None => Failure::failed(what, without),
    }
}

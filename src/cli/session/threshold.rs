//! Chooses, with a cost model, the fraction of a matrix's rows that counts as
//! irregular. If several devices share a product, this fraction decides which rows the
//! host computes.

use pdawl::model::serving::{NoModel, ServingModel};

use crate::workload::PreparedWorkload;

/// Candidates besides the default fraction.
const PARTS: [f64; 2] = [0.0, 0.7];

/// A candidate is chosen only if its predicted time is below this part of the best.
const WORTH_IT: f64 = 0.99;

/// The workload with the best predicted fraction, if there is a model and the user
/// gave no fraction.
pub fn planned(
    workload: PreparedWorkload,
    model: Result<ServingModel, NoModel>,
) -> (PreparedWorkload, Result<ServingModel, NoModel>) {
    let mut best = match model {
        Ok(serving) if serving.shares() => (workload, serving),
        other => return (workload, other),
    };
    for part in PARTS {
        let Some(other) = best.0.with_irregular(part) else {
            break;
        };
        let planned = other.work().ok().and_then(|work| best.1.planned_for(work));
        if let Some(mut planned) = planned.filter(|p| p.seconds() < WORTH_IT * best.1.seconds()) {
            planned.notes.push(format!(
                "the longest {:.0} % of the rows may go to the CPU first, as the model plans",
                100.0 * part
            ));
            best = (other, planned);
        }
    }
    (best.0, Ok(best.1))
}

//! Finds the cost model for open devices and a workload, and plans the run with it.

use std::fmt;

use pdawl_profiler::bundle::Bundle;
use pdawl_profiler::train::Validation;
use thiserror::Error;

use super::planner::{self, CandidateDevice, ModelledMachine, RunPlan};
use super::store::ModelQuery;
use super::{ModelStore, Outside, StepWork, command};
use crate::balance::{Balancer, Pdawl, Setup};
use crate::machine::{Device, MachineFile};

/// A cost model that supports the devices and the workload, and its plan.
pub struct ServingModel {
    model: String,
    work: StepWork,
    candidates: Vec<CandidateDevice>,
    pub plan: RunPlan,
    /// Whether the user chose the devices, and so the number of cores.
    all_cores: bool,
    /// Notes for the reports of its runs.
    pub notes: Vec<String>,
}

/// Why there is no model; empty if the user wants none.
#[derive(Clone, Debug, Default)]
pub struct NoModel {
    pub what: String,
    /// `None` if `what` contains the remedy.
    pub remedy: Option<String>,
}

impl fmt::Display for NoModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "strategy pdawl needs a cost model, and {}", self.what)?;
        match &self.remedy {
            Some(remedy) => write!(f, ": {remedy}, or dawl, which needs none"),
            None => write!(f, "; dawl needs none"),
        }
    }
}

/// A device's memory is too small for the plan's stream buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a device's memory is too small for its stream buffers")]
pub struct StreamBuffers;

impl NoModel {
    /// Nobody wants one.
    pub fn unwanted() -> Self {
        Self::default()
    }

    /// Whether nobody wants one.
    pub fn is_unwanted(&self) -> bool {
        self.what.is_empty()
    }

    /// The note of a run without a model; `None` if the user wants none.
    pub fn note(&self) -> Option<String> {
        if self.is_unwanted() {
            return None;
        }
        let remedy = self.remedy.iter().map(|remedy| format!(": {remedy}"));
        let remedy: String = remedy.collect();
        Some(format!(
            "DAWL learns the shares alone, since {}{remedy}",
            self.what
        ))
    }
}

/// A search for the model that supports a workload on a session's devices.
pub struct ModelSearch<'a> {
    /// The machine's file, if there is one.
    pub file: Option<&'a MachineFile>,
    pub simulated: bool,
    pub devices: &'a [Device],
    /// Whether the user chose the devices, and so the number of cores.
    pub chosen: bool,
    /// The codelet, and whether it needs double precision.
    pub codelet: &'a str,
    pub fp64: bool,
    /// The work of a step; `None` if models do not support the codelet. It is called
    /// only if there is a model, since the analysis of a matrix takes time.
    pub work: &'a dyn Fn() -> Result<StepWork, String>,
    pub gpu_memory: Option<u64>,
}

impl ModelSearch<'_> {
    /// Looks for a model of the machine that supports the workload: the named one, or the one
    /// that fits the machine. `warn` gets files that cannot be read.
    ///
    /// # Errors
    /// Why there is none.
    pub fn find(
        &self,
        named: Option<Bundle>,
        warn: &mut dyn FnMut(&str),
    ) -> Result<ServingModel, NoModel> {
        if !command::is_trained(self.codelet) {
            return Err(NoModel {
                what: format!("no model covers codelet {}", self.codelet),
                remedy: None,
            });
        }
        let file = self.file.ok_or_else(|| match &named {
            None => NoModel {
                what: "there is no model of this machine".to_owned(),
                remedy: Some(format!("pdawl train{}", self.training_options())),
            },
            Some(bundle) => NoModel {
                what: format!(
                    "there is no file of this machine, which model {} needs to predict it",
                    bundle.name
                ),
                remedy: Some("pdawl machine save NAME".to_owned()),
            },
        })?;
        let bundle = match named {
            Some(bundle) => bundle,
            None => self.fitting(file, warn)?,
        };
        let modelled = ModelledMachine {
            bundle: &bundle,
            machine: file,
            codelet: self.codelet,
            fp64: self.fp64,
            gpu_memory: self.gpu_memory,
        };
        let candidates = modelled.running(self.devices).map_err(|error| NoModel {
            what: error.to_string(),
            remedy: None,
        })?;
        let work = (self.work)().map_err(|what| NoModel { what, remedy: None })?;
        let plan = planned(&work, &candidates, self.chosen);
        let plan = plan.ok_or_else(|| NoModel {
            what: format!("model {} finds no plan for these devices", bundle.name),
            remedy: Some("a larger --gpu-memory".to_owned()),
        })?;
        Ok(ServingModel {
            notes: self.notes(&bundle, file, &plan, &work, &candidates),
            model: bundle.name,
            all_cores: self.chosen,
            work,
            candidates,
            plan,
        })
    }

    /// The model that fits the machine.
    fn fitting(&self, file: &MachineFile, warn: &mut dyn FnMut(&str)) -> Result<Bundle, NoModel> {
        let search = ModelStore::of_user().for_machine(ModelQuery {
            machine: &file.name,
            fingerprint: file.fingerprint.as_deref(),
            simulated: self.simulated,
            codelet: Some(self.codelet),
        });
        for broken in &search.broken {
            warn(&broken.to_string());
        }
        search.bundle.ok_or_else(|| NoModel {
            what: format!("there is no model of machine {}", file.name),
            remedy: Some(format!(
                "pdawl train --machine {}{}",
                file.name,
                self.training_options()
            )),
        })
    }

    /// The options of `pdawl train` for a model that supports the session.
    fn training_options(&self) -> String {
        command::options(self.codelet)
    }

    fn notes(
        &self,
        bundle: &Bundle,
        file: &MachineFile,
        plan: &RunPlan,
        work: &StepWork,
        candidates: &[CandidateDevice],
    ) -> Vec<String> {
        let mut notes = Vec::new();
        let name = &bundle.name;
        if bundle.machine != file.name {
            notes.push(format!(
                "model {name} is of machine {}; `pdawl model adapt` adapts it to {}",
                bundle.machine, file.name
            ));
        }
        let entries = bundle.models.iter();
        for entry in entries.filter(|entry| entry.codelet == self.codelet) {
            let why = poor(&entry.kind, &entry.codelet, &entry.validation);
            notes.extend(why.map(|why| format!("model {name}: {why}")));
        }
        match (bundle.simulated, self.simulated) {
            (true, false) => notes.push(format!(
                "model {name} learned simulated times, and this machine is real"
            )),
            (false, true) => notes.push(format!(
                "model {name} learned measured times, and this run is simulated"
            )),
            _ => {}
        }
        for (d, candidate) in candidates.iter().enumerate() {
            if plan.workers[d] < candidate.compute_units {
                notes.push(format!(
                    "{} uses {} of {} cores, as model {name} plans",
                    candidate.name, plan.workers[d], candidate.compute_units
                ));
            }
        }
        let outside = plan.outside(work, candidates);
        let unseen: Vec<String> = outside.iter().map(Outside::in_words).collect();
        if !unseen.is_empty() {
            notes.push(format!(
                "model {name} was not trained on this: {}",
                unseen.join(", ")
            ));
        }
        notes
    }
}

/// The warning of a planning model whose error is large.
pub fn poor(kind: &str, codelet: &str, validation: &Validation) -> Option<String> {
    let error = validation.poor()?;
    Some(format!(
        "the model's times of {codelet} on {kind} are {:.2} % off in its cross-validation, so its \
         plans are hardly better than guesses; `pdawl train` with a longer --budget learns more",
        100.0 * error
    ))
}

/// The plan with the shortest predicted run.
fn planned(work: &StepWork, candidates: &[CandidateDevice], all_cores: bool) -> Option<RunPlan> {
    match all_cores {
        true => planner::plan_with_all_cores(work, candidates),
        false => planner::plan(work, candidates),
    }
}

impl ServingModel {
    /// The plan that a machine's file makes by itself, without a trained model.
    pub fn of_machine(
        file: &MachineFile,
        work: StepWork,
        candidates: Vec<CandidateDevice>,
        plan: RunPlan,
    ) -> Self {
        Self {
            model: format!("machine {}", file.name),
            work,
            candidates,
            plan,
            all_cores: true,
            notes: Vec::new(),
        }
    }

    /// The plan that the same model makes for other work.
    pub fn planned_for(&self, work: StepWork) -> Option<Self> {
        Some(Self {
            model: self.model.clone(),
            plan: planned(&work, &self.candidates, self.all_cores)?,
            work,
            candidates: self.candidates.clone(),
            all_cores: self.all_cores,
            notes: self.notes.clone(),
        })
    }

    /// Predicted seconds of the first step.
    pub fn seconds(&self) -> f64 {
        self.plan.forecast.step_seconds
    }

    /// Whether the plan gives work to several devices.
    pub fn shares(&self) -> bool {
        let plan = &self.plan.forecast.plan;
        let has_work = |d: &usize| plan.held[*d] + plan.pooled[*d] > 0;
        (0..self.candidates.len()).filter(has_work).count() > 1
    }

    /// The number of cores, if the plan uses fewer than there are.
    pub fn cores(&self) -> Option<u32> {
        let all = self.candidates.first()?.compute_units;
        self.plan.workers.first().copied().filter(|n| *n < all)
    }

    /// Whether the devices' memory has room for the plan's stream buffers.
    pub fn has_buffers(&self) -> bool {
        self.plan.planner(&self.work, &self.candidates).is_some()
    }

    /// The balancer that begins with the plan.
    ///
    /// # Errors
    /// When a device's memory is too small for its stream buffers.
    pub fn balancer(&self, setup: &Setup) -> Result<Box<dyn Balancer>, StreamBuffers> {
        let planner = self.plan.planner(&self.work, &self.candidates);
        let planner = planner.ok_or(StreamBuffers)?;
        let found: Vec<Option<u64>> = setup.devices.iter().map(|d| d.capacity).collect();
        let planner = planner.within(&found);
        Ok(Box::new(Pdawl::new(
            setup,
            self.model.as_str(),
            Box::new(planner),
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codelet::stencil::Precision;
    use crate::workload::stencil::Stencil;

    #[test]
    fn the_note_says_that_a_machine_has_no_file() {
        let stencil = Stencil::new(64, 64, Some(64), Precision::F32, 1).unwrap();
        let search = ModelSearch {
            file: None,
            simulated: false,
            devices: &[],
            chosen: false,
            codelet: "stencil7-f32",
            fp64: false,
            work: &|| Ok(StepWork::of(&stencil)),
            gpu_memory: None,
        };
        let missing = |named: Option<Bundle>| {
            let found = search.find(named, &mut |_| {});
            found.err().unwrap().note().unwrap()
        };
        let note = missing(None);
        assert!(note.ends_with("of this machine: pdawl train --dims 3 --precision f32"));
        let named = ModelStore::at("/nonexistent").find("k40").unwrap();
        let note = missing(Some(named));
        assert!(note.contains("no file of this machine, which model k40"));
        assert!(note.ends_with("pdawl machine save NAME"), "{note}");
    }
}

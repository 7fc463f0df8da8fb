//! The cost model of a session: which one serves on its devices, and the run
//! that it plans.

use pdawl::balance::{Balancer, Pdawl, Setup};
use pdawl::machine::{Device, MachineFile};
use pdawl::model::planner::{self, Member, Modelled, RunPlan};
use pdawl::model::shelf::Wanted;
use pdawl::model::{ModelShelf, Work, command};
use pdawl::report::prediction::Unseen;
use pdawl::workload::Divisible;
use pdawl::workload::stencil::Stencil;
use pdawl_profiler::bundle::Bundle;

use crate::cli::args::ModelChoice;
use crate::cli::failure::Failure;
use crate::cli::model::Source;
use crate::cli::terminal;

/// A model that serves, and what it plans.
pub struct Serving {
    model: String,
    work: Work,
    members: Vec<Member>,
    pub plan: RunPlan,
    /// What a reader of its runs should know.
    pub notes: Vec<String>,
}

/// Why none does; empty if the user wants none.
#[derive(Clone, Debug, Default)]
pub struct Missing {
    what: String,
    /// `None` where `what` says it.
    remedy: Option<String>,
}

impl Missing {
    /// For who has asked for a plan.
    pub fn failure(&self) -> Failure {
        if self.what.is_empty() {
            return Failure::usage(
                "strategy pdawl plans with a cost model, and --no-model says that there is none",
                "one of the two",
            );
        }
        let what = format!("strategy pdawl needs a cost model, and {}", self.what);
        let without = "--strategy dawl, which needs none";
        match &self.remedy {
            Some(remedy) => Failure::failed(what, format!("{remedy}, or {without}")),
            None => Failure::failed(what, without),
        }
    }

    /// For who has not; nothing if the user wants none.
    pub fn note(&self) -> Option<String> {
        if self.what.is_empty() {
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

/// What a model is wanted for.
pub struct Site<'a> {
    /// The machine, if there is a file of it.
    pub file: Option<&'a MachineFile>,
    pub simulated: bool,
    pub devices: &'a [Device],
    /// Whether the user has said which devices, and so how many cores.
    pub chosen: bool,
    /// `None` for another workload.
    pub stencil: Option<&'a Stencil>,
    pub gpu_memory: Option<u64>,
}

impl Site<'_> {
    /// Looks for a model that serves here.
    ///
    /// # Errors
    /// When a model that the user named is not there, or does not serve.
    pub fn find(&self, choice: ModelChoice) -> Result<Result<Serving, Missing>, Failure> {
        let named = match choice {
            ModelChoice::None => return Ok(Err(Missing::default())),
            ModelChoice::Named(name) => {
                let source = Source::find(&ModelShelf::of_user(), name)?;
                Some(source.bundle)
            }
            ModelChoice::Fitting => None,
        };
        let must = named.is_some();
        match self.serving(named) {
            Err(missing) if must => Err(missing.failure()),
            found => Ok(found),
        }
    }

    fn serving(&self, named: Option<Bundle>) -> Result<Serving, Missing> {
        let stencil = self.stencil.ok_or_else(|| Missing {
            what: "cost models know stencils only".to_owned(),
            remedy: None,
        })?;
        let file = self.file.ok_or_else(|| match &named {
            None => Missing {
                what: "there is no model of this machine".to_owned(),
                remedy: Some(format!("pdawl train{}", self.training_options())),
            },
            Some(bundle) => Missing {
                what: format!(
                    "there is no file of this machine, which model {} would predict it by",
                    bundle.name
                ),
                remedy: Some("pdawl machine save NAME".to_owned()),
            },
        })?;
        let bundle = match named {
            Some(bundle) => bundle,
            None => self.fitting(file)?,
        };
        let codelet = stencil.codelet();
        let modelled = Modelled {
            bundle: &bundle,
            machine: file,
            codelet: &codelet.name,
            fp64: stencil.fp64(),
            gpu_memory: self.gpu_memory,
        };
        let members = modelled.running(self.devices).map_err(|error| Missing {
            what: error.to_string(),
            remedy: None,
        })?;
        let work = Work::of(stencil);
        let plan = match self.chosen {
            true => planner::plan_with_all_cores(&work, &members),
            false => planner::plan(&work, &members),
        };
        let plan = plan.ok_or_else(|| Missing {
            what: format!("model {} finds no plan for these devices", bundle.name),
            remedy: Some("a larger --gpu-memory".to_owned()),
        })?;
        Ok(Serving {
            notes: self.notes(&bundle, file, &plan, &work, &members),
            model: bundle.name,
            work,
            members,
            plan,
        })
    }

    /// The model that fits the machine.
    fn fitting(&self, file: &MachineFile) -> Result<Bundle, Missing> {
        let search = ModelShelf::of_user().for_machine(Wanted {
            machine: &file.name,
            fingerprint: file.fingerprint.as_deref(),
            simulated: self.simulated,
        });
        for broken in &search.broken {
            terminal::warn(&broken.to_string());
        }
        search.bundle.ok_or_else(|| Missing {
            what: format!("there is no model of machine {}", file.name),
            remedy: Some(format!(
                "pdawl train --machine {}{}",
                file.name,
                self.training_options()
            )),
        })
    }

    /// What a model has to be trained with, to serve here.
    fn training_options(&self) -> String {
        (self.stencil).map_or_else(String::new, |s| command::options(&s.codelet().name))
    }

    fn notes(
        &self,
        bundle: &Bundle,
        file: &MachineFile,
        plan: &RunPlan,
        work: &Work,
        members: &[Member],
    ) -> Vec<String> {
        let mut notes = Vec::new();
        let name = &bundle.name;
        if bundle.machine != file.name {
            notes.push(format!(
                "model {name} is of machine {}; `pdawl model adapt` makes one for {} of it",
                bundle.machine, file.name
            ));
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
        for (d, member) in members.iter().enumerate() {
            if plan.workers[d] < member.compute_units {
                notes.push(format!(
                    "{} works with {} of {} cores, as model {name} plans",
                    member.name, plan.workers[d], member.compute_units
                ));
            }
        }
        let outside = plan.outside(work, members).into_iter().map(Unseen::from);
        let unseen: Vec<String> = outside.map(|input| input.in_words()).collect();
        if !unseen.is_empty() {
            notes.push(format!(
                "model {name} was not trained on this: {}",
                unseen.join(", ")
            ));
        }
        notes
    }
}

impl Serving {
    /// The cores of the host's pool, if the plan wants fewer than there are.
    pub fn cores(&self) -> Option<u32> {
        let all = self.members.first()?.compute_units;
        self.plan.workers.first().copied().filter(|n| *n < all)
    }

    /// The balancer that begins with the plan.
    ///
    /// # Errors
    /// When a device's memory is too small for what it streams with.
    pub fn balancer(&self, setup: &Setup) -> Result<Box<dyn Balancer>, String> {
        let planner = self.plan.planner(&self.work, &self.members);
        let planner = planner.ok_or("a device's memory is too small for its stream buffers")?;
        Ok(Box::new(Pdawl::new(
            setup,
            self.model.as_str(),
            Box::new(planner),
        )))
    }
}

#[cfg(test)]
mod tests {
    use pdawl::codelet::stencil::Precision;

    use super::*;

    #[test]
    fn a_machine_without_a_file_is_told_as_such() {
        let stencil = Stencil::new(64, 64, Some(64), Precision::F32, 1).unwrap();
        let site = Site {
            file: None,
            simulated: false,
            devices: &[],
            chosen: false,
            stencil: Some(&stencil),
            gpu_memory: None,
        };
        let missing = |named: Option<Bundle>| site.serving(named).err().unwrap().note().unwrap();
        let note = missing(None);
        assert!(note.ends_with("of this machine: pdawl train --dims 3 --precision f32"));
        let named = ModelShelf::at("/nonexistent").find("k40").unwrap();
        let note = missing(Some(named));
        assert!(note.contains("no file of this machine, which model k40"));
        assert!(note.ends_with("pdawl machine save NAME"), "{note}");
    }
}

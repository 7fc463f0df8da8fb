//! The run of a workload of divided steps on one machine.

use std::sync::atomic::AtomicBool;

use pdawl_api::balance::Strategy;
use pdawl_api::machine::host::Memory;
use pdawl_api::model::ModelStore;
use pdawl_api::report::Report;
use pdawl_api::session::divided::{self, Divided, Sharing, Work};
use pdawl_api::session::{self, NamedMachine, Session, memories_in_host};

use super::args::{MachineArgs, ModelChoice};
use super::failure::Failure;
use super::grid::MemoryBudget;
use super::machine_session::{self, Needs};
use super::model::Source;
use super::paths::Paths;
use super::run::Options;
use super::saved_report::run_words;
use super::saves::Saves;
use super::size::ByteSize;
use super::spec::kernel;
use super::terminal;
use super::ui::watch;
use super::workload::WorkloadRequest;

/// The strategy of a run, and the cost model that it may use.
pub struct StrategyChoice<'a> {
    pub strategy: Option<&'a Strategy>,
    pub adaptive: bool,
    pub model: ModelChoice<'a>,
}

impl StrategyChoice<'_> {
    /// How the steps are divided, if nothing is asked for as `default` says.
    fn sharing(&self, default: Sharing) -> Sharing {
        match self.strategy {
            Some(strategy) => Sharing::By(strategy.clone()),
            None if self.adaptive => Sharing::Adaptive,
            None => default,
        }
    }

    /// The cost model, of which a named one supports the codelet.
    fn model(&self, codelet: &str) -> Result<divided::ModelChoice, Failure> {
        Ok(match self.model {
            ModelChoice::None => divided::ModelChoice::None,
            ModelChoice::Fitting => divided::ModelChoice::Fitting,
            ModelChoice::Named(name) => {
                let source = Source::find_for(&ModelStore::of_user(), name, codelet)?;
                divided::ModelChoice::Named(Box::new(source.bundle))
            }
        })
    }
}

impl Options {
    /// Runs a workload and reports. `request` loads what the workload needs, after
    /// everything else has been checked.
    ///
    /// # Errors
    /// When the machine or the workload cannot be had, and when the run fails or is wrong.
    pub fn run(
        &self,
        choice: StrategyChoice,
        mut paths: Paths,
        stop: &AtomicBool,
        saves: Option<Saves>,
        request: impl FnOnce() -> Result<WorkloadRequest, Failure>,
    ) -> Result<(), Failure> {
        let files = self.files.prepare(&mut paths)?;
        let (request, machine) = (request()?, &self.machine);
        let named = machine_session::named(machine)?;
        let seed = request.seed();
        let prepared = request.prepare(budget(machine, named.as_ref(), self.verify)?)?;
        let divisible = prepared.divided.work.divisible();
        let needs = Needs {
            fp64: divisible.fp64(),
            data: self.verify || prepared.needs_numbers,
            seed,
        };
        let divided = Divided {
            model: choice.model(&divisible.codelet().name)?,
            all_cores: machine.devices.is_some(),
            faults: machine.fault.clone(),
            gpu_memory: machine.gpu_memory.map(|size| size.0),
            verify: self.verify,
            traced: self.files.wanted(),
            each_step: self.files.watch.then_some(watch::step),
            sharing: choice.sharing(prepared.divided.sharing),
            ..prepared.divided
        };
        let of_kernel = match (&divided.work, &divided.origin) {
            (Work::Kernel { .. }, (Some(file), _)) => Some(file.clone()),
            _ => None,
        };
        let failure = |error: session::Error| match (error, &of_kernel) {
            (session::Error::Corun(error), Some(file)) => kernel::failure(file, error),
            (error, _) => error.into(),
        };
        let mut session = Session::with(machine_session::options(machine, named, needs))?;
        watch::devices(session.devices().iter().map(|device| device.name.clone()));
        let waiting = of_kernel.as_ref().map(|_| terminal::spinner());
        if let Some(waiting) = &waiting {
            waiting.set_message("trying parts of the kernel");
        }
        let run = session.divide(divided, stop);
        if let Some(waiting) = waiting {
            waiting.finish_and_clear();
        }
        let mut run = run.map_err(failure)?;
        let steps = run.divided().supersteps.steps().into();
        let bar = terminal::progress(self.format, steps, &run.policy());
        let ran = run.run(stop, &mut |done, _| bar.set_position(done.into()));
        bar.finish_and_clear();
        let mut ran = ran
            .map_err(failure)?
            .with_notes(prepared.notes)
            .with_command(run_words());
        match saves {
            Some(saves) if ran.interrupted => {
                saves.drop_unwritten("interrupted before the last step");
            }
            Some(saves) if ran.is_wrong() => saves.drop_unwritten("the result is wrong"),
            Some(saves) => saves.write(&(prepared.results)())?,
            None => {}
        }
        if !ran.interrupted {
            run.compare(&mut ran, stop)?;
        }
        // A failure of one output does not keep the others from being written.
        let written = files.write(ran.trace(), &ran);
        terminal::print_report(self.format, ran.report(), Report::render)?;
        written?;
        verdict(&ran)
    }
}

/// The failure that the exit status shows: wrong results, or an interruption.
fn verdict(report: &Report) -> Result<(), Failure> {
    if report.is_wrong() {
        let error = (report.verification.as_ref()).and_then(|verification| verification.error);
        let error = error.unwrap_or(f64::NAN);
        return Err(Failure::failed(
            format!("the result differs from the sequential reference by up to {error:e}"),
            "the same run on single devices (--strategy cpu, --devices ...) to find the one with \
             wrong results",
        ));
    }
    if report.interrupted {
        return Err(Failure::Interrupted);
    }
    Ok(())
}

/// The host memory that a workload may use.
///
/// # Errors
/// A wrong list of devices.
fn budget(
    args: &MachineArgs,
    named: Option<&NamedMachine>,
    verify: bool,
) -> Result<MemoryBudget, Failure> {
    let reference_grids = if verify { 2 } else { 0 };
    let free = ByteSize(Memory::obtainable_now());
    let Some(simulated) = named.filter(|named| named.is_simulated()) else {
        let budget = MemoryBudget {
            // The user's limit may exceed the free memory that the system reports:
            // some machines get more memory as they use it.
            memory: args.host_memory.unwrap_or(free),
            grids: 2 + reference_grids,
        };
        return beside_copies(budget, args);
    };
    let budget = MemoryBudget {
        memory: ByteSize(simulated.file.host.memory),
        grids: 2,
    };
    Ok(match verify {
        false => budget,
        // The host also stores the data in the memory of simulated devices.
        true => budget.tighter(MemoryBudget {
            memory: free,
            grids: 4 + reference_grids,
        }),
    })
}

/// Subtracts the memory of devices that keep copies in host memory as if it were
/// their own: two grids each, or their limit.
fn beside_copies(mut budget: MemoryBudget, args: &MachineArgs) -> Result<MemoryBudget, Failure> {
    let Some(list) = &args.devices else {
        return Ok(budget);
    };
    let copies = memories_in_host(list)?;
    match args.gpu_memory {
        None => budget.grids += 2 * copies,
        Some(ByteSize(limit)) => {
            let held = limit.saturating_mul(copies);
            budget.memory = ByteSize(budget.memory.0.saturating_sub(held));
        }
    }
    Ok(budget)
}

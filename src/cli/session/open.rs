//! Opens a session: the devices that the user asked for, and a workload that fits
//! their memory.

use pdawl::balance::Strategy;
use pdawl::engine::corun;
use pdawl::machine::Host;
use pdawl::model::serving::ModelSearch;
use pdawl::runtime::select::Selection;

use super::Session;
use super::memory::with_memory;
use super::{model, superstep, threshold};
use crate::args::{MachineArgs, ModelChoice};
use crate::failure::{Failure, wrong_devices};
use crate::grid::MemoryBudget;
use crate::machine_session::{self, Needs};
use crate::size::ByteSize;
use crate::workload::{PreparedWorkload, WorkloadRequest};
use pdawl::session::NamedMachine;

impl Session {
    /// Opens the devices, for runs by `strategy` if that is known.
    ///
    /// # Errors
    /// When there is no such machine or device, or the workload does not fit.
    pub fn open(
        args: &MachineArgs,
        request: WorkloadRequest,
        verify: bool,
        choice: ModelChoice,
        strategy: Option<&Strategy>,
    ) -> Result<Self, Failure> {
        let strategy = strategy.unwrap_or(&Strategy::Dawl);
        let named = match machine_session::named(args)? {
            // A model needs the machine's file for its predictions.
            None if choice != ModelChoice::None || request.plans_superstep() => {
                NamedMachine::here()
            }
            named => named,
        };
        let file = named.as_ref().map(|named| named.file.clone());
        let notes_of_workload = request.notes();
        let seed = request.seed();
        let mut workload = request.prepare(budget(args, named.as_ref(), verify)?)?;
        let needs = Needs {
            fp64: workload.divisible().fp64(),
            data: verify || workload.needs_numbers(),
            seed,
        };
        let mut machine = machine_session::open(args, named, needs)?;
        let suitable = with_memory(&workload, &machine.machine.devices, args.gpu_memory);
        if let Some(list) = &suitable.list {
            machine.keep_only(list)?;
        }
        let gpu_memory = args.gpu_memory.map(|size| size.0);
        let (mut stream, mut planned) = (corun::Stream::default(), None);
        let mut chosen_note = None;
        if let PreparedWorkload::Stencil(grid, stencil) = &mut workload
            && grid.is_auto()
        {
            let choice = superstep::Choice {
                file: file.as_ref(),
                devices: &machine.machine.devices,
                strategy,
                gpu_memory,
            };
            let chosen = choice.make(grid, stencil);
            (stream, planned) = (chosen.stream, chosen.plan);
            chosen_note = Some(chosen.note);
        }
        // A fault is at a step of the report, which is a superstep.
        let steps = match workload.supersteps() {
            supersteps if supersteps.size() == 1 => (supersteps.count(), "--steps"),
            supersteps => (supersteps.count(), "--steps over --superstep"),
        };
        machine_session::inject(&mut machine, &args.fault, steps)?;
        let mut notes = std::mem::take(&mut machine.notes);
        notes.extend_from_slice(&suitable.notes);
        notes.extend(chosen_note);
        if let PreparedWorkload::Kernel(kernel) = &mut workload {
            if let Some(only) = machine.with(None, |runtime| kernel.examine(runtime))?? {
                let only = machine.machine.devices[only].name.clone();
                machine.keep_only(&only)?;
            }
            notes.append(&mut kernel.notes);
        }
        let search = ModelSearch {
            file: file.as_ref(),
            simulated: machine.machine.simulated,
            devices: &machine.machine.devices,
            chosen: args.devices.is_some(),
            codelet: &workload.divisible().codelet().name,
            fp64: needs.fp64,
            work: &|| workload.work(),
            gpu_memory,
        };
        let model = model::find(&search, choice)?;
        let (workload, model) = threshold::planned(workload, model);
        notes.extend(notes_of_workload);
        Ok(Self {
            machine,
            options: corun::Options {
                tolerance: workload.tolerance(),
                gpu_memory,
                stream,
                verify,
                trace: corun::Tracing::Sums,
                ..corun::Options::of(workload.supersteps())
            },
            workload,
            model,
            planned,
            devices_of_plan: None,
            comparison: Vec::new(),
            left_out: suitable.notes,
            notes,
        })
    }
}

/// The host memory that a workload may use.
fn budget(
    args: &MachineArgs,
    named: Option<&NamedMachine>,
    verify: bool,
) -> Result<MemoryBudget, Failure> {
    let reference_grids = if verify { 2 } else { 0 };
    let free = ByteSize(Host::detect().memory.obtainable(0));
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
    let selection: Selection = list.parse().map_err(wrong_devices)?;
    let copies = selection.devices().iter().filter(|spec| spec.own_memory);
    let copies = copies.count() as u64;
    match args.gpu_memory {
        None => budget.grids += 2 * copies,
        Some(ByteSize(limit)) => {
            let held = limit.saturating_mul(copies);
            budget.memory = ByteSize(budget.memory.0.saturating_sub(held));
        }
    }
    Ok(budget)
}

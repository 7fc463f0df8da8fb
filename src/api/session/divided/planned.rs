//! What the machine's file and its cost model plan of a run: steps between two barriers, the rows
//! of a matrix that the host may have first, and the first shares.

use std::sync::Arc;

use super::{Divided, Error, ModelChoice, Others, Plan, Plans, PlansSupersteps, Sharing, Work};
use crate::balance::Strategy;
use crate::engine::corun::Stream;
use crate::machine::{Device, MachineFile};
use crate::model::StepWork;
use crate::model::planner::{MemoryKind, are_fixed, physical, plan_supersteps, superstep_sizes};
use crate::model::serving::{ModelSearch, NoModel, ServingModel, StreamBuffers};
use crate::session::OpenDevices;
use crate::workload::Divisible;

/// Fractions of irregular rows that are tried besides the given one.
const IRREGULAR: [f64; 2] = [0.0, 0.7];

/// A candidate is chosen only if its predicted time is below this part of the best.
const WORTH_IT: f64 = 0.99;

/// Plans as far as `divided` asks for it, and puts into it what it says.
///
/// # Errors
/// When a model that is named does not exist or does not support the run.
pub fn plans(
    divided: &mut Divided,
    opened: &OpenDevices,
    devices: &[Device],
    is_known: bool,
) -> Result<Plans, Error> {
    let unwanted = matches!(divided.model, ModelChoice::None);
    let plans_supersteps = divided.plans_supersteps();
    if unwanted && !plans_supersteps {
        return Ok(Plans {
            plan: Err(missing(&NoModel::unwanted())),
            note: None,
            notes: Vec::new(),
            stream: Stream::default(),
            others: Vec::new(),
        });
    }
    let file = opened.file();
    let (mut notes, mut stream, mut of_file) = (Vec::new(), Stream::default(), None);
    let mut others = Vec::new();
    if plans_supersteps {
        let known = opened.file_or_measured();
        let planned = supersteps(divided, known.as_deref(), devices, is_known);
        let (size, steps) = (divided.supersteps.size(), divided.supersteps.steps());
        // Single steps are those of all runs.
        if size > 1 || divided.plans_supersteps == PlansSupersteps::Always {
            let how = match &planned {
                _ if is_known => "as earlier runs tell",
                Some((_, _, how)) => how,
                None => "since nothing is known of such runs here",
            };
            notes.push(format!(
                "--superstep auto: {size} of {steps} steps between two barriers, {how}"
            ));
        }
        if let Some((planned, of_others, _)) = planned {
            others = of_others;
            if size > 1 {
                stream = planned.plan.stream;
                of_file = Some(planned);
            }
        }
    }
    let codelet = divided.work.divisible().codelet().name.clone();
    let (fp64, work) = (divided.work.divisible().fp64(), &divided.work);
    let search = ModelSearch {
        file: file.as_deref(),
        simulated: opened.machine.simulated,
        devices,
        chosen: divided.all_cores,
        codelet: &codelet,
        fp64,
        work: &|| step(work, divided.supersteps.size()),
        gpu_memory: divided.gpu_memory,
    };
    let is_open = matches!(divided.sharing, Sharing::Default | Sharing::Adaptive);
    let exchanges = matches!(&divided.work, Work::Product(spmv) if spmv.iterates());
    let mut warn = |broken: &str| notes.push(broken.to_owned());
    let found = match &divided.model {
        ModelChoice::None => Err(NoModel::unwanted()),
        ModelChoice::Fitting if is_open && exchanges => Err(NoModel {
            what: "models know nothing of the results that devices exchange here".to_owned(),
            remedy: None,
        }),
        ModelChoice::Fitting => search.find(None, &mut warn),
        ModelChoice::Named(bundle) => match search.find(Some((**bundle).clone()), &mut warn) {
            Err(why) => return Err(missing(&why)),
            found => found,
        },
    };
    let found = found.and_then(|serving| match serving.has_buffers() {
        true => Ok(serving),
        false => Err(NoModel {
            what: StreamBuffers.to_string(),
            remedy: None,
        }),
    });
    let found = found.map(|serving| with_irregular(divided, serving));
    let found = found.or_else(|why| of_file.ok_or(why));
    let note = found.as_ref().err().and_then(NoModel::note);
    let plan = match found {
        Ok(serving) => Ok(plan_of(serving, &mut notes)),
        Err(why) => Err(missing(&why)),
    };
    Ok(Plans {
        plan,
        note,
        notes,
        stream,
        others,
    })
}

fn missing(why: &NoModel) -> Error {
    Error::Model(why.to_string())
}

fn plan_of(mut serving: ServingModel, notes: &mut Vec<String>) -> Plan {
    notes.append(&mut serving.notes);
    Plan {
        stream: serving.plan.stream,
        cores: serving.cores(),
        balancer: Arc::new(move |setup| {
            let balancer = serving.balancer(setup);
            balancer.map_err(|small| Error::Model(small.to_string()))
        }),
    }
}

/// A step of the workload, as cost models know it, or why they do not.
pub fn step(work: &Work, superstep: u32) -> Result<StepWork, String> {
    match (work, superstep) {
        (Work::Stencil(stencil), 1) => Ok(StepWork::of(stencil)),
        (Work::Stencil(_), size) => Err(format!(
            "models predict steps with a barrier after each, not --superstep {size}"
        )),
        (Work::Product(spmv), _) => Ok(StepWork::of_product(spmv)),
        (Work::Kernel { user, .. }, _) => {
            let codelet = user.codelet();
            Err(format!("models do not support codelet {}", codelet.name))
        }
    }
}

/// Sets the steps between two barriers as `file` predicts them to be fastest unless they
/// are known, and returns the plan of a superstep, what others should take, and a note. `None` if
/// nothing is known of the machine, or a device.
fn supersteps(
    divided: &mut Divided,
    file: Option<&MachineFile>,
    devices: &[Device],
    is_known: bool,
) -> Option<(ServingModel, Others, String)> {
    let file = file?;
    let Work::Stencil(stencil) = &divided.work else {
        return None;
    };
    let strategy = match &divided.sharing {
        Sharing::By(strategy) => strategy,
        _ => &Strategy::Dawl,
    };
    let (codelet, fp64) = (stencil.codelet(), stencil.fp64());
    let of = (codelet.name.as_ref(), fp64);
    let candidates = physical(file, devices, of, divided.gpu_memory).ok()?;
    let own = candidates.iter().filter_map(|of| match of.memory {
        MemoryKind::Discrete { limit, .. } => Some(limit),
        _ => None,
    });
    // What is held moves little, and what a host computes in its caches varies more than it gains.
    let bytes = stencil.units() * stencil.unit_bytes();
    let is_held = own.clone().count() == 0 || own.sum::<u64>() > bytes;
    if divided.plans_supersteps == PlansSupersteps::IfUsual && is_held && !is_known {
        return None;
    }
    let (supersteps, longest) = (divided.supersteps, divided.supersteps.period());
    let sizes = match is_known {
        true => vec![supersteps.size()],
        false => superstep_sizes(longest),
    };
    let all = plan_supersteps(stencil, &candidates, strategy, (supersteps, &sizes));
    let (size, plan) = all.first().map(|best| (best.size, best.plan.clone()))?;
    // Single steps are what a plan that errs is compared with.
    let compared = all.iter().filter(|of| [1, size].contains(&of.size));
    let others = compared
        .map(|of| (of.size, of.plan.working(), of.seconds))
        .collect();
    let mut note = "as what is known of the machine predicts".to_owned();
    let resting = plan.resting().join(", ");
    if size > 1 && !are_fixed(strategy) && !resting.is_empty() {
        note += &format!("; a superstep would take longer with a part for {resting}");
    }
    let work = StepWork::of_superstep(stencil, size);
    divided.supersteps = divided.supersteps.with_size(size);
    let model = ServingModel::of_machine(file, work, candidates, plan);
    Some((model, others, note))
}

/// Chooses the fraction of a matrix's rows that counts as irregular, if the model shares the work
/// and the fraction is free: it decides which rows the host computes.
fn with_irregular(divided: &mut Divided, mut best: ServingModel) -> ServingModel {
    if !divided.plans_irregular || !best.shares() {
        return best;
    }
    for part in IRREGULAR {
        let Work::Product(spmv) = &divided.work else {
            break;
        };
        let other = Arc::new(spmv.with_irregular(part));
        let planned = best.planned_for(StepWork::of_product(&other));
        if let Some(mut planned) = planned.filter(|p| p.seconds() < WORTH_IT * best.seconds()) {
            planned.notes.push(format!(
                "the longest {:.0} % of the rows may go to the CPU first, as the model plans",
                100.0 * part
            ));
            (divided.work, best) = (Work::Product(other), planned);
        }
    }
    best
}

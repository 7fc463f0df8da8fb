//! Checks a selection against the devices that exist, and plans what to open.

use super::choice::GpuRuntime;
use super::selection::{DeviceSpec, Selection, SelectionError, Source};
use crate::machine::DeviceKind;
use crate::machine::host::Topology;
use crate::runtime::host::PoolSpec;
use crate::runtime::opencl::{Discovery, FoundDevice, Selected};
use crate::runtime::{RuntimeError, cuda};

/// From so many cores on, one is reserved for the driver thread where a discrete GPU
/// takes part. The driver thread enqueues and polls while the workers compute; on a
/// core that it shares with a worker both are late, and every step with them (2.5 ms
/// instead of 1.4 on 16 cores and an H200). Fewer cores are each worth more.
const CORES_TO_SPARE_ONE: usize = 4;

impl FoundDevice {
    fn source(&self) -> Source {
        Source::Opencl {
            platform: self.platform,
            device: self.device,
        }
    }

    fn is_cpu(&self) -> bool {
        self.info.kind == DeviceKind::Cpu
    }

    fn is_divisible(&self) -> bool {
        self.info.sub_devices.by_counts || self.info.sub_devices.equally
    }

    fn is_discrete(&self) -> bool {
        !self.info.shares_host_memory
    }
}

/// What drivers offer, and which one opens a GPU that both do.
#[derive(Clone, Debug, Default)]
pub struct Existing {
    pub opencl: Discovery,
    pub cuda: cuda::Discovery,
    pub runtime: GpuRuntime,
}

impl Existing {
    /// Refuses the choice of CUDA where there is none.
    pub(super) fn check(&self) -> Result<(), SelectionError> {
        match &self.cuda.fault {
            Some(why) if self.runtime == GpuRuntime::Cuda => {
                Err(SelectionError::NoCuda { why: why.clone() })
            }
            _ => Ok(()),
        }
    }

    /// The GPUs that are opened through CUDA where no devices are named.
    pub(super) fn through_cuda(&self) -> Vec<&cuda::FoundGpu> {
        let gpus = self.cuda.devices.iter();
        gpus.filter(|gpu| self.runtime.refusal(gpu, &self.opencl).is_none())
            .collect()
    }
}

/// The devices to open. Host pools come before OpenCL devices, and these before CUDA's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenPlan {
    pub pools: Vec<PoolSpec>,
    pub opencl: Vec<Selected>,
    /// The numbers of CUDA's devices.
    pub cuda: Vec<usize>,
    /// Cores that no device takes.
    pub spare: Vec<usize>,
    /// The devices left out, and why.
    pub notes: Vec<String>,
}

impl From<SelectionError> for RuntimeError {
    fn from(error: SelectionError) -> Self {
        Self::Selection(error.to_string())
    }
}

/// The host's cores.
#[derive(Clone, Copy, Debug)]
pub struct HostCores<'a> {
    /// Those that the process may use.
    pub allowed: &'a [usize],
    /// Their positions.
    pub topology: &'a Topology,
    /// How many of them a control group lets work all the time; `None`: all.
    pub granted: Option<usize>,
}

impl HostCores<'_> {
    /// How many of `rest` cores a host without a given number gets, where other devices have
    /// `taken` some.
    fn grant(&self, rest: usize, taken: usize, notes: &mut Vec<String>) -> usize {
        let granted = self.granted.unwrap_or(usize::MAX);
        let workers = rest.min(granted.saturating_sub(taken).max(1));
        if workers < rest {
            notes.push(format!(
                "host has {workers} of {rest} cores: the control group grants no more time; \
                 host:{rest} takes them all"
            ));
        }
        workers
    }
}

/// Checks a selection. No core is given to two devices.
///
/// # Errors
/// When a device does not exist, is asked for more than it has, or shares
/// cores with another.
pub fn plan(
    selection: Option<&Selection>,
    existing: &Existing,
    host: HostCores,
    fp64: bool,
) -> Result<OpenPlan, SelectionError> {
    match selection {
        Some(selection) => chosen(selection.devices(), existing, host, fp64),
        None => every_device(existing, host, fp64),
    }
}

/// The host, and every device that is no CPU, through one driver each.
fn every_device(
    existing: &Existing,
    host: HostCores,
    fp64: bool,
) -> Result<OpenPlan, SelectionError> {
    let found = &existing.opencl;
    let mut plan = OpenPlan {
        notes: found.warnings.clone(),
        ..OpenPlan::default()
    };
    existing.check()?;
    note_cuda(existing, &mut plan.notes);
    let through_cuda = existing.through_cuda();
    plan.cuda = through_cuda.iter().map(|gpu| gpu.device).collect();
    let mut discrete = !plan.cuda.is_empty();
    for device in &found.devices {
        if through_cuda
            .iter()
            .any(|gpu| gpu.identity.is(&device.identity))
        {
            continue;
        }
        let left_out = if device.is_cpu() {
            "its cores are the host's"
        } else if fp64 && !device.info.fp64 {
            "it does not compute in double precision"
        } else {
            discrete |= device.is_discrete();
            plan.opencl.push(Selected {
                platform: device.platform,
                device: device.device,
                units: None,
                own_memory: false,
            });
            continue;
        };
        plan.notes.push(format!(
            "{} ({}) is left out: {left_out}",
            device.source(),
            device.info.model
        ));
    }
    let count = host.allowed.len();
    let rest = count - spared(discrete, count);
    let (cores, spare) = (host.allowed).split_at(host.grant(rest, 0, &mut plan.notes));
    plan.pools.push(PoolSpec {
        name: "host".to_owned(),
        cores: cores.to_vec(),
    });
    plan.spare = spare.to_vec();
    Ok(plan)
}

/// Notes why GPUs are not opened through CUDA where it was to be asked for them.
fn note_cuda(existing: &Existing, notes: &mut Vec<String>) {
    if !existing.runtime.asks_cuda() {
        return;
    }
    // A machine without NVIDIA's GPUs needs no CUDA.
    let mut gpus = existing.opencl.devices.iter();
    let has_nvidia = gpus.any(|found| found.info.driver.starts_with("NVIDIA"));
    if let Some(why) = existing.cuda.fault.as_ref().filter(|_| has_nvidia) {
        notes.push(format!("GPUs are opened through OpenCL: {why}"));
    }
    for gpu in &existing.cuda.devices {
        if let Some(why) = existing.runtime.refusal(gpu, &existing.opencl) {
            notes.push(format!(
                "{} ({}) is not opened through CUDA: {why}",
                gpu.info.name, gpu.info.model
            ));
        }
    }
}

/// Cores that a host without a given size leaves to the driver thread.
fn spared(discrete: bool, cores: usize) -> usize {
    usize::from(discrete && cores >= CORES_TO_SPARE_ONE)
}

/// A device that takes cores, and how many.
struct Demand {
    spec: DeviceSpec,
    cores: usize,
    /// Whether it can take fewer.
    divisible: bool,
}

fn chosen(
    specs: &[DeviceSpec],
    existing: &Existing,
    host: HostCores,
    fp64: bool,
) -> Result<OpenPlan, SelectionError> {
    let found = &existing.opencl;
    if specs.is_empty() {
        return Err(SelectionError::Empty);
    }
    let mut plan = OpenPlan::default();
    let mut demands: Vec<Demand> = Vec::new();
    let mut discrete = false;
    for spec in specs {
        let mut divisible = true;
        let cores = match spec.source {
            // Without a number it gets the cores that the others leave, below.
            Source::Host => Some(spec.units.unwrap_or(0) as usize),
            Source::Opencl { platform, device } => {
                let root = find(found, spec)?;
                let units = divide(spec, root)?;
                if fp64 && !root.info.fp64 {
                    return Err(SelectionError::NoFp64 {
                        item: spec.to_string(),
                        model: root.info.model.clone(),
                    });
                }
                if spec.own_memory && !root.info.shares_host_memory {
                    return Err(SelectionError::OwnAlready {
                        item: spec.to_string(),
                        source_name: spec.shared().to_string(),
                        model: root.info.model.clone(),
                    });
                }
                discrete |= root.is_discrete();
                plan.opencl.push(Selected {
                    platform,
                    device,
                    units,
                    own_memory: spec.own_memory,
                });
                let cores = units.unwrap_or(root.info.compute_units) as usize;
                divisible = root.is_divisible();
                // What cannot be divided computes on the cores that there are, whatever units
                // it has.
                let most = if divisible { cores } else { host.allowed.len() };
                root.is_cpu().then_some(cores.min(most))
            }
            Source::Cuda { device } => {
                check_cuda(spec, device, specs, existing)?;
                discrete = true;
                plan.cuda.push(device);
                None
            }
        };
        if let Some(cores) = cores {
            demands.push(Demand {
                spec: *spec,
                cores,
                divisible,
            });
        }
    }
    refuse_repetition(specs, found)?;
    let count = host.allowed.len();
    give_the_rest(&mut demands, host, spared(discrete, count), &mut plan.notes)?;
    let asked: usize = demands.iter().map(|demand| demand.cores).sum();
    if asked > count {
        return Err(too_many(&demands, count));
    }
    let mut free = host.allowed.to_vec();
    for demand in &demands {
        let cores = host
            .topology
            .take(demand.cores, demand.spec.placement, &free);
        free.retain(|core| !cores.contains(core));
        if demand.spec.source == Source::Host {
            let name = demand.spec.to_string();
            let alike = |pool: &&PoolSpec| pool.name.split('#').next() == Some(name.as_str());
            let name = match plan.pools.iter().filter(alike).count() {
                0 => name,
                before => format!("{name}#{}", before + 1),
            };
            plan.pools.push(PoolSpec { name, cores });
        }
    }
    plan.spare = free;
    Ok(plan)
}

/// Checks a GPU that is to be opened through CUDA.
fn check_cuda(
    spec: &DeviceSpec,
    device: usize,
    specs: &[DeviceSpec],
    existing: &Existing,
) -> Result<(), SelectionError> {
    let mut gpus = existing.cuda.devices.iter();
    let gpu = gpus.find(|gpu| gpu.device == device).ok_or_else(|| {
        let gpus = existing.cuda.devices.iter();
        let mut exists: Vec<String> = gpus
            .map(|gpu| format!("CUDA has {} ({})", gpu.info.name, gpu.info.model))
            .collect();
        exists.extend(existing.cuda.fault.clone());
        SelectionError::Unknown {
            item: spec.source.to_string(),
            exists: exists.join("; "),
        }
    })?;
    if let Some(units) = spec.units.filter(|units| *units != gpu.info.compute_units) {
        return Err(SelectionError::Indivisible {
            device: spec.source.to_string(),
            units,
        });
    }
    if spec.own_memory {
        return Err(SelectionError::OwnAlready {
            item: spec.to_string(),
            source_name: spec.shared().to_string(),
            model: gpu.info.model.clone(),
        });
    }
    if specs
        .iter()
        .filter(|other| other.source == spec.source)
        .count()
        > 1
    {
        return Err(SelectionError::Twice {
            item: spec.source.to_string(),
        });
    }
    let named = |found: &&FoundDevice| specs.iter().any(|other| other.source == found.source());
    let mut same = existing.opencl.devices.iter().filter(named);
    match same.find(|found| found.identity.is(&gpu.identity)) {
        Some(same) => Err(SelectionError::TwoDrivers {
            cuda: spec.source.to_string(),
            opencl: same.source().to_string(),
            model: gpu.info.model.clone(),
        }),
        None => Ok(()),
    }
}

fn find<'a>(found: &'a Discovery, spec: &DeviceSpec) -> Result<&'a FoundDevice, SelectionError> {
    let device = found.devices.iter().find(|o| o.source() == spec.source);
    device.ok_or_else(|| {
        let mut exists = "this machine has host".to_owned();
        for other in &found.devices {
            exists.push_str(&format!(", {} ({})", other.source(), other.info.model));
        }
        for warning in &found.warnings {
            exists.push_str(&format!("; {warning}"));
        }
        SelectionError::Unknown {
            item: spec.source.to_string(),
            exists,
        }
    })
}

/// The units of a sub-device, or `None` for the whole device.
fn divide(spec: &DeviceSpec, device: &FoundDevice) -> Result<Option<u32>, SelectionError> {
    let Some(units) = spec.units else {
        return Ok(None);
    };
    let whole = device.info.compute_units;
    if units > whole {
        return Err(SelectionError::TooManyUnits {
            item: spec.to_string(),
            device: format!("{} ({})", device.source(), device.info.model),
            units: whole,
        });
    }
    if units == whole {
        return Ok(None);
    }
    if !device.is_divisible() {
        return Err(SelectionError::Indivisible {
            device: device.source().to_string(),
            units,
        });
    }
    Ok(Some(units))
}

/// Refuses a device that is named so often that its units do not suffice.
fn refuse_repetition(specs: &[DeviceSpec], found: &Discovery) -> Result<(), SelectionError> {
    for (index, spec) in specs.iter().enumerate() {
        if !matches!(spec.source, Source::Opencl { .. }) {
            continue;
        }
        let device = find(found, spec)?;
        let whole = u64::from(device.info.compute_units);
        let asked: u64 = specs[..=index]
            .iter()
            .filter(|other| other.source == spec.source)
            .map(|other| other.units.map_or(whole, u64::from))
            .sum();
        let repeated = specs[..index].iter().any(|o| o.source == spec.source);
        if repeated && (asked > whole || !device.is_cpu()) {
            return Err(SelectionError::Twice {
                item: spec.source.to_string(),
            });
        }
    }
    Ok(())
}

/// Gives `host` without a number the cores that the others leave, less those
/// `spared` if it keeps one, as far as they are granted. If the others leave none it gets all, for the error message
/// that follows.
fn give_the_rest(
    demands: &mut [Demand],
    host: HostCores,
    spared: usize,
    notes: &mut Vec<String>,
) -> Result<(), SelectionError> {
    let asked: usize = demands.iter().map(|demand| demand.cores).sum();
    let cores = host.allowed.len();
    let rest = match cores.saturating_sub(asked) {
        0 => cores,
        rest => rest.saturating_sub(spared).max(1),
    };
    let mut bare = demands
        .iter_mut()
        .filter(|demand| demand.spec.source == Source::Host && demand.spec.units.is_none());
    if let Some(demand) = bare.next() {
        demand.cores = match cores > asked {
            true => host.grant(rest, asked, notes),
            false => rest,
        };
    }
    match bare.next() {
        Some(_) => Err(SelectionError::TwoHosts),
        None => Ok(()),
    }
}

fn too_many(demands: &[Demand], cores: usize) -> SelectionError {
    if let [only] = demands {
        return SelectionError::TooManyCores {
            name: only.spec.to_string(),
            remedy: only.spec.of(cores).to_string(),
            asked: only.cores,
            cores,
        };
    }
    let names: Vec<String> = demands.iter().map(|d| d.spec.to_string()).collect();
    let sum: Vec<String> = demands.iter().map(|d| d.cores.to_string()).collect();
    let whole = demands.iter().find(|demand| !demand.divisible);
    let remedy = match (whole, cores / demands.len()) {
        (Some(whole), _) => format!(
            "name {} alone, which cannot be divided, or others",
            whole.spec
        ),
        (None, 0) => format!("name at most {cores} of them"),
        (None, each) => {
            let specs: Vec<String> = demands
                .iter()
                .map(|d| d.spec.of(each.min(d.cores)).to_string())
                .collect();
            format!("use e.g. {}", specs.join(","))
        }
    };
    SelectionError::SameCores {
        names: names.join(" and "),
        sum: sum.join(" + "),
        cores,
        remedy,
    }
}

#[cfg(test)]
mod tests;

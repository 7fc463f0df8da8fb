//! What to open: a selection checked against what exists.

use super::selection::{DeviceSpec, Selection, SelectionError, Source};
use crate::machine::host::Topology;
use crate::machine::{Device, DeviceKind};
use crate::runtime::RuntimeError;
use crate::runtime::host::PoolSpec;
use crate::runtime::opencl::{Discovery, Found, Selected};

/// Least cores of which one is left to the engine where a discrete GPU takes
/// part. The engine's thread enqueues and watches while the others compute; on
/// a core that it shares with a worker both are late, and every step with them
/// (2.5 ms instead of 1.4 on 16 cores and an H200). Of fewer cores each is
/// worth more than that.
const CORES_TO_SPARE_ONE: usize = 4;

/// An OpenCL device that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    pub platform: usize,
    pub device: usize,
    pub info: Device,
}

impl Offer {
    fn source(&self) -> Source {
        Source::Opencl {
            platform: self.platform,
            device: self.device,
        }
    }

    fn is_cpu(&self) -> bool {
        self.info.kind == DeviceKind::Cpu
    }

    fn is_discrete(&self) -> bool {
        !self.info.shares_host_memory
    }
}

/// What was found besides the host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Offers {
    pub devices: Vec<Offer>,
    /// What hindered the search: no OpenCL loader, a missing driver ...
    pub warnings: Vec<String>,
}

impl From<Discovery> for Offers {
    fn from(discovery: Discovery) -> Self {
        let offer = |found: Found| Offer {
            platform: found.platform,
            device: found.device,
            info: found.info,
        };
        Self {
            devices: discovery.devices.into_iter().map(offer).collect(),
            warnings: discovery.warnings,
        }
    }
}

/// What to open. Host pools come before OpenCL devices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    pub pools: Vec<PoolSpec>,
    pub opencl: Vec<Selected>,
    /// Cores that no device takes.
    pub spare: Vec<usize>,
    /// What was left out, and why.
    pub notes: Vec<String>,
}

impl From<SelectionError> for RuntimeError {
    fn from(error: SelectionError) -> Self {
        Self::Selection(error.to_string())
    }
}

/// Checks a selection. `allowed` are the cores that the process may use, and
/// `topology` says how they lie; no core is given to two devices.
///
/// # Errors
/// When a device does not exist, is asked for more than it has, or shares
/// cores with another.
pub fn plan(
    selection: Option<&Selection>,
    offers: &Offers,
    allowed: &[usize],
    topology: &Topology,
    fp64: bool,
) -> Result<Plan, SelectionError> {
    match selection {
        Some(selection) => chosen(selection.devices(), offers, allowed, topology, fp64),
        None => Ok(everything(offers, allowed, fp64)),
    }
}

/// The host and every OpenCL device that is no CPU.
fn everything(offers: &Offers, allowed: &[usize], fp64: bool) -> Plan {
    let mut plan = Plan {
        notes: offers.warnings.clone(),
        ..Plan::default()
    };
    let mut discrete = false;
    for offer in &offers.devices {
        let left_out = if offer.is_cpu() {
            "its cores are the host's"
        } else if fp64 && !offer.info.fp64 {
            "it does not compute in double precision"
        } else {
            discrete |= offer.is_discrete();
            plan.opencl.push(Selected {
                platform: offer.platform,
                device: offer.device,
                units: None,
                own_memory: false,
            });
            continue;
        };
        plan.notes.push(format!(
            "{} ({}) is left out: {left_out}",
            offer.source(),
            offer.info.model
        ));
    }
    let spared = spared(discrete, allowed.len());
    let (cores, spare) = allowed.split_at(allowed.len() - spared);
    plan.pools.push(PoolSpec {
        name: "host".to_owned(),
        cores: cores.to_vec(),
    });
    plan.spare = spare.to_vec();
    plan
}

/// Cores that a host of no given size leaves to the engine.
fn spared(discrete: bool, cores: usize) -> usize {
    usize::from(discrete && cores >= CORES_TO_SPARE_ONE)
}

/// A device that takes cores: its index in the selection, and how many.
struct Demand {
    spec: DeviceSpec,
    cores: usize,
}

fn chosen(
    specs: &[DeviceSpec],
    offers: &Offers,
    allowed: &[usize],
    topology: &Topology,
    fp64: bool,
) -> Result<Plan, SelectionError> {
    if specs.is_empty() {
        return Err(SelectionError::Empty);
    }
    let mut plan = Plan::default();
    let mut demands: Vec<Demand> = Vec::new();
    let mut discrete = false;
    for spec in specs {
        let cores = match spec.source {
            // Without a number: what the others leave, below.
            Source::Host => Some(spec.units.unwrap_or(0) as usize),
            Source::Opencl { platform, device } => {
                let offer = find(offers, spec)?;
                let units = divide(spec, offer)?;
                if fp64 && !offer.info.fp64 {
                    return Err(SelectionError::NoFp64 {
                        item: spec.to_string(),
                        model: offer.info.model.clone(),
                    });
                }
                if spec.own_memory && !offer.info.shares_host_memory {
                    return Err(SelectionError::OwnAlready {
                        item: spec.to_string(),
                        source_name: spec.shared().to_string(),
                        model: offer.info.model.clone(),
                    });
                }
                discrete |= offer.is_discrete();
                plan.opencl.push(Selected {
                    platform,
                    device,
                    units,
                    own_memory: spec.own_memory,
                });
                let cores = units.unwrap_or(offer.info.compute_units) as usize;
                offer.is_cpu().then_some(cores)
            }
        };
        if let Some(cores) = cores {
            demands.push(Demand { spec: *spec, cores });
        }
    }
    refuse_repetition(specs, offers)?;
    give_the_rest(&mut demands, allowed.len(), spared(discrete, allowed.len()))?;
    let asked: usize = demands.iter().map(|demand| demand.cores).sum();
    if asked > allowed.len() {
        return Err(too_many(&demands, allowed.len()));
    }
    let mut free = allowed.to_vec();
    for demand in &demands {
        let cores = topology.take(demand.cores, demand.spec.placement, &free);
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

fn find<'a>(offers: &'a Offers, spec: &DeviceSpec) -> Result<&'a Offer, SelectionError> {
    let found = offers.devices.iter().find(|o| o.source() == spec.source);
    found.ok_or_else(|| {
        let mut exists = "this machine has host".to_owned();
        for offer in &offers.devices {
            exists.push_str(&format!(", {} ({})", offer.source(), offer.info.model));
        }
        for warning in &offers.warnings {
            exists.push_str(&format!("; {warning}"));
        }
        SelectionError::Unknown {
            item: spec.source.to_string(),
            exists,
        }
    })
}

/// The units of a sub-device, or `None` for the whole device.
fn divide(spec: &DeviceSpec, offer: &Offer) -> Result<Option<u32>, SelectionError> {
    let Some(units) = spec.units else {
        return Ok(None);
    };
    let whole = offer.info.compute_units;
    if units > whole {
        return Err(SelectionError::TooManyUnits {
            item: spec.to_string(),
            device: format!("{} ({})", offer.source(), offer.info.model),
            units: whole,
        });
    }
    if units == whole {
        return Ok(None);
    }
    let ways = offer.info.sub_devices;
    if !ways.by_counts && !ways.equally {
        return Err(SelectionError::Indivisible {
            device: offer.source().to_string(),
            units,
        });
    }
    Ok(Some(units))
}

/// Refuses a device that is named so often that its units do not suffice.
fn refuse_repetition(specs: &[DeviceSpec], offers: &Offers) -> Result<(), SelectionError> {
    for (index, spec) in specs.iter().enumerate() {
        if spec.source == Source::Host {
            continue;
        }
        let offer = find(offers, spec)?;
        let whole = u64::from(offer.info.compute_units);
        let asked: u64 = specs[..=index]
            .iter()
            .filter(|other| other.source == spec.source)
            .map(|other| other.units.map_or(whole, u64::from))
            .sum();
        let repeated = specs[..index].iter().any(|o| o.source == spec.source);
        if repeated && (asked > whole || !offer.is_cpu()) {
            return Err(SelectionError::Twice {
                item: spec.source.to_string(),
            });
        }
    }
    Ok(())
}

/// Gives `host` without a number the cores that the others leave, but those
/// `spared` that can be; all, if they leave none, for the message that follows.
fn give_the_rest(
    demands: &mut [Demand],
    cores: usize,
    spared: usize,
) -> Result<(), SelectionError> {
    let asked: usize = demands.iter().map(|demand| demand.cores).sum();
    let rest = match cores.saturating_sub(asked) {
        0 => cores,
        rest => rest.saturating_sub(spared).max(1),
    };
    let mut bare = demands
        .iter_mut()
        .filter(|demand| demand.spec.source == Source::Host && demand.spec.units.is_none());
    if let Some(host) = bare.next() {
        host.cores = rest;
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
    let remedy = match cores / demands.len() {
        0 => format!("name at most {cores} of them"),
        each => {
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

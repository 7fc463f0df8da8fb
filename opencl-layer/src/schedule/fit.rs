//! The place of a queue by the map with the least predicted time.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use pdawl_api::policy::auto_fit::{self, Hint, MapSearch, QueueDatum, Situation, StaticQueue, fit};
use pdawl_api::residency::Places;

use crate::device_profile;
use crate::handle::{AddressHasher, Ref};
use crate::mem::Mem;
use crate::queue::{Queue, State};
use crate::report;
use crate::scheduling;
use crate::settings::Mapping;

use super::{QueuePlan, plan};
use crate::command::Command;
use crate::records::KernelRecord;

/// Partial maps that are examined at most.
const SEARCH: MapSearch = MapSearch { most: 20_000 };

/// The place that a queue has in the best map; its present one if there is none.
pub fn place(queue: &Ref<Queue>, state: &mut State, able: &[usize]) -> usize {
    let places = queue.context.places.len();
    let mut epochs = vec![expected(plan(state))];
    let mut present = vec![state.place];
    for other in queue.context.queues() {
        if other != *queue {
            let mut state = other.state_of_another();
            let epoch = expected(plan(&mut state));
            if !epoch.is_empty() {
                present.push(state.place);
                epochs.push(epoch);
            }
        }
    }
    let mut data: Vec<(usize, QueueDatum)> = Vec::new();
    let mut described = Vec::new();
    for (index, epoch) in epochs.iter().enumerate() {
        let seconds = (0..places).map(|place| seconds(queue, epoch, place, present[index]));
        let mut seconds: Vec<f64> = seconds.collect();
        if index == 0 {
            for place in (0..places).filter(|place| !able.contains(place)) {
                seconds[place] = f64::INFINITY;
            }
        }
        let mut description = auto_fit::Epoch {
            seconds,
            present: Some(present[index]),
            ..Default::default()
        };
        for used in &epoch.uses {
            let Some(datum) = datum(&mut data, used.mem, places) else {
                continue;
            };
            let lists = [
                (used.upload, &mut description.uploads),
                (used.read && !used.upload, &mut description.reads),
                (used.written, &mut description.writes),
                (used.download, &mut description.downloads),
            ];
            for (is_so, list) in lists {
                if is_so {
                    list.push(datum);
                }
            }
        }
        described.push(description);
    }
    let costs = device_profile::costs(&queue.context).clone();
    let situation = Situation {
        epochs: described,
        data: data.into_iter().map(|(_, datum)| datum).collect(),
        costs,
        busy: vec![0.0; places],
        iterations: match queue.is_scheduled(scheduling::ITERATIVE) {
            true => f64::INFINITY,
            false => (plan(state).epochs + 1) as f64,
        },
    };
    match fit(&situation, SEARCH) {
        Some(fit) => {
            report::predicted(state, fit.predicted.first);
            fit.map[0]
        }
        None => state.place,
    }
}

/// The places of queues that are mapped once, by the devices' rates.
pub fn static_place(queue: &Ref<Queue>, state: &State, able: &[usize]) -> usize {
    let context = &queue.context;
    let queues = context.queues();
    let describe = |other: &Ref<Queue>| {
        let is_static = other.mapping() == Mapping::Static;
        let hint = match () {
            () if other.is_scheduled(scheduling::IO_BOUND) => Hint::Io,
            () if other.is_scheduled(scheduling::MEMORY_BOUND) => Hint::Memory,
            () => Hint::Compute,
        };
        let places = if other == queue {
            able
        } else {
            &other.places[..]
        };
        StaticQueue {
            hint,
            able: (0..context.places.len())
                .map(|place| places.contains(&place))
                .collect(),
            pinned: match is_static {
                true => None,
                false if other == queue => Some(state.place),
                false => Some(other.state_of_another().place),
            },
        }
    };
    let described: Vec<StaticQueue> = queues.iter().map(describe).collect();
    let map = auto_fit::static_map(&described, &device_profile::rates(context));
    let own = queues.iter().position(|other| other == queue);
    own.and_then(|index| map[index]).unwrap_or(state.place)
}

/// What the queue will do in this epoch: what it did in the one before, if it has begun
/// alike.
fn expected(plan: &QueuePlan) -> Epoch {
    let begun = &plan.epoch;
    match begun.kernels.first() {
        Some((first, _)) if !plan.before.has(first) => begun.clone(),
        _ => plan.before.clone(),
    }
}

/// The seconds of an epoch at a place: infinite where a kernel's are unknown, unless the
/// queue is there.
fn seconds(queue: &Queue, epoch: &Epoch, place: usize, present: usize) -> f64 {
    let unknown = match place == present {
        true => 0.0,
        false => f64::INFINITY,
    };
    let device = &queue.context.places[place].profile;
    let kernels = epoch.kernels.iter();
    kernels
        .map(|(record, count)| record.seconds(device).unwrap_or(unknown) * *count as f64)
        .sum()
}

/// The index of a memory object among the data.
fn datum(data: &mut Vec<(usize, QueueDatum)>, handle: usize, places: usize) -> Option<usize> {
    if let Some(index) = data.iter().position(|(other, _)| *other == handle) {
        return Some(index);
    }
    let mem = Ref::<Mem>::of(handle as *mut libc::c_void).ok()?;
    let has = |place: &usize| mem.is_valid(&(0..mem.size), *place);
    let valid = (0..=places).filter(has).fold(Places::NONE, Places::with);
    let bytes = mem.size as u64;
    data.push((
        handle,
        QueueDatum {
            bytes,
            places: valid,
        },
    ));
    Some(data.len() - 1)
}

/// An epoch of a queue.
#[derive(Clone, Default)]
pub struct Epoch {
    /// The kernels that it launches, in the order of their first launches, and how often.
    pub kernels: Vec<(Arc<KernelRecord>, u64)>,
    /// Where each is in that order, by its record's number.
    positions: HashMap<usize, usize, BuildHasherDefault<AddressHasher>>,
    /// The memory objects that it uses.
    pub uses: Vec<EpochUse>,
}

/// How an epoch uses a memory object.
#[derive(Clone, Default)]
pub struct EpochUse {
    /// Its handle: an epoch keeps no object alive.
    pub mem: usize,
    /// Kernels read it, and write it.
    pub read: bool,
    pub written: bool,
    /// The host writes it before the kernels, and reads it after them.
    pub upload: bool,
    pub download: bool,
}

impl Epoch {
    /// Whether no kernel was launched.
    pub fn is_empty(&self) -> bool {
        self.kernels.is_empty()
    }

    pub fn has(&self, record: &KernelRecord) -> bool {
        self.positions.contains_key(&record.number)
    }

    /// Notes a launch.
    pub fn launch(&mut self, record: &Arc<KernelRecord>, command: &Command) {
        let position = self.positions.entry(record.number);
        let position = *position.or_insert_with(|| {
            self.kernels.push((Arc::clone(record), 0));
            self.kernels.len() - 1
        });
        self.kernels[position].1 += 1;
        for used in &command.uses {
            let entry = self.entry(&used.mem);
            entry.read |= used.reads;
            entry.written |= used.writes;
        }
    }

    /// Notes a command of the host's.
    pub fn transfer(&mut self, command: &Command) {
        for used in &command.uses {
            let entry = self.entry(&used.mem);
            entry.upload |= used.writes;
            entry.download |= used.reads;
        }
    }

    fn entry(&mut self, mem: &Ref<Mem>) -> &mut EpochUse {
        let root = mem.parent.as_ref().map_or(mem, |(parent, _)| parent);
        let handle = root.handle() as usize;
        let index = self.uses.iter().position(|used| used.mem == handle);
        let index = index.unwrap_or_else(|| {
            self.uses.push(EpochUse {
                mem: handle,
                ..EpochUse::default()
            });
            self.uses.len() - 1
        });
        &mut self.uses[index]
    }
}

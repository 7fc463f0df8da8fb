//! The first phase of a co-run: memory, queues, and what a balancer has to know
//! of them.

use std::ops::Range;
use std::time::{Duration, Instant};

use super::context::{Context, DeviceState, slowest_direct_way};
use super::form::{self, Form, Space};
use super::jobs::Jobs;
use super::layout::{Layout, length};
use super::memory;
use super::run::RunState;
use super::{Control, CorunError, Options, Tracing};
use crate::Outcome;
use crate::balance::{Balancer, DeviceView, Setup};
use crate::machine::Device;
use crate::runtime::{DeviceId, Runtime};
use crate::scope::RuntimeScope;
use crate::time::Nanos;
use crate::workload::{Data, Divisible};

/// Where bytes do not tell times, the work is cut into this many chunks at most.
const MOST_CHUNKS: u64 = 128;

/// A workload opened on the devices of a runtime.
pub struct Corun<'r, 'w> {
    pub(super) context: Context<'r, 'w>,
    pub(super) form: Box<dyn Form + 'w>,
    pub(super) options: Options,
    setup: Setup,
    /// When it was opened, in real time and on the runtime's clock.
    pub(super) opened: (Instant, Nanos),
}

impl<'r, 'w> Corun<'r, 'w> {
    /// Opens a workload on all devices of a runtime: allocates its memory in the
    /// host and on the devices.
    ///
    /// # Errors
    /// When nothing can run, or memory does not fit.
    pub fn open(
        runtime: &'r mut dyn Runtime,
        workload: &'w dyn Divisible,
        options: &Options,
    ) -> Result<Self, CorunError> {
        Self::open_part(runtime, workload, 0..workload.units(), (options, &[]))
    }

    /// Opens these units of a workload, at least one, on all devices but those that were
    /// lost. Other nodes compute the others.
    pub(super) fn open_part(
        runtime: &'r mut dyn Runtime,
        workload: &'w dyn Divisible,
        units: Range<u64>,
        (options, lost): (&Options, &[bool]),
    ) -> Result<Self, CorunError> {
        if options.supersteps.steps() == 0 {
            return Err(CorunError::NoSteps);
        }
        let mut runtime = RuntimeScope::on(runtime);
        let opened = (Instant::now(), runtime.now());
        let devices = runtime.devices().to_vec();
        if devices.is_empty() {
            return Err(CorunError::NoDevice);
        }
        if let Some(single) = devices.iter().find(|d| workload.fp64() && !d.fp64) {
            return Err(CorunError::NoDouble {
                device: single.name.clone(),
                workload: workload.name(),
            });
        }
        let (form, spaces) = form::open(&mut runtime, workload, &units, (options, lost))?;
        let views = devices.iter().zip(&spaces).enumerate();
        let views = views.map(|(id, (device, space))| DeviceView {
            latency: runtime.costs(DeviceId(id)).latency,
            ..view(device, space, (workload, &units), &*form)
        });
        let holds = |device: &usize| spaces[*device].capacity.is_some_and(|units| units > 0);
        let holding: Vec<usize> = (0..spaces.len()).filter(holds).collect();
        let direct = slowest_direct_way(&runtime, &holding)
            .filter(|_| holding.len() > 1 && form.hands_over())
            .map(|bandwidth| bandwidth / workload.unit_bytes() as f64);
        let setup = Setup {
            units: length(&units),
            steps: options.supersteps.count(),
            devices: views.collect(),
            direct,
            moves_directly: form.moves_directly(),
            published: match spaces.len() > 1 && !holding.is_empty() {
                true => published(workload, &units, &*form),
                false => 0.0,
            },
            runs_ahead: form.runs_ahead(false),
            bus: (runtime.bus_bandwidth()).map(|bytes| bytes / workload.unit_bytes() as f64),
            memory: (runtime.host_bandwidth())
                .map(|bytes| bytes / (workload.cost(&units).bytes / length(&units) as f64)),
            // Rows of a matrix are not alike, and devices are not alike in what they lose by that.
            even: !matches!(workload.data(), Data::Product(_)),
        };
        let states = spaces.into_iter().enumerate();
        let states = states.map(|(id, space)| DeviceState::open(&mut runtime, DeviceId(id), space));
        let states: Vec<_> = states.collect::<Result<_, _>>()?;
        let context = Context {
            workload,
            codelet: workload.codelet(),
            layout: Layout::unplanned(&units, states.len()),
            units,
            devices: states,
            jobs: Jobs::default(),
            losses: Vec::new(),
            spoiled: false,
            each_command: options.trace == Tracing::Commands,
            outside: Duration::ZERO,
            submitting: 0,
            runtime,
        };
        Ok(Self {
            context,
            form,
            options: *options,
            setup,
            opened,
        })
    }

    /// What a balancer for this run has to know.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Computes all steps, divided as the balancer says.
    ///
    /// # Errors
    /// When a kernel does not compile, all devices are lost, or the balancer's
    /// answers make no sense.
    pub fn run(
        self,
        balancer: Box<dyn Balancer>,
        control: &mut Control,
    ) -> Result<Outcome, CorunError> {
        RunState::new(self, balancer).run(control)
    }
}

/// What the first tenth of the units reads in each step of the results of the others, in
/// units.
fn published(workload: &dyn Divisible, units: &Range<u64>, form: &dyn Form) -> f64 {
    let middle = units.start + length(units).div_ceil(10);
    let parts = form.parts(&(middle..units.end), &(units.start..middle), false);
    let bytes: u64 = parts.iter().map(length).sum();
    match form.bytes_tell_time() {
        true => bytes as f64 / workload.unit_bytes() as f64,
        false => 0.0,
    }
}

/// A device as balancers see it.
fn view(
    device: &Device,
    space: &Space,
    (workload, units): (&dyn Divisible, &Range<u64>),
    form: &dyn Form,
) -> DeviceView {
    let (units, unit_bytes) = (length(units), workload.unit_bytes());
    let min_chunk = match space.capacity {
        _ if !form.bytes_tell_time() => (units / MOST_CHUNKS).max(1),
        None => memory::least_host_chunk(unit_bytes, device.compute_units),
        Some(_) => memory::least_streamed_chunk(unit_bytes, space.longest_chunk.unwrap_or(units)),
    };
    let longest = space.longest_chunk.unwrap_or(units).clamp(1, units);
    DeviceView {
        kind: device.kind,
        compute_units: device.compute_units,
        capacity: space.capacity,
        slots: space.slots,
        stream_limit: (device.link_bandwidth)
            .filter(|_| form.bytes_tell_time())
            .map(|bandwidth| bandwidth / unit_bytes as f64),
        latency: 0.0,
        min_chunk: min_chunk.max(space.least_chunk.min(longest)),
    }
}

//! How a run begins, and begins again: memory, first version, warm-up, the
//! first plan.

use std::time::{Duration, Instant};

use super::claims::Claims;
use super::drive::{Drive, Kept};
use super::kernel::Whole;
use super::layout::Layout;
use super::ledger::Ledger;
use super::place::{LEAST_STREAM, Place, prepare, renew};
use super::probe::Probes;
use super::product::Product;
use super::step::Piece;
use super::{CorunError, Options, WARM, grids};
use crate::balance::{Balancer, DeviceView, Setup};
use crate::engine::Outcome;
use crate::runtime::{DeviceId, HostMemoryId, Runtime};
use crate::time::Nanos;
use crate::workload::{Data, Divisible};

/// Bytes a core below which a chunk on a host-memory device is mostly
/// overhead: about 20 us of its bandwidth.
const MIN_CHUNK_BYTES: u64 = 256 << 10;

/// A user's kernel is cut into this many chunks at most.
const KERNEL_CHUNKS: u64 = 128;

/// Most units of a warm-up launch.
const WARM_UNITS: u64 = 256;

/// A workload opened on the devices of a runtime.
pub struct Corun<'a> {
    runtime: Claims<'a>,
    workload: &'a dyn Divisible,
    options: Options,
    pub(super) setup: Setup,
    /// The present version and the next.
    grids: [HostMemoryId; 2],
    kept: Kept<'a>,
    places: Vec<Place>,
    opened: Instant,
    opened_at: Nanos,
}

/// See [`Corun::open`].
pub fn open<'a>(
    runtime: &'a mut dyn Runtime,
    workload: &'a dyn Divisible,
    options: &Options,
) -> Result<Corun<'a>, CorunError> {
    let mut runtime = Claims::on(runtime);
    let (opened, opened_at) = (Instant::now(), runtime.now());
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
    let (grids, kept) = match workload.data() {
        Data::Grid(grid) => {
            let bytes = workload.units() * workload.unit_bytes();
            let grids = [runtime.alloc_host(bytes)?, runtime.alloc_host(bytes)?];
            (grids, Kept::Grid(grid))
        }
        Data::Product(spmv) => {
            let (vectors, product) = Product::open(&mut runtime, spmv)?;
            (vectors, Kept::Product(Box::new(product)))
        }
        Data::Kernel(user) => {
            let (memories, whole) = Whole::open(&mut runtime, user)?;
            (memories, Kept::Kernel(Box::new(whole)))
        }
    };
    let mut places = Vec::new();
    let mut views = Vec::new();
    for (id, device) in devices.iter().enumerate() {
        let (place, capacity) = prepare(&mut runtime, DeviceId(id), device, workload, options)?;
        let min_chunk = match &place {
            // Bytes say little of what a kernel computes.
            _ if matches!(kept, Kept::Kernel(_)) => (workload.units() / KERNEL_CHUNKS).max(1),
            Place::Host { .. } => {
                let cores = u64::from(device.compute_units.max(1));
                (cores * MIN_CHUNK_BYTES / workload.unit_bytes()).max(1)
            }
            own => (LEAST_STREAM / workload.unit_bytes()).clamp(1, own.longest_chunk()),
        };
        views.push(DeviceView {
            kind: device.kind,
            compute_units: device.compute_units,
            capacity,
            slots: place.slots(),
            // A kernel's buffers are mostly there; what moves is not known.
            stream_limit: (device.link_bandwidth)
                .filter(|_| !matches!(kept, Kept::Kernel(_)))
                .map(|b| b / workload.unit_bytes() as f64),
            min_chunk,
        });
        places.push(place);
    }
    let setup = Setup {
        units: workload.units(),
        steps: options.steps,
        devices: views,
    };
    Ok(Corun {
        runtime,
        workload,
        options: *options,
        setup,
        grids,
        kept,
        places,
        opened,
        opened_at,
    })
}

impl<'a> Drive<'a> {
    /// A run's state before the first step, with the first version in place.
    pub fn new(corun: Corun<'a>, balancer: Box<dyn Balancer>) -> Result<Self, CorunError> {
        let devices = corun.runtime.devices();
        let (count, units) = (devices.len(), corun.setup.units);
        let names: Vec<String> = devices.iter().map(|d| d.name.clone()).collect();
        let mut outcome = Outcome {
            devices: names.clone(),
            ..Outcome::default()
        };
        outcome.trace.devices = names;
        let views = corun.setup.devices.iter();
        let mut drive = Self {
            kept: corun.kept,
            codelet: corun.workload.codelet(),
            options: corun.options,
            balancer,
            capacity: views.map(|v| v.capacity.unwrap_or(0)).collect(),
            alive: vec![true; count],
            layout: Layout::unplanned(units, count),
            planned: None,
            entrusted: vec![false; count],
            barrier: corun.opened_at,
            unread: None,
            clock: Instant::now(),
            runtime: corun.runtime,
            workload: corun.workload,
            places: corun.places,
            grids: corun.grids,
            present: 0,
            ledger: Ledger::default(),
            heard: vec![0; count],
            probes: Probes::none(count),
            spoiled: false,
            outcome,
            outside: Duration::ZERO,
            enqueueing: 0,
            opened: corun.opened,
            opened_at: corun.opened_at,
        };
        drive.fill()?;
        Ok(drive)
    }

    /// Fills the first version, and what the units are computed with.
    fn fill(&mut self) -> Result<(), CorunError> {
        match &self.kept {
            Kept::Grid(grid) => {
                let [first, second] = self.grids;
                Ok(grids::fill(&mut *self.runtime, *grid, first, second)?)
            }
            Kept::Product(_) => self.fill_product(),
            Kept::Kernel(_) => self.fill_kernel(),
        }
    }

    /// Runs each device's kernel once on a few units, into memory that the
    /// first step overwrites: compilation, page tables and clocks belong to
    /// the setup.
    pub fn warm_up(&mut self) -> Result<(), CorunError> {
        for device in 0..self.places.len() {
            let lanes = self.places[device].lanes();
            for lane in 0..lanes {
                let units = 0..self.places[device]
                    .longest_chunk()
                    .min(self.workload.units())
                    .min(WARM_UNITS);
                let piece = Piece {
                    device,
                    lane,
                    job: None,
                    step: 0,
                    label: WARM,
                };
                self.chunk_on(piece, units, &[])?;
            }
        }
        self.drain()?;
        self.ledger.open();
        Ok(())
    }

    /// Moves units to where the first plan wants them, before the first step.
    pub fn begin(&mut self) -> Result<(), CorunError> {
        self.plan(0)?;
        self.relocate(0)?;
        self.drain()?;
        self.keep_spans();
        self.ledger.open();
        Ok(())
    }

    /// The first step begins now.
    pub fn start_clock(&mut self) {
        self.barrier = self.runtime.now();
        self.clock = Instant::now();
        self.outside = Duration::ZERO;
        self.enqueueing = 0;
    }

    /// Notes that the setup is over.
    pub fn set_up(&mut self) {
        self.outcome.setup_seconds = if self.runtime.simulated() {
            (self.runtime.now() - self.opened_at) as f64 / 1e9
        } else {
            self.opened.elapsed().as_secs_f64()
        };
    }

    /// After a loss of held units: the first version again, on what is left.
    /// `steps` were done and have to be done again.
    pub fn restart(&mut self, steps: u32) -> Result<(), CorunError> {
        if let Some(loss) = self.outcome.losses.last_mut() {
            loss.repeated = steps;
        }
        self.spoiled = false;
        self.ledger.open();
        self.present = 0;
        for (device, place) in self.places.iter_mut().enumerate() {
            if self.alive[device] {
                renew(&mut self.runtime, DeviceId(device), place)?;
            }
            match place {
                Place::Host { .. } | Place::Images(_) => {}
                Place::Own(own) => own.held.hold(0..0),
                Place::Store(store) => store.hold(0..0),
            }
        }
        // All cores fill.
        self.runtime.end_driving();
        self.fill()?;
        self.runtime.begin_driving();
        self.layout = Layout::unplanned(self.workload.units(), self.places.len());
        self.planned = None;
        self.begin()?;
        self.start_clock();
        Ok(())
    }
}

//! Grids: two versions in host memory, the present one and the next, and on each
//! device with memory of its own a ring of held units ([`ring`]) and buffers to
//! stream units of the pool through. `moves`
//! says what moves between steps, and moves it.
//!
//! Host memory has the units that are computed, and a halo on either side, which other
//! nodes compute where there are units beyond.
//!
//! A unit reads any number of units on either side, the halo; of a superstep, that of all
//! its steps together. At a barrier each ring has its held units. The edges of a held range,
//! as many of its first and last units as a halo has, are where they are read: in the ring of
//! a device to which a direct way leads, and otherwise in host memory, beside the pool's
//! units.
//!
//! A chunk of the pool goes through all steps of a superstep at once (`chunk`): in one launch
//! where the device has a codelet for that, otherwise from one of two buffers to the other.

mod changes;
mod chunk;
mod host;
mod moves;
pub mod ring;

use std::ops::Range;
use std::sync::atomic::AtomicBool;

pub use chunk::scratch_chunk;
pub use ring::{Beside, GridDivision, HeldRing, WINDOW_FRACTION, counted};

use super::{Arrivals, Form, Later, OnDevices, PIECE, Space, When, data, poison, too_small};
use crate::codelet::Value;
use crate::corun::context::{Context, HELD_QUEUES, MAIN, Purpose, READS};
use crate::corun::layout::{Layout, length};
use crate::corun::memory::memory_limit;
use crate::corun::{CorunError, EDGE, GATHER, Options};
use crate::graph::able;
use crate::parallel;
use crate::runtime::{Command, DeviceId, EventId, HostMemoryId, Launch, Memory};
use crate::scope::RuntimeScope;
use crate::verify::Compared;
use crate::workload::{Grid, Ring, Supersteps};
use changes::{Changes, Raises, Reserve};
use host::HostGrids;
use moves::{Copies, edges, halos, is_read_in_host};
use ring::{Window, Windows};

/// Launches of a series. Its first and its last have events, of about 8 us each,
/// and while it is submitted the engine receives no completion: on an H200 with
/// 47 windows of 14 us a step with eight takes 2 to 8 % less than with four, and
/// twelve or sixteen gain no more.
pub const SERIES: usize = 8;
/// Launches before the first streamed chunk's commands: one by itself, which
/// computes the edge that a neighbour waits for, and a series.
pub const LEAD: usize = 1 + SERIES;

/// A chunk of a superstep has at least so many of its halos, if there is a choice: a quarter of
/// what it computes is done twice then.
const LEAST_HALOS: u64 = 4;

/// Units of the shortest chunk of a superstep, if there is a choice.
pub fn least_chunk(beside: &Beside) -> u64 {
    LEAST_HALOS * beside.superstep
}

/// A grid in a run.
pub(super) struct GridForm<'a> {
    grid: &'a dyn Grid,
    supersteps: Supersteps,
    beside: Beside,
    host: HostGrids,
    devices: OnDevices<DeviceGrid>,
    /// By device that computes in host memory: what its chunks pass through in a superstep, a
    /// pair of buffers for each queue; none where one launch does it all.
    scratch: Vec<Vec<StreamBuffers>>,
    /// Of a run that ends with a tolerance.
    changes: Option<Changes<'a>>,
}

/// A device's memory for a grid.
struct DeviceGrid {
    held: HeldRing,
    /// What it has of the present version beside its own units, and others of these; and of
    /// the next version.
    copies: Copies,
    next_copies: Copies,
    /// Windows of a step that are still to be submitted.
    windows: Option<Windows>,
    /// The edges of the next version, each with the launch after which it is there.
    edges: Vec<(Range<u64>, EventId)>,
    /// Copies to other devices of units that it may overwrite in the coming step.
    leaving: Vec<EventId>,
    division: GridDivision,
    /// One for each queue for chunks.
    streams: Vec<StreamBuffers>,
}

/// Buffers that the units of a chunk pass through, from one to the other in each step.
struct StreamBuffers {
    /// Present versions of a chunk and its halo.
    input: Ring,
    /// What the first step makes of them.
    output: Ring,
}

impl<'a> GridForm<'a> {
    /// Allocates the versions in host memory, and the devices' rings and buffers.
    pub fn open(
        runtime: &mut RuntimeScope,
        grid: &'a dyn Grid,
        units: &Range<u64>,
        (options, lost): (&Options, &[bool]),
    ) -> Result<(Self, Vec<Space>), CorunError> {
        let supersteps = options.supersteps;
        let beside = Beside {
            step: grid.halo(),
            superstep: grid.halo() * u64::from(supersteps.size()),
            all: grid.units(),
        };
        let unit_bytes = grid.unit_bytes();
        let [below, above] = halos(units, beside.superstep, grid.units());
        let rows = above.end - below.start;
        let bytes = rows * unit_bytes;
        let host = HostGrids {
            versions: [runtime.alloc_host(bytes)?, runtime.alloc_host(bytes)?],
            present: 0,
            has_all: false,
            first: below.start,
            rows,
            units: grid.units(),
            unit_bytes,
        };
        let units = length(units);
        let checked = grid.changes().zip(options.tolerance);
        let reserve = checked.map_or_else(Reserve::default, |(of, _)| Reserve::of(of));
        let (devices, mut spaces) = OnDevices::open(runtime, lost, |runtime, id, device| {
            let limit = memory_limit(device.memory, options.gpu_memory);
            let of_grid = reserve.left(limit, unit_bytes);
            let (largest, stream) = (device.max_allocation, options.stream);
            let division =
                GridDivision::with_halo(&beside, units, unit_bytes, of_grid, largest, stream)
                    .map_err(|needed| {
                        let units = needed.div_ceil(unit_bytes);
                        too_small(device, limit, reserve.with(units, unit_bytes))
                    })?;
            let opened = DeviceGrid::open(runtime, id, unit_bytes, beside, division)?;
            let space = opened.space();
            Ok((opened, space))
        })?;
        let mut scratch = Vec::new();
        for (device, space) in runtime.devices().to_vec().iter().zip(&mut spaces) {
            if supersteps.size() > 1 {
                space.least_chunk = least_chunk(&beside);
            }
            let is_host = space.capacity.is_none();
            let at_once = grid
                .superstep()
                .is_some_and(|codelet| able(device, &codelet));
            scratch.push(match is_host && supersteps.size() > 1 && !at_once {
                true => chunk::scratch(runtime, (units, unit_bytes), &beside, space)?,
                false => Vec::new(),
            });
        }
        let changes = match checked {
            None => None,
            Some((of, tolerance)) => {
                let mut changes = Changes::new(of, supersteps, tolerance);
                for (id, space) in spaces.iter().enumerate() {
                    let owner = space.capacity.map(|_| DeviceId(id));
                    changes.open(runtime, space.queues(units), owner)?;
                }
                Some(changes)
            }
        };
        let form = Self {
            grid,
            supersteps,
            beside,
            host,
            devices,
            scratch,
            changes,
        };
        Ok((form, spaces))
    }
}

impl DeviceGrid {
    fn open(
        runtime: &mut RuntimeScope,
        id: DeviceId,
        unit_bytes: u64,
        beside: Beside,
        division: GridDivision,
    ) -> Result<Self, CorunError> {
        let mut ring = |slots: u64| -> Result<Ring, CorunError> {
            Ok(Ring {
                memory: Memory::Device(runtime.alloc(id, slots * unit_bytes)?),
                slots,
                unit: 0,
                slot: 0,
            })
        };
        let held = HeldRing::new(ring(division.slots)?, beside);
        let queues = 0..division.queues;
        let streams = queues.map(|_| StreamBuffers::open(division.chunk, &beside, &mut ring));
        Ok(Self {
            held,
            copies: Copies::default(),
            next_copies: Copies::default(),
            windows: None,
            edges: Vec::new(),
            leaving: Vec::new(),
            division,
            streams: streams.collect::<Result<_, _>>()?,
        })
    }

    fn space(&self) -> Space {
        let superstep = self.held.beside().superstep;
        Space {
            capacity: Some(self.division.capacity),
            slots: Some(ring::counted(self.division.slots, superstep)),
            longest_chunk: Some(self.division.chunk),
            least_chunk: 1,
            held_queues: HELD_QUEUES,
            chunk_queues: self.streams.len(),
        }
    }

    /// Holds these units, of which none need be there, from now on.
    fn hold(&mut self, units: Range<u64>) {
        self.held.hold(units);
        self.copies = Copies::default();
        self.next_copies = Copies::default();
        self.windows = None;
        self.edges.clear();
        self.leaving.clear();
    }
}

impl Form for GridForm<'_> {
    fn hands_over(&self) -> bool {
        true
    }

    fn moves_directly(&self) -> bool {
        true
    }

    fn runs_ahead(&self, _several: bool) -> bool {
        true
    }

    fn fill(&mut self, context: &mut Context, later: Option<&Later>) -> Result<(), CorunError> {
        self.host.present = 0;
        self.host.has_all = true;
        if let Some(changes) = &mut self.changes {
            changes.forget();
        }
        for (_, device) in self.devices.iter_mut() {
            device.hold(0..0);
        }
        let (grid, unit_bytes, begin) = (self.grid, self.host.unit_bytes, self.host.first);
        let [first, second] = self.host.versions;
        let units = PIECE.div_ceil(unit_bytes).max(1);
        match (data(&mut *context.runtime, first)?, later) {
            (Some(bytes), Some(later)) => later.write(begin * unit_bytes, bytes),
            (Some(bytes), None) => match grid.given() {
                Some(all) => {
                    let own = &all[(begin * unit_bytes) as usize..];
                    parallel::copy(bytes, &own[..bytes.len()]);
                }
                None => {
                    let write = |i: usize, piece: &mut [u8]| {
                        let start = begin + i as u64 * units;
                        let end = start + piece.len() as u64 / unit_bytes;
                        grid.initial(start..end, piece)
                    };
                    let written = parallel::pieces(bytes, (units * unit_bytes) as usize, write);
                    written.into_iter().collect::<Result<(), _>>()?;
                }
            },
            (None, _) => {}
        }
        Ok(poison(&mut *context.runtime, second)?)
    }

    fn rejoin(&mut self, context: &mut Context, device: usize) -> Result<(), CorunError> {
        let (unit_bytes, beside) = (self.host.unit_bytes, self.beside);
        let (runtime, id) = (&mut context.runtime, DeviceId(device));
        self.devices.renew(device, |own| {
            DeviceGrid::open(runtime, id, unit_bytes, beside, own.division)
        })?;
        match &mut self.changes {
            Some(changes) => changes.renew(runtime, id),
            None => Ok(()),
        }
    }

    fn relocate(
        &mut self,
        context: &mut Context,
        before: &Layout,
        step: u32,
    ) -> Result<Arrivals, CorunError> {
        self.exchange(context, before, step)
    }

    /// The first launch of a superstep's last step goes by itself where others wait for the
    /// edge that it computes; the device has something to do while more follow in series.
    fn launch(
        &mut self,
        context: &mut Context,
        purpose: Purpose,
        publish: bool,
    ) -> Result<bool, CorunError> {
        let (grid, host, halo) = (self.grid, self.host, self.beside.superstep);
        let steps = self.supersteps.length(purpose.step);
        let own = self.devices.get(purpose.device)?;
        let (units, to) = (own.held.units(), own.held.next(steps));
        let windows = own.windows.get_or_insert_with(|| own.held.windows(steps));
        let mut edges = match publish {
            true => edges(&units, halo, host.units).to_vec(),
            false => Vec::new(),
        };
        edges.retain(|edge| !edge.is_empty());
        let mut launches: Vec<Window> = Vec::new();
        while launches.len() < SERIES
            && let Some(window) = windows.peek()
        {
            let has_edge = !edges.is_empty() && window.is_last;
            let begins = has_edge && window.units.start == units.start;
            if begins && !launches.is_empty() {
                break;
            }
            launches.extend(windows.next());
            if begins {
                break;
            }
        }
        let more = windows.peek().is_some();
        if !more {
            own.windows = None;
        }
        let (Some(first), Some(last)) = (launches.first(), launches.last()) else {
            return Ok(false);
        };
        let launched = match first.is_last == last.is_last {
            true => first.units.start..last.units.end,
            false => units.start..last.units.end,
        };
        // What earlier steps make is no edge of the next version.
        let made = if last.is_last { launched.clone() } else { 0..0 };
        let raises = match &mut self.changes {
            Some(changes) if last.is_last => changes.raised(context, &purpose, !more)?,
            _ => None,
        };
        let launch = |of: &Window| {
            let args = grid.args(of.units.clone(), &of.from, &of.to);
            let raises = raises.as_ref().filter(|_| of.is_last);
            launch(context, grid, (of.units.clone(), args), raises)
        };
        let mut commands: Vec<Command> = launches.iter().map(launch).collect();
        if let Some(raises) = raises {
            commands.splice(0..0, raises.before);
            commands.extend(raises.after);
        }
        let command = match commands.len() {
            1 => commands.remove(0),
            _ => Command::Series(commands),
        };
        // It may write where units lie that others still copy.
        let wait = std::mem::take(&mut own.leaving);
        let Some(event) = context.submit(purpose, command, launched, &wait)? else {
            return Ok(more);
        };
        let reads = Purpose {
            queue: READS,
            label: EDGE,
            job: None,
            ..purpose
        };
        // Windows run in order: with an edge's last unit all of it is computed.
        edges.retain(|edge| made.contains(&(edge.end - 1)));
        for edge in edges {
            let of = (purpose.device, &edge);
            let (layout, here) = (&context.layout, &context.units);
            let is_read = is_read_in_host(of, (layout, here), (halo, host.units), |to| {
                context.is_direct(purpose.device, to)
            });
            own.edges.push((edge.clone(), event));
            if is_read {
                own.next_copies.published.push(edge.clone());
                context.submit_each(reads, host.reads(edge, 1, &to), &[event])?;
            }
        }
        Ok(more)
    }

    fn hand_over(&mut self, context: &mut Context, step: u32) -> Result<(), CorunError> {
        self.send_edges(context, step)
    }

    fn chunk(
        &mut self,
        context: &mut Context,
        purpose: Purpose,
        units: Range<u64>,
        arrivals: &Arrivals,
    ) -> Result<(), CorunError> {
        self.submit_chunk(context, purpose, units, arrivals)
    }

    fn turn(&mut self, _context: &mut Context, step: u32) -> Result<(), CorunError> {
        let steps = self.supersteps.length(step);
        for (_, own) in self.devices.iter_mut() {
            own.held.advance(steps);
            own.copies = std::mem::take(&mut own.next_copies);
            own.edges.clear();
        }
        self.host.present = 1 - self.host.present;
        self.host.has_all = false;
        if let Some(changes) = &mut self.changes {
            changes.end(step);
        }
        Ok(())
    }

    fn parts(&self, owner: &Range<u64>, reader: &Range<u64>, begins: bool) -> Vec<Range<u64>> {
        let [below, above] = halos(reader, self.beside.superstep, self.host.units);
        let read = match begins {
            true => [below.start..above.end, 0..0],
            false => [below, above],
        };
        let each = self.host.unit_bytes;
        let owned = read.into_iter().map(|units| {
            let (start, end) = (units.start.max(owner.start), units.end.min(owner.end));
            start * each..end.max(start) * each
        });
        owned.filter(|bytes| !bytes.is_empty()).collect()
    }

    fn present(&self) -> Option<(HostMemoryId, u64)> {
        Some((self.host.version(0), self.host.first * self.host.unit_bytes))
    }

    fn sums(&self, context: &mut Context, when: When) -> Result<Option<Vec<u8>>, CorunError> {
        match &self.changes {
            Some(changes) if when == When::Step => Ok(changes.own(&mut context.runtime)?),
            _ => Ok(None),
        }
    }

    fn add_up(
        &mut self,
        context: &mut Context,
        when: When,
        others: &[(Range<u64>, Vec<u8>)],
    ) -> Result<(), CorunError> {
        let own = self.sums(context, when)?;
        if let (Some(changes), Some(own)) = (&mut self.changes, &own) {
            let others = others.iter().map(|(_, change)| change);
            changes.add_up(others.chain([own]).map(Vec::as_slice));
        }
        Ok(())
    }

    fn change(&self) -> Option<f64> {
        self.changes.as_ref()?.largest()
    }

    fn gather(&mut self, context: &mut Context, step: u32) -> Result<(), CorunError> {
        let host = self.host;
        for (device, own) in self.devices.iter_mut() {
            if context.devices[device].alive {
                let reads = host.reads(own.held.units(), 0, &own.held.present());
                context.submit_each(Purpose::new(device, MAIN, step, GATHER), reads, &[])?;
            }
        }
        context.drain()
    }

    fn deliver(&mut self, context: &mut Context) -> Result<(), CorunError> {
        if let Some(result) = data(&mut *context.runtime, self.host.version(0))? {
            self.grid.deliver(result);
        }
        Ok(())
    }

    fn verify(
        &mut self,
        context: &mut Context,
        steps: u32,
        _stop: &AtomicBool,
    ) -> Result<Option<Compared>, CorunError> {
        let result = context.runtime.host_bytes(self.host.version(0))?;
        let changes = self.changes.as_ref();
        let ending = changes.and_then(|changes| changes.ending(steps));
        Ok(Some(self.grid.verify(steps, ending, result)))
    }

    fn hold_probe(
        &mut self,
        context: &mut Context,
        purpose: Purpose,
        units: u64,
        write: bool,
    ) -> Result<Range<u64>, CorunError> {
        let host = self.host;
        let own = self.devices.get(purpose.device)?;
        let all = &context.units;
        let units = all.start..all.start + units.min(own.division.capacity);
        own.hold(units.clone());
        if write {
            let writes = host.writes(units.clone(), &own.held.present());
            context.submit_each(purpose, writes, &[])?;
        }
        Ok(units)
    }

    fn end_probes(&mut self) -> bool {
        for (_, own) in self.devices.iter_mut() {
            own.hold(0..0);
        }
        false
    }
}

/// A launch over units with arguments, which raises memory if it is to do so.
fn launch(
    context: &Context,
    grid: &dyn Grid,
    (units, mut args): (Range<u64>, Vec<Value>),
    raises: Option<&Raises>,
) -> Command {
    let Some((raises, changes)) = raises.zip(grid.changes()) else {
        return context.launch(&units, args);
    };
    args.push(raises.value);
    Command::Launch(Launch {
        codelet: changes.of_step(),
        args,
        cost: context.workload.cost(&units),
        units,
    })
}

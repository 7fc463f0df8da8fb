//! Grids: two versions in host memory, the present one and the next, and on each
//! device with memory of its own a ring of held units ([`ring`]) and buffers to
//! stream units of the pool through. [`division`] says how large these are. `moves`
//! says what moves between steps, and `exchange` moves it.
//!
//! Host memory has the units that are computed, and a halo on either side, which other
//! nodes compute where there are units beyond.
//!
//! A unit reads any number of units on either side, the halo. At a barrier each ring has
//! its held units. The edges of a held range, as many of its first and last units as a halo
//! has, are where they are read: in the ring of a device to which a direct way leads, and
//! otherwise in host memory, beside the pool's units.

pub mod division;
mod exchange;
mod moves;
pub mod ring;

use std::ops::Range;
use std::sync::atomic::AtomicBool;

pub use division::{GridDivision, WINDOW_FRACTION};
pub use ring::HeldRing;

use super::{Arrivals, Form, Later, OnDevices, Space, too_small};
use crate::engine::corun::context::{Context, HELD_QUEUES, MAIN, Purpose, READS};
use crate::engine::corun::host_memory::{PIECE, data, poison};
use crate::engine::corun::layout::{Layout, length};
use crate::engine::corun::memory::memory_limit;
use crate::engine::corun::{CorunError, EDGE, GATHER, Options};
use crate::engine::scope::RuntimeScope;
use crate::parallel;
use crate::runtime::{BufferId, Command, DeviceId, EventId, HostMemoryId, Memory};
use crate::workload::{Grid, Ring};
use moves::{Copies, edges, halos, is_read_in_host};
use ring::Windows;

/// Launches of a series. Its first and its last have events, of about 8 us each,
/// and while it is submitted the engine receives no completion: on an H200 with
/// 47 windows of 14 us a step with eight takes 2 to 8 % less than with four, and
/// twelve or sixteen gain no more.
pub const SERIES: usize = 8;
/// Launches before the first streamed chunk's commands: one by itself, which
/// computes the edge that a neighbour waits for, and a series.
pub const LEAD: usize = 1 + SERIES;

/// A grid in a run.
pub(super) struct GridForm<'a> {
    grid: &'a dyn Grid,
    host: HostGrids,
    devices: OnDevices<DeviceGrid>,
}

/// The two versions in host memory.
#[derive(Clone, Copy)]
struct HostGrids {
    versions: [HostMemoryId; 2],
    /// Which of them is the present one.
    present: usize,
    /// Whether that has all units.
    has_all: bool,
    /// The first unit that they have, and how many they have.
    first: u64,
    rows: u64,
    /// Units of the whole grid.
    units: u64,
    unit_bytes: u64,
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

/// Buffers that the units of a chunk pass through.
struct StreamBuffers {
    /// Present versions of a chunk and its halo.
    input: Ring,
    /// Next versions of a chunk.
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
        let (unit_bytes, halo) = (grid.unit_bytes(), grid.halo());
        let [below, above] = halos(units, halo, grid.units());
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
        let (devices, spaces) = OnDevices::open(runtime, lost, |runtime, id, device| {
            let limit = memory_limit(device.memory, options.gpu_memory);
            let (largest, stream) = (device.max_allocation, options.stream);
            let division = GridDivision::with_halo(halo, units, unit_bytes, limit, largest, stream)
                .map_err(|needed| too_small(device, limit, needed))?;
            let opened = DeviceGrid::open(runtime, id, unit_bytes, halo, division)?;
            let space = opened.space(halo);
            Ok((opened, space))
        })?;
        let form = Self {
            grid,
            host,
            devices,
        };
        Ok((form, spaces))
    }
}

impl DeviceGrid {
    fn open(
        runtime: &mut RuntimeScope,
        id: DeviceId,
        unit_bytes: u64,
        halo: u64,
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
        let held = HeldRing::new(ring(division.slots)?, halo);
        let mut streams = Vec::new();
        for _ in 0..division.queues {
            streams.push(StreamBuffers {
                input: ring(division.chunk + 2 * halo)?,
                output: ring(division.chunk)?,
            });
        }
        Ok(Self {
            held,
            copies: Copies::default(),
            next_copies: Copies::default(),
            windows: None,
            edges: Vec::new(),
            leaving: Vec::new(),
            division,
            streams,
        })
    }

    fn space(&self, halo: u64) -> Space {
        Space {
            capacity: Some(self.division.capacity),
            slots: Some(ring::counted(self.division.slots, halo)),
            longest_chunk: Some(self.division.chunk),
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

impl HostGrids {
    /// The present version (0) or the next one (1), as a ring.
    fn ring(&self, ahead: usize) -> Ring {
        Ring {
            memory: Memory::Host(self.version(ahead)),
            slots: self.rows,
            unit: self.first,
            slot: 0,
        }
    }

    fn version(&self, ahead: usize) -> HostMemoryId {
        self.versions[(self.present + ahead) % 2]
    }

    /// Writes of `units` of the present version into a device's ring.
    fn writes(&self, units: Range<u64>, ring: &Ring) -> Vec<(Range<u64>, Command)> {
        let host = self.version(0);
        self.transfers(units, ring, |bytes, buffer, offset| {
            Command::write(host, bytes, buffer, offset)
        })
    }

    /// Reads of `units` from a device's ring into the version `ahead`.
    fn reads(&self, units: Range<u64>, ahead: usize, ring: &Ring) -> Vec<(Range<u64>, Command)> {
        let host = self.version(ahead);
        self.transfers(units, ring, |bytes, buffer, offset| {
            Command::read(buffer, offset, host, bytes)
        })
    }

    fn transfers(
        &self,
        units: Range<u64>,
        ring: &Ring,
        command: impl Fn(Range<u64>, BufferId, u64) -> Command,
    ) -> Vec<(Range<u64>, Command)> {
        let Memory::Device(buffer) = ring.memory else {
            return Vec::new();
        };
        let (each, first) = (self.unit_bytes, self.first);
        let transfer = |(run, slot): (Range<u64>, u64)| {
            let bytes = (run.start - first) * each..(run.end - first) * each;
            let command = command(bytes, buffer, slot * each);
            (run, command)
        };
        ring.runs(units).map(transfer).collect()
    }
}

impl Form for GridForm<'_> {
    fn runs_ahead(&self, _several: bool) -> bool {
        true
    }

    fn fill(&mut self, context: &mut Context, later: Option<&Later>) -> Result<(), CorunError> {
        self.host.present = 0;
        self.host.has_all = true;
        for (_, device) in self.devices.iter_mut() {
            device.hold(0..0);
        }
        let (grid, unit_bytes, begin) = (self.grid, self.host.unit_bytes, self.host.first);
        let [first, second] = self.host.versions;
        let units = PIECE.div_ceil(unit_bytes).max(1);
        match (data(&mut *context.runtime, first)?, later) {
            (Some(bytes), Some(later)) => later.write(begin * unit_bytes, bytes),
            (Some(bytes), None) => {
                let write = |i: usize, piece: &mut [u8]| {
                    let start = begin + i as u64 * units;
                    let end = start + piece.len() as u64 / unit_bytes;
                    grid.initial(start..end, piece)
                };
                let written = parallel::pieces(bytes, (units * unit_bytes) as usize, write);
                written.into_iter().collect::<Result<(), _>>()?;
            }
            (None, _) => {}
        }
        Ok(poison(&mut *context.runtime, second)?)
    }

    fn rejoin(&mut self, context: &mut Context, device: usize) -> Result<(), CorunError> {
        let (unit_bytes, halo) = (self.host.unit_bytes, self.grid.halo());
        let (runtime, id) = (&mut context.runtime, DeviceId(device));
        self.devices.renew(device, |own| {
            DeviceGrid::open(runtime, id, unit_bytes, halo, own.division)
        })?;
        Ok(())
    }

    fn relocate(
        &mut self,
        context: &mut Context,
        before: &Layout,
        step: u32,
    ) -> Result<Arrivals, CorunError> {
        self.exchange(context, before, step)
    }

    /// The first launch goes by itself where others wait for the edge that it
    /// computes; the device has something to do while more follow in series.
    fn launch(
        &mut self,
        context: &mut Context,
        purpose: Purpose,
        publish: bool,
    ) -> Result<bool, CorunError> {
        let (grid, host, halo) = (self.grid, self.host, self.grid.halo());
        let own = self.devices.get(purpose.device)?;
        let (units, from, to) = (own.held.units(), own.held.present(), own.held.next());
        let windows = own.windows.get_or_insert_with(|| own.held.windows());
        let mut edges = match publish {
            true => edges(&units, halo, host.units).to_vec(),
            false => Vec::new(),
        };
        edges.retain(|edge| !edge.is_empty());
        let most = match !edges.is_empty() && windows.left() == units {
            true => 1,
            false => SERIES,
        };
        let launched = windows.left().start;
        let mut launches: Vec<Command> = (windows.by_ref().take(most))
            .map(|units| context.launch(&units, grid.args(units.clone(), &from, &to)))
            .collect();
        let left = windows.left();
        if left.is_empty() {
            own.windows = None;
        }
        let launched = launched..left.start;
        let command = match launches.len() {
            0 => return Ok(false),
            1 => launches.remove(0),
            _ => Command::Series(launches),
        };
        // It may write where units lie that others still copy.
        let wait = std::mem::take(&mut own.leaving);
        let Some(event) = context.submit(purpose, command, launched.clone(), &wait)? else {
            return Ok(!left.is_empty());
        };
        let reads = Purpose {
            queue: READS,
            label: EDGE,
            job: None,
            ..purpose
        };
        // Windows run in order: with an edge's last unit all of it is computed.
        edges.retain(|edge| launched.contains(&(edge.end - 1)));
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
        Ok(!left.is_empty())
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
        let (grid, host) = (self.grid, self.host);
        let [below, above] = halos(&units, grid.halo(), host.units);
        let needed = below.start..above.end;
        let wait: Vec<EventId> = arrivals.of(&needed);
        let Some(own) = self.devices.find(purpose.device) else {
            let args = grid.args(units.clone(), &host.ring(0), &host.ring(1));
            context.submit_launch(purpose, units, args, &wait)?;
            return Ok(());
        };
        let stream = &own.streams[purpose.queue - HELD_QUEUES];
        let input = Ring {
            unit: needed.start,
            ..stream.input
        };
        let output = Ring {
            unit: units.start,
            ..stream.output
        };
        let args = grid.args(units.clone(), &input, &output);
        let single = |(_, command)| command;
        let mut commands: Vec<Command> = host
            .writes(needed, &input)
            .into_iter()
            .map(single)
            .collect();
        commands.push(context.launch(&units, args));
        commands.extend(
            host.reads(units.clone(), 1, &output)
                .into_iter()
                .map(single),
        );
        context.submit_together(purpose, commands, &units, &wait)?;
        Ok(())
    }

    fn turn(&mut self, _context: &mut Context, _step: u32) -> Result<(), CorunError> {
        for (_, own) in self.devices.iter_mut() {
            own.held.advance();
            own.copies = std::mem::take(&mut own.next_copies);
            own.edges.clear();
        }
        self.host.present = 1 - self.host.present;
        self.host.has_all = false;
        Ok(())
    }

    fn parts(&self, owner: &Range<u64>, reader: &Range<u64>, begins: bool) -> Vec<Range<u64>> {
        let [below, above] = halos(reader, self.grid.halo(), self.host.units);
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
    ) -> Result<Option<(f64, bool)>, CorunError> {
        let result = context.runtime.host_bytes(self.host.version(0))?;
        Ok(Some(self.grid.verify(steps, result)))
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

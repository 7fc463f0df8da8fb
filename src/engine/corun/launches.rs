//! Launches on held units. Enqueueing the many windows of a nearly full ring
//! takes a good part of a step, and the engine must look after the other devices
//! meanwhile: so they are enqueued a series at a time. Of a series one
//! completion tells: a driver is spared most of its events (8 us a launch on
//! NVIDIA's OpenCL, stamps included), and the engine most of its books.

use std::ops::Range;
use std::sync::Arc;

use super::drive::{Drive, For};
use super::held::{Held, Windows};
use super::{CorunError, EDGE, HELD};
use crate::runtime::{Command, EventId, Launch};
use crate::workload::{Grid, Ring};

/// Launches of a series. Its first and its last have events, of about 8 us each,
/// and while it is enqueued the engine hears nothing: on an H200 with 47 windows
/// of 14 us a step with eight takes 2 to 8 % less than with four, and twelve or
/// sixteen gain no more.
pub const SERIES: usize = 8;
/// Launches before the first streamed chunk's commands: one by itself, which
/// computes the edge that a neighbour waits for, and a series.
pub const LEAD: usize = 1 + SERIES;

/// Windows of a ring that are still to be enqueued.
pub struct Series<'a> {
    grid: &'a dyn Grid,
    whose: For,
    /// Where the present versions lie, and where the next ones go.
    from: Ring,
    to: Ring,
    windows: Windows,
}

impl<'a> Series<'a> {
    /// The windows of a step on what is held.
    pub fn of(grid: &'a dyn Grid, whose: For, held: &Held) -> Self {
        Self {
            grid,
            whose,
            from: held.present(),
            to: held.next(),
            windows: held.windows(),
        }
    }
}

/// Launches that were enqueued.
pub struct Launched {
    pub units: Range<u64>,
    /// When all have ended; `None` if their device turns out to be lost.
    pub event: Option<EventId>,
}

/// A device's launches in a step that are still to be enqueued.
pub struct Launches<'a> {
    series: Series<'a>,
    edges: For,
    units: Range<u64>,
}

impl<'a> Drive<'a> {
    /// Enqueues the next launches, so many at most; `None` if none are left.
    pub(super) fn launch_series(
        &mut self,
        series: &mut Series<'a>,
        most: usize,
    ) -> Result<Option<Launched>, CorunError> {
        let Series { grid, from, to, .. } = *series;
        let mut launches: Vec<Launch> = (series.windows.by_ref().take(most))
            .map(|units| Launch {
                codelet: Arc::clone(&self.codelet),
                args: grid.args(units.clone(), &from, &to),
                cost: self.workload.cost(&units),
                units,
            })
            .collect();
        let (Some(first), Some(last)) = (launches.first(), launches.last()) else {
            return Ok(None);
        };
        let units = first.units.start..last.units.end;
        let command = match launches.len() {
            1 => Command::Launch(launches.remove(0)),
            _ => Command::Series(launches.into_iter().map(Command::Launch).collect()),
        };
        let event = self.submit(series.whose, command, units.clone(), &[])?;
        Ok(Some(Launched { units, event }))
    }

    /// Enqueues all launches, as commands of a job.
    pub(super) fn launch_all(
        &mut self,
        mut series: Series<'a>,
        job: usize,
    ) -> Result<(), CorunError> {
        series.whose.job = Some(job);
        while self.launch_series(&mut series, SERIES)?.is_some() {}
        Ok(())
    }

    /// What a device holds, as launches to enqueue; `None` if it holds nothing.
    pub(super) fn held_launches(&mut self, device: usize, step: u32) -> Option<Launches<'a>> {
        let grid = self.as_grid()?;
        let now = self.runtime.now();
        let units = self.layout.held[device].clone();
        let (own, whose) = self.own(device, step, HELD).filter(|_| !units.is_empty())?;
        let mut series = Series::of(grid, whose, &own.held);
        let edges = For {
            lane: own.edges,
            label: EDGE,
            ..whose
        };
        let job = self.ledger.job(device, None, units.clone(), now);
        self.ledger.keep_open(job);
        series.whose.job = Some(job);
        Some(Launches {
            series,
            edges,
            units,
        })
    }

    /// Enqueues the next launches, and the reads of edges that neighbours need.
    /// `Ok(None)` while there are more; at the end the job, if every launch
    /// has already completed.
    pub(super) fn launch_next(
        &mut self,
        launches: &mut Launches<'a>,
    ) -> Result<Option<Enqueued>, CorunError> {
        let Launches {
            ref mut series,
            edges,
            ref units,
        } = *launches;
        // The first alone: the device has something to do while more follow,
        // and a neighbour waits for the edge that it computes.
        let most = match series.windows.left() == *units {
            true => 1,
            false => SERIES,
        };
        let Some(launched) = self.launch_series(series, most)? else {
            let over = series.whose.job.filter(|job| self.ledger.close(*job));
            return Ok(Some(Enqueued { over }));
        };
        let (first, end) = (launched.units.start, launched.units.end);
        let low = (first == units.start && first > 0).then_some(first);
        let high = (end == units.end && end < self.workload.units()).then_some(end - 1);
        for unit in [low, high].into_iter().flatten() {
            if let Some(after) = launched.event {
                self.read(edges, unit..unit + 1, 1, &series.to, &[after])?;
            }
        }
        Ok(None)
    }
}

/// All launches of a device have been enqueued.
pub struct Enqueued {
    /// Their job, if it is over as well.
    pub over: Option<usize>,
}

//! A step's launches on held units, one at a time: enqueueing the many windows
//! of a nearly full ring takes a good part of the step, and between two of them
//! the engine must look after the other devices.

use std::ops::Range;

use super::drive::{Drive, For};
use super::held::Windows;
use super::{CorunError, EDGE, HELD};
use crate::runtime::EventId;
use crate::workload::{Grid, Ring};

/// A device's launches that are still to be enqueued.
pub struct Launches<'a> {
    grid: &'a dyn Grid,
    whose: For,
    edges: For,
    units: Range<u64>,
    from: Ring,
    to: Ring,
    windows: Windows,
    /// The last launch enqueued.
    last: Option<EventId>,
}

impl<'a> Drive<'a> {
    /// What a device holds, as launches to enqueue; `None` if it holds nothing.
    pub(super) fn held_launches(&mut self, device: usize, step: u32) -> Option<Launches<'a>> {
        let grid = self.as_grid()?;
        let now = self.runtime.now();
        let units = self.layout.held[device].clone();
        let (own, mut whose) = self.own(device, step, HELD).filter(|_| !units.is_empty())?;
        let (from, to, edges) = (own.held.present(), own.held.next(), own.edges);
        let windows = own.held.windows();
        let job = self.ledger.job(device, None, units.clone(), now);
        self.ledger.keep_open(job);
        whose.job = Some(job);
        Some(Launches {
            grid,
            edges: For {
                lane: edges,
                job: None,
                label: EDGE,
                ..whose
            },
            whose,
            units,
            from,
            to,
            windows,
            last: None,
        })
    }

    /// Enqueues the next launch, and the reads of edges that neighbours need.
    /// `Ok(None)` while there are more; at the end the job, if every launch
    /// has already completed.
    pub(super) fn launch_next(
        &mut self,
        launches: &mut Launches<'a>,
    ) -> Result<Option<Enqueued>, CorunError> {
        let Launches {
            whose,
            edges,
            from,
            to,
            ..
        } = *launches;
        let Some(window) = launches.windows.next() else {
            let over = whose.job.filter(|job| self.ledger.close(*job));
            return Ok(Some(Enqueued { over }));
        };
        let (first, end) = (window.start, window.end);
        let args = launches.grid.args(window.clone(), &from, &to);
        launches.last = self.launch(whose, window, args, &[])?;
        let units = &launches.units;
        let low = (first == units.start && first > 0).then_some(first);
        let high = (end == units.end && end < self.workload.units()).then_some(end - 1);
        for unit in [low, high].into_iter().flatten() {
            if let Some(after) = launches.last {
                self.read(edges, unit..unit + 1, 1, &to, &[after])?;
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

//! A run between two turns: what it knows, without the runtime and the policy.

use std::sync::Arc;

use super::open::TimedCommand;
use super::outcome::{DeviceUse, Placement};
use super::run::GraphRun;
use super::state::RunState;
use super::timeline::{Submission, Timeline};
use super::window::Window;
use super::{Options, PreparedGraph};
use crate::in_flight::InFlight;
use crate::policy::Policy;
use crate::runtime::{EventId, QueueId, Runtime, RuntimeError};
use crate::time::Nanos;
use pdawl_core::graph::DatumId;

/// What a run knows. See [`GraphRun`].
#[derive(Default)]
pub(super) struct Suspended {
    pub reported: Vec<Vec<bool>>,
    pub state: RunState,
    pub in_flight: InFlight<Submission>,
    /// Components that became ready while it was suspended.
    pub ready: Vec<usize>,
    queues: Vec<Vec<QueueId>>,
    running: Vec<usize>,
    windows: Vec<Window>,
    windowed: bool,
    next_queue: Vec<usize>,
    timeline: Timeline,
    uses: Vec<DeviceUse>,
    fetching: Vec<(DatumId, EventId)>,
    pinned_pieces: Vec<(usize, DatumId, usize)>,
    failing: Vec<(usize, String)>,
    is_joined: bool,
    error: Option<RuntimeError>,
    placements: Vec<Placement>,
    commands: Vec<TimedCommand>,
    began: Nanos,
    level: Option<usize>,
}

impl<'a> GraphRun<'a> {
    /// Stops to run, until it is resumed.
    pub fn suspend(self) -> Suspended {
        Suspended {
            reported: self.reported,
            state: self.state,
            in_flight: self.in_flight,
            ready: self.ready,
            queues: self.queues,
            running: self.running,
            windows: self.windows,
            windowed: self.windowed,
            next_queue: self.next_queue,
            timeline: self.timeline,
            uses: self.uses,
            fetching: self.fetching,
            pinned_pieces: self.pinned_pieces,
            failing: self.failing,
            is_joined: self.is_joined,
            error: self.error,
            placements: self.placements,
            commands: self.commands,
            began: self.began,
            level: self.level,
        }
    }

    /// Goes on with a run.
    pub fn resume(
        runtime: &'a mut dyn Runtime,
        (prepared, policy, options): (&'a mut PreparedGraph, &'a mut dyn Policy, &'a Options),
        run: Suspended,
    ) -> Self {
        Self {
            graph: Arc::clone(&prepared.graph),
            components: Arc::clone(&prepared.components),
            asked: Vec::with_capacity(run.windows.len()),
            submit_time: 0,
            wait_time: 0,
            reported: run.reported,
            state: run.state,
            in_flight: run.in_flight,
            ready: run.ready,
            queues: run.queues,
            running: run.running,
            windows: run.windows,
            windowed: run.windowed,
            next_queue: run.next_queue,
            timeline: run.timeline,
            uses: run.uses,
            fetching: run.fetching,
            pinned_pieces: run.pinned_pieces,
            failing: run.failing,
            is_joined: run.is_joined,
            error: run.error,
            placements: run.placements,
            commands: run.commands,
            began: run.began,
            level: run.level,
            runtime,
            prepared,
            policy,
            options,
        }
    }
}

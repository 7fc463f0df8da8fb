//! A workload over a cluster: its spaces, its tasks one after the other, and the comparison
//! of its result.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use super::ClusterError;
use super::node::{Interruption, Node};
use super::subtasks::Subtasks;
use crate::codelet::Codelet;
use crate::graph::GraphRunError;
use crate::parallel;
use crate::runtime::{DeviceId, QueueKind, RuntimeError};
use crate::verify::Checked;
use crate::workload::cluster::{Check, ClusterWorkload, Condition, NewSpace, Turn, demand};
use pdawl_core::cluster::NodeId;
use pdawl_core::cluster::info::speeds;
use pdawl_core::cluster::protocol::{Counts, DeviceIndex, Event, Message};
use pdawl_core::cluster::record::{ClusterOutcome, NodeRecord, TouchRecord};
use pdawl_core::cluster::space::{Block, SpaceBlock, SpaceId, Spaces};
use pdawl_core::cluster::task::chain::{Chaining, Source};
use pdawl_core::cluster::task::{Computed, Task, TaskError, check};
use pdawl_core::cluster::wire::Wire;
use pdawl_core::graph::check_tasks;

/// Tasks whose kernels are compiled before the first one begins.
const LOADED_TASKS: usize = 32;

/// What a run is to do beside computing.
pub struct Control<'a> {
    /// Height and width of blocks, where the placement of inputs has some.
    pub tile: u64,
    /// Compare the result with a reference, of numbers that this seed chooses.
    pub verify: Option<u64>,
    /// At the first node: what takes spaces of the workload, unless its result was found
    /// wrong. The space of the result may be another one when the tasks end early.
    pub outputs: Vec<(usize, &'a mut dyn Sink)>,
    /// Receives the number of tasks that have ended.
    pub progress: &'a mut dyn FnMut(u64),
}

/// Takes a result by rows.
pub trait Sink {
    /// The result begins. What came before is not wanted: the tasks began anew meanwhile.
    ///
    /// # Errors
    /// When it cannot be written.
    fn begin(&mut self) -> io::Result<()>;

    /// The next bytes.
    ///
    /// # Errors
    /// When they cannot be written.
    fn next(&mut self, bytes: &[u8]) -> io::Result<()>;
}

/// Keeps a result in memory.
impl Sink for Vec<u8> {
    fn begin(&mut self) -> io::Result<()> {
        self.clear();
        Ok(())
    }

    fn next(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.try_reserve(bytes.len())?;
        self.extend_from_slice(bytes);
        Ok(())
    }
}

impl Node<'_> {
    /// Runs a workload. The first node gets the outcome. The others wait in [`Wire::finish`]
    /// until it has written what there is to write and does the same.
    ///
    /// # Errors
    /// What the runtime and the wire refuse, the loss of the first node or of all devices,
    /// and Ctrl-C on any node. All nodes end then.
    pub fn run_until_settled(
        mut self,
        workload: &dyn ClusterWorkload,
        mut control: Control,
    ) -> Result<(Option<ClusterOutcome>, Box<dyn Wire>), ClusterError> {
        let outcome = self.run_next(workload, &mut control)?;
        self.settle().map(|wire| (outcome, wire))
    }

    /// Runs a workload, after which others may follow. The first node gets the outcome. Every
    /// workload has a task.
    ///
    /// # Errors
    /// As [`Self::run_until_settled`]. The node cannot run anything any more.
    pub fn run_next(
        &mut self,
        workload: &dyn ClusterWorkload,
        control: &mut Control,
    ) -> Result<Option<ClusterOutcome>, ClusterError> {
        self.earlier = self.machine.counts();
        let ran = self.until_done(workload, control);
        ran.map_err(|error| self.explained(error))
    }

    /// Tells the others of an error, and adds what happened to this node's devices.
    fn explained(&mut self, error: ClusterError) -> ClusterError {
        match self.fail(error) {
            ClusterError::Stopped(why) if !self.record.notes.is_empty() => {
                ClusterError::Stopped(format!("{why} ({})", self.record.notes.join("; ")))
            }
            error => error,
        }
    }

    fn until_done(
        &mut self,
        workload: &dyn ClusterWorkload,
        control: &mut Control,
    ) -> Result<Option<ClusterOutcome>, ClusterError> {
        let mut restarts = 0;
        loop {
            match self.attempt(workload, control) {
                Ok(outcome) => {
                    return Ok(outcome.map(|outcome| ClusterOutcome {
                        restarts,
                        ..outcome
                    }));
                }
                Err(Interruption::Error(error)) => return Err(error),
                Err(Interruption::Restart) => {
                    restarts += 1;
                    self.earlier = Counts::default();
                }
            }
        }
    }

    fn attempt(
        &mut self,
        workload: &dyn ClusterWorkload,
        control: &mut Control,
    ) -> Result<Option<ClusterOutcome>, Interruption> {
        self.clear()?;
        // All nodes decide by the attempt's number: one may learn that tasks begin anew before it
        // has begun them.
        if self.machine.restarts() > self.settled {
            self.part = self.wire.size();
        }
        self.machine.take_part(self.part);
        check_tasks(demand::largest_task(workload)).map_err(GraphRunError::from)?;
        let mut ids = Vec::new();
        for space in workload.spaces() {
            ids.push(self.add_space(&space, control.tile)?);
        }
        self.load_kernels(workload, &ids)?;
        let began = Instant::now();
        let planned = workload;
        let ended = self.run_tasks(planned, &ids, control)?;
        let shortened = planned.shortened(ended);
        let workload = shortened.as_deref().unwrap_or(planned);
        let seconds = match planned.bands() {
            // To open devices and to gather are no part of a co-run's time.
            Some(_) => self.steps_took.as_secs_f64(),
            None => began.elapsed().as_secs_f64(),
        };
        self.record.idle_seconds = (seconds - self.record.busy_seconds).max(0.0);
        let check = workload.check();
        if let (Some(seed), Check::Blocks(check)) = (control.verify, &check) {
            let result = ids[workload.result()];
            let compare = |block: &Block, bytes: &[u8]| check(block, bytes, seed);
            self.record.checked = Some(self.check_own(result, compare)?);
        }
        let record = Box::new(self.final_record());
        let attempt = self.machine.restarts();
        self.send(NodeId::FIRST, Message::Summary { attempt, record })?;
        if self.me() != NodeId::FIRST {
            // The first node may have begun the next workload anew since.
            while !std::mem::take(&mut self.is_finished) {
                self.check_restart()?;
                self.turn()?;
            }
            self.settled = attempt;
            return Ok(None);
        }
        self.until(|node| node.has_all_records())?;
        if let Some(refusal) = workload.refusal()
            && let Some(why) = (refusal.of)(&self.whole(ids[refusal.space])?)
        {
            return Err(ClusterError::Refused(why).into());
        }
        if let (Some(seed), Check::Whole(spaces, check)) = (control.verify, &check) {
            let mut whole = Vec::new();
            for space in spaces {
                let bytes = self.whole(ids[*space])?;
                whole.push(match workload.ordered(*space) {
                    Some(ordered) => ordered(&bytes),
                    None => bytes,
                });
            }
            let whole: Vec<&[u8]> = whole.iter().map(Vec::as_slice).collect();
            let checked = check(&whole, seed);
            if let Some(first) = &mut self.records[0] {
                first.checked = Some(checked);
            }
        }
        let figure = match workload.figure() {
            Some(figure) => Some((figure.of)(&self.whole(ids[figure.space])?)),
            None => None,
        };
        let is_wrong = |record: &NodeRecord| record.checked.is_some_and(|found| found.wrong > 0);
        let is_right = !self.records.iter().flatten().any(is_wrong);
        for (space, output) in control.outputs.iter_mut().filter(|_| is_right) {
            output.begin().map_err(ClusterError::from)?;
            let space = match *space == planned.result() {
                true => workload.result(),
                false => *space,
            };
            let blocks = match workload.computed_blocks(space) {
                Some(found) => (found.blocks)(&self.whole(ids[found.counts])?),
                None => vec![self.spaces.extent(ids[space]).whole()],
            };
            if let Some(ordered) = workload.ordered(space) {
                let bytes = ordered(&self.whole(ids[space])?);
                output.next(&bytes).map_err(ClusterError::from)?;
                continue;
            }
            for block in blocks {
                self.gather(ids[space], &block, |bytes| output.next(bytes))?;
            }
        }
        for rank in 1..self.size() {
            self.send(NodeId(rank), Message::Finish)?;
        }
        self.settled = attempt;
        let outcome = self.outcome(seconds, ended);
        Ok(Some(ClusterOutcome { figure, ..outcome }))
    }

    /// Compiles the kernels of the first tasks for all devices, while nothing waits for a
    /// device: a compiler may take seconds.
    fn load_kernels(
        &mut self,
        workload: &dyn ClusterWorkload,
        ids: &[SpaceId],
    ) -> Result<(), Interruption> {
        let mut course = workload.course();
        let mut codelets: Vec<Arc<Codelet>> = Vec::new();
        for _ in 0..LOADED_TASKS {
            let Turn::Task(number) = course.next() else {
                break;
            };
            if workload.depends(number).is_some() {
                break;
            }
            let task = workload.task(number, ids);
            if task.count() > 0 {
                let codelet = task.launch(0).codelet;
                if codelet.opencl.is_some()
                    && !codelets.iter().any(|one| Arc::ptr_eq(one, &codelet))
                {
                    codelets.push(codelet);
                }
            }
        }
        for device in 0..self.runtime.devices().len() {
            // A device that is lost here is found lost when it is to compute.
            let Ok(queue) = self.runtime.open_queue(DeviceId(device), QueueKind::Plain) else {
                continue;
            };
            let loaded: Vec<_> = (codelets.iter())
                .map(|codelet| self.runtime.load(queue, codelet))
                .collect();
            self.runtime.free_queue(queue);
            for loaded in loaded {
                match loaded {
                    Ok(()) => {}
                    // Others compute it, or nobody begins it here.
                    Err(
                        RuntimeError::NoImplementation { .. }
                        | RuntimeError::Unfit { .. }
                        | RuntimeError::DeviceLost { .. },
                    ) => {}
                    Err(error) => return Err(ClusterError::from(error).into()),
                }
            }
        }
        Ok(())
    }

    /// Runs the tasks. The result is how many have ended.
    fn run_tasks(
        &mut self,
        workload: &dyn ClusterWorkload,
        ids: &[SpaceId],
        control: &mut Control,
    ) -> Result<u64, Interruption> {
        let mut course = workload.course();
        let mut ended = 0;
        let mut turn = course.next();
        loop {
            let first = match turn {
                Turn::Task(number) => match workload.depends(number) {
                    Some(space) => workload.task_by(number, ids, &self.common(ids[space])?),
                    None => workload.task(number, ids),
                },
                Turn::Decide(Condition { space, is_met }) => {
                    course.decided(self.decide(ids[space], &is_met)?);
                    turn = course.next();
                    continue;
                }
                Turn::Bands => {
                    if let Some(bands) = workload.bands() {
                        let spaces = [ids[workload.result()], ids[bands.figure]];
                        ended += self.co_run(&bands, spaces, &mut *control.progress)?;
                    }
                    turn = course.next();
                    continue;
                }
                Turn::End => return Ok(ended),
            };
            self.check(&*first)?;
            let mut chaining = Chaining::new(Arc::clone(&first) as Arc<dyn Task>);
            let mut tasks = vec![first];
            turn = course.next();
            while let Turn::Task(number) = turn
                && workload.depends(number).is_none()
            {
                let next = workload.task(number, ids);
                self.check(&*next)?;
                if !chaining.push(&(Arc::clone(&next) as Arc<dyn Task>)) {
                    break;
                }
                tasks.push(next);
                turn = course.next();
            }
            self.run(chaining.build(), tasks, &mut || {
                ended += 1;
                (control.progress)(ended);
            })?;
        }
    }

    /// All nodes have the same task, so one of them checks it.
    fn check(&self, task: &dyn Computed) -> Result<(), ClusterError> {
        match self.me() == NodeId::FIRST {
            true => check(task, &self.spaces, self.stop).map_err(|error| match error {
                TaskError::Stopped => ClusterError::Interrupted,
                error => error.into(),
            }),
            false => Ok(()),
        }
    }

    /// What this node tells of the run.
    fn final_record(&self) -> NodeRecord {
        let mut record = self.record.clone();
        let counts = self.machine.counts();
        let Counts {
            subtasks,
            copied,
            given_back,
        } = self.earlier;
        record.subtasks = counts.subtasks.saturating_sub(subtasks) + self.pieces_done;
        record.copied = counts.copied.saturating_sub(copied);
        record.given_back = counts.given_back.saturating_sub(given_back);
        if let Some(traced) = &self.subtasks.traced {
            let own = self.now().cast_signed() - self.runtime.now().cast_signed();
            let shift = own + self.wire.clock_offset(self.wire.rank());
            record.commands = traced.shifted(shift);
        }
        record
    }

    /// Waits for something, unless the tasks must begin anew.
    pub(super) fn until(&mut self, is_so: impl Fn(&Self) -> bool) -> Result<(), Interruption> {
        loop {
            self.check_restart()?;
            // What the node has reported itself may be that they do.
            if self.own.is_empty() && is_so(self) {
                return Ok(());
            }
            self.turn()?;
        }
    }

    /// As [`Self::until`], for data that other nodes send.
    pub(super) fn until_sent(&mut self, is_so: impl Fn(&Self) -> bool) -> Result<(), Interruption> {
        self.collects = true;
        let sent = self.until(is_so);
        self.collects = false;
        sent
    }

    fn has_all_records(&self) -> bool {
        let both = self.records.iter().zip(&self.lost);
        both.into_iter()
            .all(|(record, lost)| *lost || record.is_some())
    }

    /// Forgets all spaces and results of an attempt.
    fn clear(&mut self) -> Result<(), ClusterError> {
        // A kernel that runs cannot be stopped.
        self.subtasks.revoke_all();
        while !self.subtasks.is_quiet() {
            self.turn()?;
        }
        for (task, subtask) in self.subtasks.clear(self.runtime)? {
            // It is no longer on the device that was chosen for it, whichever that was.
            let (device, took) = (DeviceIndex(0), 0);
            self.tell(Event::Done {
                device,
                task,
                subtask,
                took,
            })?;
        }
        self.has_gaps = false;
        self.answers.clear();
        self.spaces = Spaces::default();
        self.fills.clear();
        self.records.fill(None);
        self.pieces.clear();
        self.bands.begin(self.machine.restarts());
        self.machine.hold_together(false);
        self.pieces_done = 0;
        // What was reported before the first task begins is regarded by it.
        self.restarts = false;
        // What the report says is of the last attempt, as its seconds are.
        let record = &mut self.record;
        record.busy_seconds = 0.0;
        (record.received_bytes, record.sent_bytes) = (0, 0);
        (record.divided, record.touched) = (0, TouchRecord::default());
        for device in &mut record.devices {
            (device.subtasks, device.seconds) = (0, 0.0);
        }
        Ok(())
    }

    /// Makes a space, with this node's blocks of its first contents.
    fn add_space(&mut self, space: &NewSpace, tile: u64) -> Result<SpaceId, ClusterError> {
        let Some(contents) = &space.contents else {
            self.fills.push(None);
            return Ok(self.spaces.add(space.extent, []));
        };
        let speeds = speeds(&self.machine.nodes()[..self.part]);
        let blocks = contents.layout.blocks(space.extent, [tile, tile], &speeds);
        let machine = &self.machine;
        let blocks = blocks
            .into_iter()
            .map(|(block, node)| (block, machine.successor(node)));
        let blocks: Vec<(Block, NodeId)> = blocks.collect();
        self.fills.push(Some(Arc::clone(&contents.fill)));
        if contents.is_made {
            let id = self.spaces.add_made(space.extent, blocks);
            self.subtasks.store.make(id, Arc::clone(&contents.fill));
            return Ok(id);
        }
        let own = blocks.iter().filter(|(_, node)| *node == self.me());
        let own: Vec<Block> = own.map(|(block, _)| block.clone()).collect();
        let id = self.spaces.add(space.extent, blocks);
        for block in own {
            self.fill(SpaceBlock { space: id, block })?;
        }
        Ok(id)
    }

    /// The blocks of a space that this node has.
    fn own_blocks(&self, space: SpaceId) -> Vec<Block> {
        let whole = self.spaces.extent(space).whole();
        let holders = self.spaces.directory(space).holders(&whole);
        let own = holders.filter(|(_, holder)| holder.node == self.me());
        own.map(|(block, _)| block).collect()
    }

    /// Compares this node's blocks of a space.
    fn check_own(
        &mut self,
        space: SpaceId,
        check: impl Fn(&Block, &[u8]) -> Checked + Sync,
    ) -> Result<Checked, Interruption> {
        let mut checked = Checked::default();
        let blocks = self.own_blocks(space);
        for some in blocks.chunks(parallel::threads().max(1)) {
            let parts = some
                .iter()
                .cloned()
                .map(|block| SpaceBlock { space, block });
            let parts: Vec<SpaceBlock> = parts.collect();
            self.until_here(parts.clone())?;
            let mut jobs = Vec::new();
            let Subtasks { graph, store, .. } = &self.subtasks;
            for (block, part) in some.iter().zip(&parts) {
                let mut bytes = vec![0; self.spaces.bytes(part) as usize];
                let source = Source::before(part.clone());
                store.copy(graph, self.runtime, &self.spaces, &source, &mut bytes)?;
                jobs.push((block, bytes));
            }
            let found = parallel::map(jobs, |(block, bytes)| check(block, &bytes));
            found.iter().for_each(|one| checked.add(one));
        }
        Ok(checked)
    }

    /// At the first node: what all nodes reported.
    fn outcome(&mut self, seconds: f64, tasks: u64) -> ClusterOutcome {
        let names = self.machine.nodes().iter();
        let nodes = names.zip(&self.records).zip(&self.lost);
        let nodes = nodes.map(|((info, record), lost)| match record {
            Some(record) if !lost => record.clone(),
            _ => NodeRecord {
                name: info.name.clone(),
                lost: *lost,
                ..NodeRecord::default()
            },
        });
        let requests = self.machine.requests();
        ClusterOutcome {
            seconds,
            tasks,
            restarts: 0,
            nodes: nodes.collect(),
            figure: None,
            requests: (requests.asked > 0).then_some([requests.asked, requests.brought]),
            timeline: (self.subtasks.traced.as_ref())
                .map_or_else(Vec::new, |traced| traced.tasks.clone()),
        }
    }
}

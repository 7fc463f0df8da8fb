//! Series of commands with one completion. Their queue is in order, so the first
//! command's event gives their start and the last one's their end. Between them only
//! kernels among transfers need events, for their own times: an event is a good
//! part of a command's cost (see [`super::without_event`]), and so is the query of
//! its times.

use std::sync::Arc;

use cl3::types::cl_event;

use super::completion::KeepAlive;
use super::handle::Event;
use super::launch::LaunchEnv;
use super::queue::{Enqueued, Events, OpenQueue};
use crate::runtime::{Command, RuntimeError};

impl OpenQueue {
    /// Enqueues commands that follow one another.
    pub(super) fn series(
        &mut self,
        commands: &[Command],
        with_event: bool,
        env: &mut LaunchEnv<'_>,
        wait: &[cl_event],
    ) -> Result<Enqueued, RuntimeError> {
        let Some(end) = commands.len().checked_sub(1) else {
            return Err(refused(env, "a series of no commands"));
        };
        let mixed = commands.iter().any(|part| part.bytes() > 0);
        let is_kernel = |i: &usize| mixed && commands[*i].launches().next().is_some();
        let kernels = (0..=end).find(is_kernel).zip((0..=end).rfind(is_kernel));
        let mut keep_alive: Vec<KeepAlive> = Vec::new();
        let mut began = None;
        let mut timed_kernels: Option<[Arc<Event>; 2]> = None;
        let mut last_events = None;
        for (i, command) in commands.iter().enumerate() {
            let is_timed = i == 0 || i == end || kernels.is_some_and(|(a, b)| i == a || i == b);
            let wait = if i == 0 { wait } else { &[] };
            let enqueued = self.single(command, with_event && is_timed, env, wait);
            let enqueued = self.or_cover(enqueued, &mut keep_alive)?;
            keep_alive.extend(enqueued.keep_alive);
            let Some(Events { last, timed, .. }) = enqueued.events else {
                continue;
            };
            let [start, ended] = timed;
            if kernels.is_some_and(|(a, b)| (a..=b).contains(&i)) {
                let first = timed_kernels.map_or_else(|| Arc::clone(&start), |[first, _]| first);
                timed_kernels = Some([first, Arc::clone(&ended)]);
            }
            let began = Arc::clone(began.get_or_insert(start));
            if i == end {
                last_events = Some((last, [began, ended]));
            } else {
                keep_alive.push(last);
            }
        }
        let events = last_events.map(|(last, timed)| Events {
            last,
            timed,
            kernels: timed_kernels,
        });
        Ok(Enqueued { events, keep_alive })
    }

    /// Enqueues a command that is no series.
    pub(super) fn single(
        &mut self,
        command: &Command,
        with_event: bool,
        env: &mut LaunchEnv<'_>,
        wait: &[cl_event],
    ) -> Result<Enqueued, RuntimeError> {
        match command {
            Command::Copy { from, to, rows } => {
                let here = (env.device, env.memories);
                self.copy(here, (*from, *to, *rows), with_event, wait)
            }
            Command::Launch(launch) => self.launch(launch, with_event, env, wait),
            Command::Repeat(launch) => self.launch(launch, with_event, env, wait),
            Command::Series(_) => Err(refused(env, "a series within a series")),
            Command::Graph(_) => {
                let why = "OpenCL has no command graphs; enqueue its launches one by one";
                Err(refused(env, why))
            }
        }
    }

    /// Keeps the resources of the commands before a refused one: they run.
    pub(super) fn or_cover<T>(
        &mut self,
        enqueued: Result<T, RuntimeError>,
        keep_alive: &mut Vec<KeepAlive>,
    ) -> Result<T, RuntimeError> {
        if enqueued.is_err() && !keep_alive.is_empty() {
            self.uncovered
                .add(std::mem::take(keep_alive), Vec::new(), &[]);
        }
        enqueued
    }
}

fn refused(env: &LaunchEnv<'_>, why: &str) -> RuntimeError {
    RuntimeError::Call {
        device: env.device.info.name.clone(),
        call: "clEnqueueNDRangeKernel",
        why: why.to_owned(),
    }
}

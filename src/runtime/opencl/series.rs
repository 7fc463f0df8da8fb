//! Commands told of as one. Their queue is in order, so the first one's event
//! tells when they start and the last one's when they have ended. Of those between
//! only kernels among transfers need one, for their own times: an event is a good
//! part of what a command costs (see [`super::quiet`]), and so is asking for its
//! times.

use std::sync::Arc;

use cl3::types::cl_event;

use super::completion::Keep;
use super::handle::Event;
use super::launch::Site;
use super::queue::{Direction, Enqueued, Events, OpenQueue};
use crate::runtime::{Command, RuntimeError};

impl OpenQueue {
    /// Enqueues commands that follow one another, with events if their end is
    /// `heard` of.
    pub(super) fn series(
        &mut self,
        commands: &[Command],
        heard: bool,
        site: &mut Site<'_>,
        wait: &[cl_event],
    ) -> Result<Enqueued, RuntimeError> {
        let Some(end) = commands.len().checked_sub(1) else {
            return Err(refused(site, "a series of no commands"));
        };
        let mixed = commands.iter().any(|part| part.bytes() > 0);
        let is_kernel = |i: &usize| mixed && commands[*i].launches().next().is_some();
        let kernels = (0..=end).find(is_kernel).zip((0..=end).rfind(is_kernel));
        let mut keeps: Vec<Keep> = Vec::new();
        let mut began = None;
        let mut timed_kernels: Option<[Arc<Event>; 2]> = None;
        let mut told = None;
        for (i, command) in commands.iter().enumerate() {
            let is_timed = i == 0 || i == end || kernels.is_some_and(|(a, b)| i == a || i == b);
            let wait = if i == 0 { wait } else { &[] };
            let enqueued = self.single(command, heard && is_timed, site, wait);
            let enqueued = self.or_owe(enqueued, &mut keeps)?;
            keeps.extend(enqueued.keeps);
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
                told = Some((last, [began, ended]));
            } else {
                keeps.push(last);
            }
        }
        let events = told.map(|(last, timed)| Events {
            last,
            timed,
            kernels: timed_kernels,
        });
        Ok(Enqueued { events, keeps })
    }

    /// Enqueues a command that is no series, with an event if its end is `heard`
    /// of.
    pub(super) fn single(
        &mut self,
        command: &Command,
        heard: bool,
        site: &mut Site<'_>,
        wait: &[cl_event],
    ) -> Result<Enqueued, RuntimeError> {
        let (direction, host, there) = match command {
            Command::Write { from, to } => (Direction::ToDevice, *from, *to),
            Command::Read { from, to } => (Direction::ToHost, *to, *from),
            Command::Launch(launch) => return self.launch(launch, heard, site, wait),
            Command::Repeat(launch) => return self.launch(launch, heard, site, wait),
            Command::Series(_) => return Err(refused(site, "a series within a series")),
        };
        self.transfer(
            (site.device, site.memories),
            direction,
            host,
            there,
            heard,
            wait,
        )
    }

    /// Keeps what the commands before one that was refused use: they are on their
    /// way.
    fn or_owe(
        &mut self,
        enqueued: Result<Enqueued, RuntimeError>,
        keeps: &mut Vec<Keep>,
    ) -> Result<Enqueued, RuntimeError> {
        if enqueued.is_err() && !keeps.is_empty() {
            self.owed.add(std::mem::take(keeps), Vec::new(), &[]);
        }
        enqueued
    }
}

fn refused(site: &Site<'_>, why: &str) -> RuntimeError {
    RuntimeError::Call {
        device: site.device.info.name.clone(),
        call: "clEnqueueNDRangeKernel",
        why: why.to_owned(),
    }
}

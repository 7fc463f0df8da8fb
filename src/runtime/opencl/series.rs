//! Launches told of as one. Their queue is in order, so the first one's event
//! tells when they start and the last one's when they have ended; those between
//! need none (see [`super::quiet`]).

use std::sync::Arc;

use cl3::types::cl_event;

use super::completion::Keep;
use super::handle::Event;
use super::launch::Site;
use super::queue::{Enqueued, Events, OpenQueue};
use crate::runtime::{Launch, RuntimeError};

impl OpenQueue {
    /// Enqueues launches that follow one another, with events if their end is
    /// `heard` of.
    pub(super) fn series(
        &mut self,
        launches: &[Launch],
        heard: bool,
        site: &mut Site<'_>,
        wait: &[cl_event],
    ) -> Result<Enqueued, RuntimeError> {
        let Some((last, others)) = launches.split_last() else {
            return Err(RuntimeError::Call {
                device: site.device.info.name.clone(),
                call: "clEnqueueNDRangeKernel",
                why: "a series of no launches".to_owned(),
            });
        };
        let mut keeps: Vec<Keep> = Vec::new();
        let mut begin: Option<Arc<Event>> = None;
        let mut wait = wait;
        for (i, launch) in others.iter().enumerate() {
            let told = heard && i == 0;
            let enqueued = self.launch(launch, told, site, std::mem::take(&mut wait));
            let enqueued = self.or_owe(enqueued, &mut keeps)?;
            keeps.extend(enqueued.keeps);
            if let Some(events) = enqueued.events {
                let [start, _] = events.timed;
                begin.get_or_insert(start);
                keeps.push(events.last);
            }
        }
        let enqueued = self.launch(last, heard, site, wait);
        let enqueued = self.or_owe(enqueued, &mut keeps)?;
        keeps.extend(enqueued.keeps);
        let events = enqueued.events.map(|Events { last, timed }| {
            let [start, end] = timed;
            let timed = [begin.unwrap_or(start), end];
            Events { last, timed }
        });
        Ok(Enqueued { events, keeps })
    }

    /// Keeps what the launches before one that was refused use: they are on their
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

//! A node's session in a co-run over nodes: opened on the devices that are left, a step, and
//! losses.

use std::ops::Range;
use std::time::Instant;

use super::on_session;
use crate::balance::{Balancer, Dawl, Setup};
use crate::cluster::ClusterError;
use crate::cluster::node::{Interruption, Node};
use crate::corun::session::{Session, Stepped};
use crate::corun::{CorunError, Later, Options, Tracing};
use crate::runtime::{DeviceId, RuntimeError};
use crate::time::Nanos;
use crate::workload::Supersteps;
use crate::workload::cluster::Bands;
use pdawl_core::cluster::protocol::{DeviceIndex, Event};

impl Node<'_> {
    /// Opens this node's units on its devices. Returns the seconds that it took.
    pub(super) fn open_session<'w>(
        &mut self,
        bands: &Bands<'w>,
        session: &mut Option<Session<'w>>,
        units: &[Range<u64>],
        supersteps: Supersteps,
        later: Option<&Later>,
    ) -> Result<f64, Interruption> {
        let began = Instant::now();
        let options = Options {
            trace: match self.subtasks.traced {
                Some(_) => Tracing::Commands,
                None => Tracing::None,
            },
            tolerance: bands.tolerance,
            ..Options::of(supersteps)
        };
        let me = self.me().index();
        let others = units.iter().enumerate().filter(|(node, _)| *node != me);
        let others: Vec<Range<u64>> = others.map(|(_, units)| units.clone()).collect();
        let balancer = |setup: &Setup| -> Box<dyn Balancer> { Box::new(Dawl::new(setup)) };
        loop {
            let lost: Vec<bool> = (0..self.record.devices.len() as u32)
                .map(|device| self.lost_devices.contains(&DeviceIndex(device)))
                .collect();
            let part = (bands.workload, units[me].clone(), others.clone());
            match Session::open(self.runtime, part, (&options, &lost), &balancer, later) {
                Ok(opened) => {
                    *session = Some(opened);
                    self.tell_session_losses(session)?;
                    return Ok(began.elapsed().as_secs_f64());
                }
                Err(CorunError::AllLost { why, .. }) => {
                    self.lose_all(&why)?;
                    return Err(self.begins_anew(&why));
                }
                Err(CorunError::Runtime(RuntimeError::DeviceLost { why, device })) => {
                    let is_gone = |number: usize| {
                        !lost[number] && self.runtime.generation(DeviceId(number)).is_none()
                    };
                    let Some(gone) = (0..lost.len()).find(|number| is_gone(*number)) else {
                        return Err(
                            ClusterError::from(RuntimeError::DeviceLost { why, device }).into()
                        );
                    };
                    self.lose_device(DeviceIndex(gone as u32), why)?;
                }
                Err(error) => return Err(ClusterError::from(error).into()),
            }
        }
    }

    /// Computes a step of this node's units.
    pub(super) fn step(
        &mut self,
        session: &mut Option<Session>,
        name: &str,
    ) -> Result<Nanos, Interruption> {
        self.busy(true);
        let now = self.now();
        if let Some(traced) = &mut self.subtasks.traced {
            traced.begin(name, now);
        }
        let stepped = on_session!(self, session, step);
        self.busy(false);
        self.tell_session_losses(session)?;
        match stepped {
            Ok(Stepped::Done(took)) => Ok(took),
            Ok(Stepped::Spoiled) => Err(self.spoiled(session)),
            Err(CorunError::AllLost { why, .. }) => {
                self.lose_all(&why)?;
                Err(self.begins_anew(&why))
            }
            Err(error) => Err(ClusterError::from(error).into()),
        }
    }

    fn tell_session_losses(&mut self, session: &Option<Session>) -> Result<(), ClusterError> {
        let losses = session.iter().flat_map(|session| session.losses());
        let losses: Vec<(usize, String)> =
            losses.map(|loss| (loss.device, loss.why.clone())).collect();
        losses
            .into_iter()
            .try_for_each(|(device, why)| self.lose_device(DeviceIndex(device as u32), why))
    }

    pub(super) fn spoiled(&mut self, session: &Option<Session>) -> Interruption {
        if let Err(error) = self.tell_session_losses(session) {
            return error.into();
        }
        let losses = session.iter().flat_map(|session| session.losses());
        let why = losses
            .last()
            .map_or_else(String::new, |loss| loss.why.clone());
        self.begins_anew(&why)
    }

    /// Tells that what this node had is gone, and waits until all begin anew.
    fn begins_anew(&mut self, why: &str) -> Interruption {
        let why = format!("{}: {why}", self.me());
        if let Err(error) = self.tell(Event::Gone { why }) {
            return error.into();
        }
        match self.until(|_| false) {
            Err(interruption) => interruption,
            Ok(()) => Interruption::Restart,
        }
    }

    /// Gives a session's memory back, and notes what the devices did.
    pub(super) fn close_session(&mut self, session: Session) {
        let outcome = session.close(self.runtime);
        for step in &outcome.steps {
            for (device, part) in step.devices.iter().zip(&mut self.record.devices) {
                part.subtasks += device.chunks;
                part.seconds += device.busy_seconds;
                self.pieces_done += device.chunks;
            }
        }
        if let Some(traced) = &mut self.subtasks.traced {
            let steps = outcome.steps.len().min(traced.tasks.len());
            traced.corun(&outcome.trace, (traced.tasks.len() - steps) as u32);
        }
    }
}

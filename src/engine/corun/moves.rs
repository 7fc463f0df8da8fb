//! From one layout to the next: units that change hands, and halos.

use std::ops::Range;

use super::drive::{Drive, For};
use super::layout::{Layout, length, without};
use super::place::{Own, Place};
use super::{CorunError, HALO, MOVE};
use crate::runtime::EventId;
use crate::workload::Grid;

/// Units on their way home to the host grid, and the events after which they
/// are there.
#[derive(Clone, Debug, Default)]
pub struct Home(pub(super) Vec<(Range<u64>, EventId)>);

impl Home {
    /// The events that whoever reads these units must wait for.
    pub fn of(&self, units: &Range<u64>) -> Vec<EventId> {
        (self.0.iter())
            .filter(|(range, _)| range.start < units.end && units.start < range.end)
            .map(|(_, event)| *event)
            .collect()
    }
}

impl Drive<'_> {
    /// Takes up the planned layout: moves units to where it wants them, and
    /// writes the held ranges' halos. Returns how many units change hands, and
    /// the events after which the host grid is complete again; everything on a
    /// device's main queue is ordered behind its own moves.
    pub(super) fn relocate(&mut self, step: u32) -> Result<(u64, Home), CorunError> {
        let before = self.take_up();
        let mut home = Home::default();
        for device in 0..self.places.len() {
            self.read_leaving(device, &before, step, &mut home)?;
        }
        for device in 0..self.places.len() {
            self.write_entering(device, &before, &home, step)?;
        }
        self.relocate_product(&before, step, &mut home)?;
        Ok((self.layout.moved_since(&before), home))
    }

    /// Reads what a device no longer holds, and what has become the edge of
    /// what it still holds, into the present grid.
    fn read_leaving(
        &mut self,
        device: usize,
        before: &Layout,
        step: u32,
        home: &mut Home,
    ) -> Result<(), CorunError> {
        let (old, new) = (
            before.held[device].clone(),
            self.layout.held[device].clone(),
        );
        let Some((own, whose)) = self.own(device, step, MOVE).filter(|_| old != new) else {
            return Ok(());
        };
        let ring = own.held.present();
        let [low, high] = without(&old, &new);
        let mut ranges = [low.clone(), high.clone()];
        if !low.is_empty() && !new.is_empty() && old.contains(&new.start) {
            ranges[0].end += 1;
        }
        if !high.is_empty() {
            ranges[1].start -= 1;
        }
        for range in ranges.into_iter().filter(|r| !r.is_empty()) {
            for event in self.read(whose, range.clone(), 0, &ring, &[])? {
                home.0.push((range.clone(), event));
            }
        }
        Ok(())
    }

    /// Writes what a device now holds besides, and its halos.
    fn write_entering(
        &mut self,
        device: usize,
        before: &Layout,
        home: &Home,
        step: u32,
    ) -> Result<(), CorunError> {
        let (old, new) = (
            before.held[device].clone(),
            self.layout.held[device].clone(),
        );
        let Some(halo) = self.as_grid().map(Grid::halo) else {
            return Ok(());
        };
        let Some((own, moves)) = self.own(device, step, MOVE) else {
            return Ok(());
        };
        if old != new {
            own.held.hold(new.clone());
        }
        if new.is_empty() {
            return Ok(());
        }
        let ring = own.held.present();
        for range in without(&new, &old).into_iter().filter(|r| !r.is_empty()) {
            let after = home.of(&range);
            self.write(moves, range, 0, &ring, &after)?;
        }
        let halos = For {
            label: HALO,
            ..moves
        };
        let below = new.start.saturating_sub(halo)..new.start;
        let above = new.end..self.workload.units().min(new.end + halo);
        for range in [below, above].into_iter().filter(|r| length(r) > 0) {
            let after = home.of(&range);
            self.write(halos, range, 0, &ring, &after)?;
        }
        Ok(())
    }

    /// A living device with its own memory, and the mark of its main queue.
    pub(super) fn own(
        &mut self,
        device: usize,
        step: u32,
        label: &'static str,
    ) -> Option<(&mut Own, For)> {
        if !self.alive[device] {
            return None;
        }
        match &mut self.places[device] {
            Place::Own(own) => {
                let whose = For {
                    device,
                    lane: own.main,
                    job: None,
                    step,
                    label,
                };
                Some((own, whose))
            }
            Place::Host { .. } | Place::Store(_) | Place::Images(_) => None,
        }
    }
}

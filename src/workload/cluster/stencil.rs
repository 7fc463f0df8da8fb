//! The stencil: a task a step, a band of units a subtask, halos from the neighbours.

use std::ops::Range;
use std::sync::Arc;

use super::samples::positions;
use super::{Check, ClusterWorkload, Contents, NewSpace, Placement};
use crate::cluster::space::{Block, Extent, Part, SpaceId};
use crate::cluster::task::{Computed, SubtaskLaunch, SubtaskValue, Task};
use crate::codelet::{Codelet, Cost, HostMemoryId, Memory};
use crate::verify::Checked;
use crate::workload::stencil::Stencil;
use crate::workload::{Divisible, Grid, Ring};

/// A Jacobi stencil. A row of its spaces is a unit: a row of a 2-D grid, a plane of a 3-D
/// one.
#[derive(Clone)]
pub struct StencilWorkload {
    pub stencil: Arc<Stencil>,
    pub steps: u64,
    /// Units of a subtask.
    pub tile: u64,
}

impl StencilWorkload {
    fn extent(&self) -> Extent {
        Extent {
            rows: self.stencil.units(),
            columns: self.stencil.unit_points(),
            element: self.stencil.precision().bytes(),
        }
    }
}

impl ClusterWorkload for StencilWorkload {
    fn name(&self) -> &'static str {
        "stencil"
    }

    fn spaces(&self) -> Vec<NewSpace> {
        let stencil = Arc::clone(&self.stencil);
        let unit = stencil.unit_points() * stencil.precision().bytes();
        let fill = move |block: &Block, bytes: &mut [u8]| {
            // Bytes of a block have no alignment; numbers have.
            let mut numbers = vec![0u64; unit.div_ceil(8) as usize];
            let of_unit = &mut bytemuck::cast_slice_mut(&mut numbers)[..unit as usize];
            for (unit, to) in block
                .rows
                .clone()
                .zip(bytes.chunks_exact_mut(of_unit.len()))
            {
                stencil.initial(unit..unit + 1, of_unit);
                to.copy_from_slice(of_unit);
            }
            Ok(())
        };
        vec![
            NewSpace {
                extent: self.extent(),
                contents: Some(Contents::placed(Placement::Rows, Arc::new(fill))),
            },
            NewSpace {
                extent: self.extent(),
                contents: None,
            },
        ]
    }

    fn tasks(&self) -> u64 {
        self.steps
    }

    /// Steps go from one space to the other and back.
    fn task(&self, number: u64, spaces: &[SpaceId]) -> Arc<dyn Computed> {
        let (from, to) = match number % 2 {
            0 => (spaces[0], spaces[1]),
            _ => (spaces[1], spaces[0]),
        };
        Arc::new(Step {
            codelet: self.stencil.codelet(),
            stencil: Arc::clone(&self.stencil),
            tile: self.tile,
            from,
            to,
        })
    }

    fn result(&self) -> usize {
        (self.steps % 2) as usize
    }

    /// A unit depends on as many units around it as there are steps. Where these are few, a
    /// node computes them again for some units of its blocks; otherwise the first node
    /// computes the whole grid.
    fn check(&self) -> Check<'_> {
        let units = self.stencil.units();
        let again = units.div_ceil(self.tile) * UNITS as u64 * (2 * self.steps + 3);
        match again <= units {
            true => Check::Blocks(Box::new(|block, bytes, seed| {
                self.compare(block, bytes, seed)
            })),
            false => Check::Whole(
                vec![self.result()],
                Box::new(|spaces, _| {
                    let result = &spaces[0];
                    // Bytes of a block have no alignment; numbers have.
                    let aligned: Vec<u64> = bytemuck::pod_collect_to_vec(result);
                    let result = &bytemuck::cast_slice(&aligned)[..result.len()];
                    let (_, is_same) = self.stencil.verify(self.steps as u32, result);
                    same(is_same)
                }),
            ),
        }
    }
}

/// Units of a block that are compared.
const UNITS: usize = 4;

/// The result must be the same bit for bit, so any difference is wrong.
fn same(is_same: bool) -> Checked {
    let mut checked = Checked::default();
    checked.number(f64::from(u8::from(!is_same)), 0.0, 0.5);
    checked
}

impl StencilWorkload {
    fn compare(&self, block: &Block, bytes: &[u8], seed: u64) -> Checked {
        let mut checked = Checked::default();
        let positions = positions(block, seed).into_iter();
        let mut units: Vec<u64> = positions.map(|[unit, _]| unit).collect();
        units.dedup();
        units.truncate(UNITS);
        let length = (block.width() * self.stencil.precision().bytes()) as usize;
        for unit in units {
            let begin = (unit - block.rows.start) as usize * length;
            let bytes = &bytes[begin..begin + length];
            checked.add(&same(self.stencil.is_unit(self.steps, unit, bytes)));
        }
        checked
    }
}

struct Step {
    stencil: Arc<Stencil>,
    codelet: Arc<Codelet>,
    tile: u64,
    from: SpaceId,
    to: SpaceId,
}

impl Step {
    fn units(&self, subtask: u64) -> Range<u64> {
        let begin = subtask * self.tile;
        begin..(begin + self.tile).min(self.stencil.units())
    }

    fn around(&self, subtask: u64) -> Range<u64> {
        let units = self.units(subtask);
        let halo = self.stencil.halo();
        units.start.saturating_sub(halo)..(units.end + halo).min(self.stencil.units())
    }

    fn part(&self, space: SpaceId, units: Range<u64>) -> Part {
        Part {
            space,
            block: Block::new(units, 0..self.stencil.unit_points()),
        }
    }
}

impl Task for Step {
    fn name(&self) -> &str {
        "stencil"
    }

    fn count(&self) -> u64 {
        self.stencil.units().div_ceil(self.tile)
    }

    fn reads(&self, subtask: u64) -> Vec<Part> {
        vec![self.part(self.from, self.around(subtask))]
    }

    fn writes(&self, subtask: u64) -> Vec<Part> {
        vec![self.part(self.to, self.units(subtask))]
    }

    fn cost(&self, subtask: u64) -> Cost {
        self.stencil.cost(&self.units(subtask))
    }
}

impl Computed for Step {
    fn launch(&self, subtask: u64) -> SubtaskLaunch {
        // The rings' memory is the subtask's own; only their places count here.
        let memory = Memory::Host(HostMemoryId::fresh());
        let ring = |units: &Range<u64>| Ring {
            memory,
            slots: units.end - units.start,
            unit: units.start,
            slot: 0,
        };
        let (units, around) = (self.units(subtask), self.around(subtask));
        let mut values = self
            .stencil
            .args(units.clone(), &ring(&around), &ring(&units));
        // The memory of `from` and `to`.
        values.drain(..2);
        SubtaskLaunch {
            codelet: Arc::clone(&self.codelet),
            units,
            values: values.into_iter().map(SubtaskValue::from).collect(),
        }
    }
}

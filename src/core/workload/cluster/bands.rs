//! Workloads that nodes compute as one co-run: a run of neighbouring units a node, whatever
//! devices it has. What others read of them travels between two steps.

use std::ops::Range;
use std::sync::Arc;

use super::{Check, ClusterWorkload, Course, Figure, NewSpace, Ordered, Turn};
use crate::cluster::space::Extent;
use crate::verify::Checked;
use crate::workload::spmv::{Form, Spmv};
use crate::workload::stencil::Stencil;
use crate::workload::{Data, Divisible, Ending, Grid, Supersteps};

/// A co-run over nodes.
#[derive(Clone, Copy)]
pub struct Bands<'a> {
    pub workload: &'a dyn Divisible,
    pub supersteps: Supersteps,
    /// End when a step changes at most this; see
    /// `Options::tolerance` of a co-run.
    pub tolerance: Option<f64>,
    /// The rows of the result that the node has which computed some units.
    pub rows: &'a RowsOf,
    /// The space of a number that the steps leave.
    pub figure: usize,
}

impl Bands<'_> {
    /// Bytes that each of so many nodes gets after a step, or superstep, and the number of the
    /// others from which they come.
    pub fn received(&self, nodes: u64) -> (f64, u64) {
        let others = nodes.saturating_sub(1);
        match self.workload.data() {
            Data::Grid(grid) => {
                let edge = grid.halo() * u64::from(self.supersteps.size()) * grid.unit_bytes();
                let neighbours = others.min(2);
                ((neighbours * edge) as f64, neighbours)
            }
            Data::Product(spmv) if spmv.iterates() => {
                let vector = u64::from(spmv.matrix().rows()) * spmv.number();
                ((vector * others) as f64 / nodes.max(1) as f64, others)
            }
            Data::Product(_) | Data::Kernel(_) => (0.0, 0),
        }
    }
}

/// The rows of a result, by units.
pub type RowsOf = dyn Fn(&Range<u64>) -> Range<u64> + Send + Sync;

/// What is divided among nodes.
#[derive(Clone)]
enum Divided {
    Stencil(Arc<Stencil>),
    Product(Arc<Spmv>),
}

/// A stencil, a sparse product or page ranks over nodes.
#[derive(Clone)]
pub struct BandsWorkload {
    divided: Divided,
    supersteps: Supersteps,
    /// Most steps, where a tolerance may end them.
    most: u32,
    tolerance: Option<f64>,
    rows: Arc<RowsOf>,
}

/// The spaces: the result, and a figure.
const RESULT: usize = 0;
const FIGURE: usize = 1;

impl BandsWorkload {
    /// Steps of a stencil, with barriers, and messages, after supersteps only.
    pub fn stencil(stencil: Stencil, supersteps: Supersteps) -> Self {
        Self {
            divided: Divided::Stencil(Arc::new(stencil)),
            supersteps,
            most: supersteps.steps(),
            tolerance: None,
            rows: Arc::new(Range::clone),
        }
    }

    /// The same until a step changes at most this; see
    /// `Options::tolerance` of a co-run.
    pub fn until(self, tolerance: Option<f64>) -> Self {
        Self { tolerance, ..self }
    }

    /// So many products or steps of an iteration, or until all changes in a step sum to at
    /// most `tolerance`, where ranks are computed. Its result is in the order of places.
    pub fn product(spmv: Spmv, steps: u32, tolerance: Option<f64>) -> Self {
        let spmv = Arc::new(spmv);
        let rows = {
            let spmv = Arc::clone(&spmv);
            // All nodes have the rows that are cut into pieces, which come first.
            move |units: &Range<u64>| {
                let long = spmv.arrangement().long_rows().count() as u64;
                let rows = spmv.arrangement().rows(units);
                let begin = match units.start {
                    0 => 0,
                    _ => u64::from(rows.start).max(long),
                };
                begin..u64::from(rows.end).max(long).max(begin)
            }
        };
        Self {
            divided: Divided::Product(spmv),
            supersteps: Supersteps::new(steps, 1),
            most: steps,
            tolerance,
            rows: Arc::new(rows),
        }
    }

    fn divisible(&self) -> &dyn Divisible {
        match &self.divided {
            Divided::Stencil(stencil) => &**stencil,
            Divided::Product(spmv) => &**spmv,
        }
    }

    /// The result's rows of numbers.
    fn extent(&self) -> Extent {
        match &self.divided {
            Divided::Stencil(stencil) => Extent {
                rows: stencil.units(),
                columns: stencil.unit_points(),
                element: stencil.precision().bytes(),
            },
            Divided::Product(spmv) => Extent {
                rows: spmv.matrix().rows().into(),
                columns: 1,
                element: spmv.number(),
            },
        }
    }
}

impl ClusterWorkload for BandsWorkload {
    fn name(&self) -> &'static str {
        self.divisible().name()
    }

    fn spaces(&self) -> Vec<NewSpace> {
        let space = |extent| NewSpace {
            extent,
            contents: None,
        };
        let figure = Extent {
            rows: 1,
            columns: 1,
            element: size_of::<f64>() as u64,
        };
        vec![space(self.extent()), space(figure)]
    }

    /// Steps.
    fn tasks(&self) -> u64 {
        self.supersteps.steps().into()
    }

    fn bands(&self) -> Option<Bands<'_>> {
        Some(Bands {
            workload: self.divisible(),
            supersteps: self.supersteps,
            tolerance: self.tolerance,
            rows: &*self.rows,
            figure: FIGURE,
        })
    }

    fn course(&self) -> Box<dyn Course + '_> {
        Box::new(Together { has_run: false })
    }

    fn result(&self) -> usize {
        RESULT
    }

    fn shortened(&self, tasks: u64) -> Option<Box<dyn ClusterWorkload>> {
        Some(Box::new(Self {
            supersteps: self.supersteps.at_most(tasks as u32),
            ..self.clone()
        }))
    }

    /// A unit of a grid depends on as many units around it as there are steps. Where these
    /// are few, a node computes them again for its blocks; otherwise the first node computes
    /// the whole result.
    fn check(&self) -> Check<'_> {
        let steps = self.supersteps.steps();
        match &self.divided {
            Divided::Stencil(stencil)
                if self.tolerance.is_none()
                    && NODES * (2 * u64::from(steps) + 3) <= stencil.units() =>
            {
                Check::Blocks(Box::new(move |block, bytes, _| {
                    stencil.compare_units(steps, &block.rows, bytes)
                }))
            }
            Divided::Stencil(stencil) => Check::Whole(
                vec![RESULT, FIGURE],
                Box::new(move |spaces, _| {
                    let ended = self.tolerance.map(|tolerance| Ending {
                        most: self.most,
                        period: self.supersteps.period(),
                        tolerance,
                        change: number(spaces[1]),
                    });
                    // Bytes have no alignment; numbers have.
                    let words: Vec<u64> = bytemuck::pod_collect_to_vec(spaces[0]);
                    let result = &bytemuck::cast_slice(&words)[..spaces[0].len()];
                    let mut checked = Checked::default();
                    let compared = stencil.verify(steps, ended, result);
                    checked.all_exactly(compared.numbers, compared.right);
                    checked.overflowed = compared.not_finite;
                    checked
                }),
            ),
            Divided::Product(spmv) => Check::Whole(
                vec![RESULT],
                Box::new(move |spaces, _| spmv.check(steps, &spmv.in_places(spaces[0]))),
            ),
        }
    }

    fn figure(&self) -> Option<Figure> {
        let (name, title) = match &self.divided {
            Divided::Stencil(_) => ("change", self.tolerance.map(|_| "Last change")?),
            Divided::Product(spmv) => match spmv.options().form {
                Form::Product => return None,
                Form::Iteration => ("eigenvalue", "Eigenvalue"),
                Form::Ranks => ("change", "Last change"),
            },
        };
        Some(Figure {
            name,
            title,
            space: FIGURE,
            of: Box::new(number),
        })
    }

    fn ordered(&self, space: usize) -> Option<Ordered<'_>> {
        match &self.divided {
            Divided::Product(spmv) if space == RESULT => {
                Some(Box::new(|bytes| spmv.in_rows(bytes)))
            }
            _ => None,
        }
    }
}

/// The number of a space of one.
fn number(bytes: &[u8]) -> f64 {
    (bytes.first_chunk()).map_or(f64::NAN, |of| f64::from_ne_bytes(*of))
}

/// All steps together.
struct Together {
    has_run: bool,
}

impl Course for Together {
    fn next(&mut self) -> Turn {
        match std::mem::replace(&mut self.has_run, true) {
            false => Turn::Bands,
            true => Turn::End,
        }
    }

    fn decided(&mut self, _is_met: bool) {}
}

/// For how many nodes the units around a block must be little work.
const NODES: u64 = 64;

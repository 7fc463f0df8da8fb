//! Page rank: the part of its time that a visitor spends at each vertex of a graph who
//! follows a link with probability `damping`, and goes anywhere otherwise and where there is
//! no link.
//!
//! Source: Brin and Page, "The anatomy of a large-scale hypertextual Web search engine",
//! WWW 1998, section 2.1.1; vertices without links as in Langville and Meyer, "Deeper inside
//! PageRank", Internet Mathematics 2004, section 3.

use std::sync::Arc;

use thiserror::Error;

use super::bands::Bands;
use super::{Iteration, Spaces, TOTALS, numbers, read};
use crate::cluster::space::{Extent, SpaceId};
use crate::cluster::task::Computed;
use crate::codelet::Precision;
use crate::codelet::spmv::band::Affine;
use crate::codelet::sums::{SLOTS, Sums, totals};
use crate::matrix::Csr;
use crate::verify::Checked;
use crate::verify::sum::compensated;
use crate::workload::cluster::{
    Check, ClusterWorkload, Condition, Contents, Course, Figure, InOrder, NewSpace, UntilMet,
};
use crate::workload::spmv::links::Links;
use crate::workload::spmv::rank_reference::ranks;
use crate::workload::spmv::reference::Expected;

/// Why there are no ranks.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RankError {
    #[error("the matrix has {rows} rows and {columns} columns; links need a square one")]
    NotSquare { rows: u32, columns: u32 },
    #[error("the matrix has no rows, so the graph has no vertices")]
    Empty,
}

/// The ranks of a graph's vertices, which are equal at first and sum to 1.
#[derive(Clone)]
pub struct PagerankWorkload {
    iteration: Iteration,
    links: Links,
    damping: f64,
    steps: u64,
    /// The sum of the changes in a step with which it ends before its last step.
    tolerance: Option<f64>,
}

impl PagerankWorkload {
    /// The graph of a matrix: an entry is a link from its row's vertex to its column's,
    /// whatever its value is.
    ///
    /// # Errors
    /// When the matrix is not square, or has no rows.
    pub fn new(
        matrix: &Csr,
        damping: f64,
        precision: Precision,
        steps: u64,
    ) -> Result<Self, RankError> {
        let (rows, columns) = (matrix.rows(), matrix.columns());
        if rows != columns {
            return Err(RankError::NotSquare { rows, columns });
        }
        if rows == 0 {
            return Err(RankError::Empty);
        }
        let links = Links::of(matrix);
        let bands = Bands::of(Arc::clone(&links.matrix), precision);
        Ok(Self {
            iteration: Iteration::new(bands, Sums::Ranks),
            links,
            damping,
            steps,
            tolerance: None,
        })
    }

    /// The same ranks, computed until all changes in a step sum to at most `tolerance`, or
    /// all steps are done.
    pub fn with_tolerance(self, tolerance: f64) -> Self {
        Self {
            tolerance: Some(tolerance),
            ..self
        }
    }

    fn vertices(&self) -> u64 {
        self.links.vertices()
    }

    fn precision(&self) -> Precision {
        self.iteration.bands.precision()
    }

    fn compare(&self, bytes: &[u8]) -> Checked {
        let bands = &self.iteration.bands;
        // Additions one after the other: those of a slot, if one band has nearly all vertices,
        // the bands, and the slots.
        let slots = f64::from(SLOTS);
        let additions = self.vertices() as f64 / slots + bands.count() as f64 + slots;
        let Expected { values, errors } = ranks(
            bands.matrix(),
            &self.links.is_dangling,
            (self.damping, self.steps),
            (self.precision(), additions),
        );
        let found = read(bytes, self.precision());
        let mut checked = Checked::default();
        for ((found, value), error) in found.iter().zip(values).zip(&errors) {
            checked.number(*found, value, *error);
        }
        // The ranks sum to 1.
        let sum = compensated(found.iter().copied());
        checked.number(sum, 1.0, errors.iter().sum());
        checked
    }
}

/// The place of the factors that choose vertices without links, among the spaces.
const DANGLING: usize = 6;

/// A product and its sums.
const TASKS_OF_STEP: u64 = 2;

impl ClusterWorkload for PagerankWorkload {
    fn name(&self) -> &'static str {
        "pagerank"
    }

    fn spaces(&self) -> Vec<NewSpace> {
        let (vertices, precision) = (self.vertices(), self.precision());
        let equal = 1.0 / vertices as f64;
        let first = self.links.first_dangling();
        let mut spaces = (self.iteration).spaces(move |_| equal, first);
        let is_dangling = Arc::clone(&self.links.is_dangling);
        let factor = move |vertex| f64::from(u8::from(is_dangling[vertex as usize]));
        let layout = self.iteration.bands.vector_layout(vertices);
        spaces.push(NewSpace {
            extent: Extent {
                rows: 1,
                columns: vertices,
                element: precision.bytes(),
            },
            contents: Some(Contents::made(layout, numbers(precision, factor))),
        });
        spaces
    }

    fn tasks(&self) -> u64 {
        TASKS_OF_STEP * self.steps
    }

    fn task(&self, number: u64, ids: &[SpaceId]) -> Arc<dyn Computed> {
        let spaces = Spaces::of(ids);
        let [one, other] = spaces.vectors;
        let [from, to] = match number / TASKS_OF_STEP % 2 {
            0 => [one, other],
            _ => [other, one],
        };
        if number % TASKS_OF_STEP == 1 {
            return self.iteration.reduce(spaces, vec![to, from, ids[DANGLING]]);
        }
        let vertices = self.vertices() as f64;
        let affine = Affine {
            scale: self.damping,
            base: (1.0 - self.damping) / vertices,
            share: self.damping / vertices,
            normalises: false,
        };
        self.iteration.product(affine, spaces, [from, to])
    }

    fn result(&self) -> usize {
        (self.steps % 2) as usize
    }

    fn check(&self) -> Check<'_> {
        Check::Whole(
            vec![self.result()],
            Box::new(|spaces, _| self.compare(&spaces[0])),
        )
    }

    fn figure(&self) -> Option<Figure> {
        let precision = self.precision();
        Some(Figure {
            name: "change",
            title: "Last change",
            space: TOTALS,
            of: Box::new(move |bytes| totals(bytes, precision)[1]),
        })
    }

    /// The changes are known when a step's sums are.
    fn course(&self) -> Box<dyn Course + '_> {
        let precision = self.precision();
        let Some(tolerance) = self.tolerance else {
            return Box::new(InOrder::new(self.tasks()));
        };
        let condition = Condition {
            space: TOTALS,
            is_met: Arc::new(move |bytes| totals(bytes, precision)[1] <= tolerance),
        };
        Box::new(UntilMet::new(self.tasks(), TASKS_OF_STEP, condition))
    }

    fn shortened(&self, tasks: u64) -> Option<Box<dyn ClusterWorkload>> {
        let steps = tasks / TASKS_OF_STEP;
        let shortened = || Self {
            steps,
            ..self.clone()
        };
        (steps < self.steps).then(|| Box::new(shortened()) as _)
    }
}

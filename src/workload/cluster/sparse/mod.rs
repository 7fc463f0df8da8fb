//! Iterations with a sparse matrix over nodes: products, and the sums between them.
//!
//! The matrix is cut into bands of rows ([`bands`]). Every node has read or generated it, and
//! makes the bands that its subtasks compute, also when it takes over from a lost node. Only
//! vectors travel, and of these only the pages that a band reads.

mod bands;
mod pagerank;
mod reduce;
mod spmv;
mod step;

use std::sync::Arc;

pub use pagerank::{PagerankWorkload, RankError};
pub use spmv::SpmvWorkload;

use super::{Contents, Fill, NewSpace, Placement};
use crate::cluster::space::{Extent, SpaceId};
use crate::cluster::task::Computed;
use crate::codelet::spmv::band::{self, Affine};
use crate::codelet::sums::{SLOTS, Sums};
use crate::codelet::{Codelet, Precision};
use bands::{Bands, write};

/// The spaces of an iteration, in the order in which a workload has them.
#[derive(Clone, Copy)]
struct Spaces {
    vectors: [SpaceId; 2],
    totals: SpaceId,
    columns: SpaceId,
    values: SpaceId,
    ends: SpaceId,
}

impl Spaces {
    fn of(ids: &[SpaceId]) -> Self {
        Self {
            vectors: [ids[0], ids[1]],
            totals: ids[TOTALS],
            columns: ids[3],
            values: ids[4],
            ends: ids[5],
        }
    }
}

/// The place of the sums among the spaces.
const TOTALS: usize = 2;

/// A matrix in bands, with the codelets of an iteration.
#[derive(Clone)]
struct Iteration {
    bands: Arc<Bands>,
    product: Arc<Codelet>,
    sums: Sums,
    reduction: Arc<Codelet>,
}

impl Iteration {
    fn new(bands: Arc<Bands>, sums: Sums) -> Self {
        let precision = bands.precision();
        let matrix = bands.matrix();
        let mean = matrix.nonzeros() / u64::from(matrix.rows()).max(1);
        Self {
            product: Arc::new(band::codelet(precision, mean)),
            reduction: Arc::new(sums.codelet(precision)),
            bands,
            sums,
        }
    }

    /// The vectors, the first with these numbers, the sums, of which the first is `total`,
    /// and the matrix.
    fn spaces(
        &self,
        number: impl Fn(u64) -> f64 + Send + Sync + 'static,
        total: f64,
    ) -> Vec<NewSpace> {
        let matrix = self.bands.matrix();
        let precision = self.bands.precision();
        let extent = |columns: u64| Extent {
            rows: 1,
            columns,
            element: precision.bytes(),
        };
        let (rows, columns) = (matrix.rows().into(), matrix.columns().into());
        let totals = numbers(precision, move |slot| if slot == 0 { total } else { 0.0 });
        let layout = self.bands.vector_layout(columns);
        let mut spaces = vec![
            NewSpace {
                extent: extent(columns),
                contents: Some(Contents::placed(layout, numbers(precision, number))),
            },
            NewSpace {
                extent: extent(rows),
                contents: None,
            },
            NewSpace {
                extent: extent(2 * u64::from(SLOTS)),
                contents: Some(Contents::placed(Placement::Central, totals)),
            },
        ];
        spaces.extend(self.bands.spaces());
        spaces
    }

    /// A product from one vector to the other.
    fn product(
        &self,
        affine: Affine,
        spaces: Spaces,
        [from, to]: [SpaceId; 2],
    ) -> Arc<dyn Computed> {
        Arc::new(step::Product {
            bands: Arc::clone(&self.bands),
            codelet: Arc::clone(&self.product),
            affine,
            spaces,
            from,
            to,
        })
    }

    /// The sums over vectors.
    fn reduce(&self, spaces: Spaces, vectors: Vec<SpaceId>) -> Arc<dyn Computed> {
        Arc::new(reduce::Reduce {
            bands: Arc::clone(&self.bands),
            sums: self.sums,
            codelet: Arc::clone(&self.reduction),
            vectors,
            totals: spaces.totals,
        })
    }
}

/// The contents of a vector.
fn numbers(precision: Precision, number: impl Fn(u64) -> f64 + Send + Sync + 'static) -> Fill {
    Arc::new(move |block, to| {
        match precision {
            Precision::F64 => write(block, to, &number),
            Precision::F32 => write(block, to, |at| number(at) as f32),
        }
        Ok(())
    })
}

/// The numbers of a vector's bytes.
fn read(bytes: &[u8], precision: Precision) -> Vec<f64> {
    let numbers = bytes.chunks_exact(precision.bytes() as usize);
    match precision {
        Precision::F64 => numbers.map(bytemuck::pod_read_unaligned).collect(),
        Precision::F32 => numbers
            .map(|number| f64::from(bytemuck::pod_read_unaligned::<f32>(number)))
            .collect(),
    }
}

//! The links of a graph, as page ranks use them.

use std::sync::Arc;

use crate::matrix::Csr;

/// A graph's links, from the vertex that is linked to.
#[derive(Clone, Debug)]
pub struct Links {
    /// A row for each vertex: the vertices that link to it, and the part of their ranks that
    /// each gives.
    pub matrix: Arc<Csr>,
    /// The vertices without links to others.
    pub is_dangling: Arc<[bool]>,
}

impl Links {
    /// The links of a square matrix: an entry is a link from its row's vertex to its
    /// column's, whatever its value is.
    pub fn of(graph: &Csr) -> Self {
        let rows = 0..graph.rows();
        Self {
            is_dangling: rows.map(|row| graph.row_length(row) == 0).collect(),
            matrix: Arc::new(graph.transposed(|row, _| 1.0 / graph.row_length(row) as f64)),
        }
    }

    /// The number of vertices.
    pub fn vertices(&self) -> u64 {
        self.is_dangling.len() as u64
    }

    /// The sum of equal ranks of vertices without links.
    pub fn first_dangling(&self) -> f64 {
        let without = self.is_dangling.iter().filter(|is| **is).count();
        without as f64 / self.vertices() as f64
    }
}

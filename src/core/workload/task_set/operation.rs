//! The computations of tasks: their costs, codelets and arguments, and the contents of given data.

use std::sync::Arc;

use crate::codelet::tile::{GemmTile, PotrfTile, SyrkTile, TrsmTile};
use crate::codelet::{
    Codelet, Cost, Element, HostCode, KernelSource, NdRange, OpenClKernel, ProductPrecision, Shape,
    Value,
};
use crate::graph::Contents;
use crate::random::uniform;

/// What a task computes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::workload) enum Operation {
    Gemm(GemmTile),
    Syrk(SyrkTile),
    Trsm(TrsmTile),
    Potrf(PotrfTile),
    /// Nothing that has a name.
    Any(Cost),
}

impl Operation {
    pub fn cost(&self) -> Cost {
        match self {
            Self::Gemm(tile) => tile.cost(),
            Self::Syrk(tile) => tile.cost(),
            Self::Trsm(tile) => tile.cost(),
            Self::Potrf(tile) => tile.cost(),
            Self::Any(cost) => *cost,
        }
    }

    pub fn units(&self) -> u64 {
        match self {
            Self::Gemm(tile) => tile.units(),
            Self::Syrk(tile) => tile.units(),
            Self::Trsm(tile) => tile.units(),
            Self::Potrf(tile) => tile.units(),
            Self::Any(_) => 1,
        }
    }

    /// The arguments after the memories.
    pub fn values(&self) -> Vec<Value> {
        match self {
            Self::Gemm(tile) => tile.values().to_vec(),
            Self::Syrk(tile) => tile.values().to_vec(),
            Self::Trsm(tile) => tile.values().to_vec(),
            Self::Potrf(tile) => tile.values().to_vec(),
            Self::Any(_) => Vec::new(),
        }
    }

    /// The first stride among the values: one for each memory, and then the numbers before the
    /// first ones.
    pub fn strides(&self) -> usize {
        match self {
            Self::Gemm(_) => 3,
            Self::Syrk(_) | Self::Trsm(_) => 2,
            Self::Potrf(_) => 1,
            Self::Any(_) => 0,
        }
    }

    /// The codelet of the real arithmetic, if it has a name.
    pub fn codelet(&self) -> Codelet {
        match self {
            Self::Gemm(tile) => tile.codelet(),
            Self::Syrk(tile) => tile.codelet(),
            Self::Trsm(tile) => tile.codelet(),
            Self::Potrf(tile) => tile.codelet(),
            Self::Any(_) => Codelet {
                name: "task".into(),
                host: Some(NOTHING),
                opencl: None,
                library: None,
            },
        }
    }

    /// A codelet that computes nothing, with the name of the real one. A simulated
    /// device takes its precision from the OpenCL implementation.
    pub fn model(&self, precision: ProductPrecision) -> Codelet {
        Codelet {
            name: self.codelet().name,
            host: Some(NOTHING),
            opencl: Some(OpenClKernel {
                source: KernelSource::new("", "none", "nothing", ""),
                fp64: precision == ProductPrecision::Double,
                shape: Shape::Of(|_, _| NdRange::new(vec![1])),
            }),
            library: None,
        }
    }
}

/// Computes nothing.
const NOTHING: HostCode = HostCode::Kernel(|_, _, _| {});

/// Codelets by key: few, so that a search is short.
pub(in crate::workload) struct Codelets<K>(Vec<(K, Arc<Codelet>)>);

impl<K> Default for Codelets<K> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: PartialEq> Codelets<K> {
    /// The codelet of a key, made once, so that it is compiled and measured once.
    pub fn get(&mut self, key: K, make: impl FnOnce(&K) -> Codelet) -> Arc<Codelet> {
        let at = self.0.iter().position(|(known, _)| *known == key);
        let at = at.unwrap_or_else(|| {
            let codelet = Arc::new(make(&key));
            self.0.push((key, codelet));
            self.0.len() - 1
        });
        Arc::clone(&self.0[at].1)
    }
}

// The contents of given data: random, and a function of the seed, the datum and the
// position alone.

/// The numbers of a given tile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Numbers {
    /// Uniform from -1 to 1.
    Uniform,
    /// The same, with this much added on the diagonal.
    Diagonal(f64),
}

impl Numbers {
    /// The contents of a tile with so many columns.
    pub(super) fn contents(self, seed: u64, columns: u32, element: Element) -> Contents {
        let number = move |index: usize| {
            let diagonal = match self {
                Self::Diagonal(more) if index.is_multiple_of(columns as usize + 1) => more,
                _ => 0.0,
            };
            2.0 * uniform(seed, index as u64) - 1.0 + diagonal
        };
        Contents::filled(move |bytes| element.store((0..).map(number), bytes))
    }
}

/// Random bytes.
pub(super) fn bytes(seed: u64) -> Contents {
    Contents::filled(move |bytes| {
        for (at, byte) in (0..).zip(bytes) {
            *byte = (256.0 * uniform(seed, at)) as u8;
        }
    })
}

/// The seed of a datum's contents.
pub(super) fn seed(seed: u64, datum: usize) -> u64 {
    seed.rotate_left(32) ^ datum as u64
}

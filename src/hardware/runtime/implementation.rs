//! What is known of the implementations of codelets: which one of two is faster.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

/// An implementation of a codelet on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Implementation {
    /// Our OpenCL kernels.
    Own,
    /// Calls of a library.
    Library,
}

/// Both implementations of a codelet on a device, for launches of about the same sizes.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Comparison {
    pub device: String,
    pub codelet: String,
    /// The sizes on which the time depends, each rounded up to a power of two.
    pub sizes: Vec<u64>,
    /// The library and its version, such as `cublas-130002`; null if it is not found.
    pub library: Option<String>,
    /// Seconds of a launch by our kernels and by the library, the least of the measured ones;
    /// null where none was measured. Of launches of different sizes, scaled by their
    /// operations to those of the first one.
    pub own_seconds: Option<f64>,
    pub library_seconds: Option<f64>,
    /// The one that serves from now on; null while both are measured.
    pub serves: Option<Implementation>,
    /// Why the library does not serve, if it cannot.
    pub refusal: Option<String>,
}

impl Comparison {
    /// The faster one of both, if both were measured.
    pub fn faster(&self) -> Option<Implementation> {
        let (own, library) = (self.own_seconds?, self.library_seconds?);
        Some(match library < own {
            true => Implementation::Library,
            false => Implementation::Own,
        })
    }
}

impl fmt::Display for Implementation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Own => "own",
            Self::Library => "library",
        })
    }
}

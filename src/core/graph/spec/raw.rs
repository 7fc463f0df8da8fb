//! The fields of a kernel file as they are written: PySchedCL's, and our additions.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::fields::{Amount, Amounts, Count, Flag};

/// Fields that the authors' tools write and that have no meaning here: `ecos` and
/// `globalChunkFactor` control their splitting, `create` and `enq_*` their copies.
pub const IGNORED_FIELDS: [&str; 8] = [
    "ecos",
    "globalChunkFactor",
    "localChunkFactor",
    "create",
    "enq_write",
    "enq_read",
    "chunk",
    "persistence",
];

#[derive(Clone, Debug, Deserialize)]
pub struct RawKernel {
    pub src: String,
    pub name: String,
    #[serde(rename = "workDimension")]
    pub dimension: Count,
    #[serde(rename = "globalWorkSize")]
    pub global: Amounts,
    #[serde(rename = "localWorkSize", default)]
    pub local: Option<Amounts>,
    #[serde(rename = "inputBuffers", default)]
    pub inputs: Vec<RawBuffer>,
    #[serde(rename = "outputBuffers", default)]
    pub outputs: Vec<RawBuffer>,
    #[serde(rename = "ioBuffers", default)]
    pub both: Vec<RawBuffer>,
    #[serde(rename = "varArguments", default)]
    pub scalars: Vec<RawScalar>,
    #[serde(rename = "localArguments", default)]
    pub locals: Vec<RawLocal>,
    /// Macros of `-D`; the values are expressions or names of types.
    #[serde(rename = "macros_values", default)]
    pub macros: BTreeMap<String, Value>,
    #[serde(rename = "symbolicVariables", default)]
    pub symbols: BTreeMap<String, Amount>,
    /// 0, all on the CPU, to 10, all on the GPU.
    #[serde(default)]
    pub partition: Option<Amount>,
    /// A symbol that many of the authors' files use.
    #[serde(default)]
    pub dataset: Option<Amount>,
    #[serde(default)]
    pub id: Option<Count>,
    /// Kernels that must end first, in a list of kernels.
    #[serde(default)]
    pub depends: Vec<Count>,
    /// The component's number, in a list of kernels.
    #[serde(default)]
    pub task: Option<Count>,
    /// `cpu` or `gpu`.
    #[serde(default)]
    pub dev: Option<String>,
    #[serde(flatten)]
    pub others: BTreeMap<String, Value>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct RawBuffer {
    #[serde(rename = "type")]
    pub element: String,
    /// In elements.
    pub size: Amount,
    pub pos: Count,
    /// Whether it is divided like the work.
    #[serde(rename = "break", default)]
    pub divided: Flag,
    /// The kernel that makes it, and its position there.
    #[serde(default)]
    pub from: Option<RawFrom>,
    #[serde(flatten)]
    pub others: BTreeMap<String, Value>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct RawFrom {
    pub kernel: Count,
    pub pos: Count,
}

#[derive(Clone, Debug, Deserialize)]
pub struct RawScalar {
    #[serde(rename = "type")]
    pub element: String,
    pub pos: Count,
    pub value: Amount,
    #[serde(flatten)]
    pub others: BTreeMap<String, Value>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct RawLocal {
    #[serde(rename = "type")]
    pub element: String,
    pub pos: Count,
    /// In elements.
    pub size: Amount,
    #[serde(flatten)]
    pub others: BTreeMap<String, Value>,
}

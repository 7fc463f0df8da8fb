//! Specification files in temporary folders.

use std::fs;
use std::path::{Path, PathBuf};

use pdawl_api::expression::{Number, Symbols};

/// A temporary folder, removed when it is dropped.
pub struct Folder(tempfile::TempDir);

impl Folder {
    /// A folder with these files.
    pub fn with(files: &[(&str, &str)]) -> Self {
        let folder = Self(tempfile::tempdir().expect("a folder"));
        for (name, text) in files {
            let path = folder.path(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
            fs::write(path, text).expect("a file");
        }
        folder
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Path of the specification file under test.
    pub fn spec(&self) -> PathBuf {
        self.path("spec.json")
    }
}

/// Path of an example in kernels/examples.
pub fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("kernels/examples")
        .join(name)
}

pub fn symbols(pairs: &[(&str, i64)]) -> Symbols {
    (pairs.iter())
        .map(|(name, n)| ((*name).to_owned(), Number::Int(*n)))
        .collect()
}

/// A source with one kernel of four arguments.
pub const SOURCE: &str = "__kernel void scale(__global const float *in, __global float *out,
                    __local float *part, int n) {
    part[get_local_id(0)] = in[get_global_id(0)];
    if (get_global_id(0) < n) out[get_global_id(0)] = 2 * part[get_local_id(0)];
}
";

/// The specification of [`SOURCE`].
pub const SPEC: &str = r#"{
  "src": "scale.cl",
  "name": "scale",
  "workDimension": 1,
  "globalWorkSize": "[dataset]",
  "localWorkSize": "[TS]",
  "inputBuffers": [{"type": "float", "size": "dataset", "pos": 0, "break": 1}],
  "outputBuffers": [{"type": "float", "size": "dataset", "pos": 1, "break": 1}],
  "localArguments": [{"type": "float", "size": "TS", "pos": 2}],
  "varArguments": [{"type": "int", "value": "partition_round(dataset, size_percent)", "pos": 3}],
  "macros_values": {"TS": "TS"},
  "symbolicVariables": {"dataset": 64, "TS": 8},
  "partition": 3
}"#;

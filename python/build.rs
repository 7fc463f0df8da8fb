//! Links the OpenCL layer, which is built with the module, to the folder from which maturin takes
//! a wheel's other files.

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let name = "libpdawl_opencl.so";
    let out = env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?;
    let link = PathBuf::from(out).join(name);
    // The layer is made later.
    let _ = fs::remove_file(&link);
    symlink(format!("../../../deps/{name}"), link)
}

//! Tells the program what it was built from, so that nodes of one run can compare it: a
//! checksum of the sources. It says more than a commit, as it also knows what is not
//! committed, and it is there where no repository is.

use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    const ROOT: &str = "../..";
    let root = Path::new(ROOT);
    let mut files = vec![root.join("Cargo.toml")];
    for folder in ["src", "kernels", "profiler/src"] {
        println!("cargo::rerun-if-changed={ROOT}/{folder}");
        gather(&root.join(folder), &mut files);
    }
    println!("cargo::rerun-if-changed={ROOT}/Cargo.toml");
    files.sort();
    let mut sum = Sum(0xcbf2_9ce4_8422_2325);
    for file in files {
        sum.add(file.to_string_lossy().as_bytes());
        // A file that cannot be read fails the build elsewhere, with its reason.
        sum.add(&fs::read(&file).unwrap_or_default());
    }
    println!("cargo::rustc-env=PDAWL_SOURCES={:016x}", sum.0);
}

/// The files in a folder.
fn gather(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => gather(&path, files),
            false => files.push(path),
        }
    }
}

/// FNV-1a of 64 bits, which all versions of Rust compute alike.
struct Sum(u64);

impl Sum {
    fn add(&mut self, bytes: &[u8]) {
        let length = bytes.len().to_le_bytes();
        for byte in length.iter().chain(bytes) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

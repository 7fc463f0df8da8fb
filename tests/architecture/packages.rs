//! How many packages a crate of the workspace brings.

use std::collections::BTreeSet;
use std::process::Command;

/// Most packages of others for a crate without its default features.
const MOST: usize = 56;

/// Asserts that a crate without its default features brings no more than [`MOST`] packages,
/// as a library that depends on it builds all of them.
pub fn assert_few(package: &str) {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["tree", "--offline", "--locked", "--edges", "normal"]);
    cargo.args(["--prefix", "none", "--no-default-features", "--package"]);
    cargo.arg(package).current_dir(env!("CARGO_MANIFEST_DIR"));
    let listed = cargo.output().expect("cargo starts");
    let errors = String::from_utf8_lossy(&listed.stderr);
    assert!(
        listed.status.success(),
        "cargo tree of {package} fails: {errors}"
    );
    let listed = String::from_utf8_lossy(&listed.stdout);
    let names = listed
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    let (ours, names): (BTreeSet<&str>, BTreeSet<&str>) =
        names.partition(|n| n.starts_with("pdawl"));
    assert!(ours.contains(package), "cargo tree lists no {package}");
    assert!(
        names.len() <= MOST,
        "{package} brings {} packages without its default features, and may bring {MOST}; put \
         what a library does not need behind a feature (docs/dependencies.md): {names:?}",
        names.len()
    );
}

//! Compares the imports of the sources with the table of layers in `src/lib.rs`.

#[path = "../../tests/architecture/imports.rs"]
mod imports;
#[path = "../../tests/architecture/parts.rs"]
mod parts;
#[path = "../../tests/architecture/tokens.rs"]
mod tokens;

use std::fs;
use std::path::Path;

use imports::Sources;
use parts::ArchitecturePart;

const NAME: &str = "pdawl_opencl";

#[test]
fn modules_use_only_those_below_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = folder.join("src/lib.rs");
    let mut sources = Sources::default();
    sources.add(NAME, &root, &[NAME]);
    let page = fs::read_to_string(root).expect("src/lib.rs can be read");
    let lines = page.lines().filter_map(|line| line.strip_prefix("//! "));
    let parts = parts::parts(&lines.collect::<Vec<_>>().join("\n"), "module");
    let module = |part: &ArchitecturePart| {
        let path = [NAME].into_iter().chain(part.name.split('/'));
        Some(path.map(str::to_owned).collect())
    };
    let violations = parts::violations(&parts, &sources, module, folder);
    assert!(
        violations.is_empty(),
        "src/lib.rs does not allow:\n{violations}"
    );
}

#[test]
fn all_locks_have_ranks() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs");
    let mut sources = Sources::default();
    sources.add(NAME, &root, &[NAME, "std"]);
    let of_std = |to: &[String]| {
        let lock = ["Mutex", "RwLock", "Condvar"]
            .iter()
            .any(|lock| to.contains(&(*lock).into()));
        to[0] == "std" && lock
    };
    let plain = sources.imports.iter().filter(|import| of_std(&import.to));
    let plain: Vec<_> = plain
        .filter(|import| import.from != [NAME, "lock"])
        .collect();
    assert!(plain.is_empty(), "locks without ranks: {plain:#?}");
    // Those of `lock` itself are found.
    assert!(sources.imports.iter().any(|import| of_std(&import.to)));
}

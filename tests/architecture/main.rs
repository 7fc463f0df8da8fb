//! Compares the imports of the sources with the table of parts in ARCHITECTURE.md, and counts
//! the packages of the libraries, and the files that pages name; `wire-mpi/tests` counts those of the wire.

mod command_line;
mod imports;
mod interface;
mod packages;
mod pages;
mod parts;
mod tokens;

use std::fs;
use std::path::Path;

use imports::Sources;
use parts::ArchitecturePart;

/// The crates of the workspace: name in paths, folder, and files of roots.
const CRATES: [(&str, &str, &[&str]); 13] = [
    ("pdawl", "", &["src/main.rs"]),
    ("pdawl_api", "src/api", &["src/api/lib.rs"]),
    ("pdawl_base", "src/base", &["src/base/lib.rs"]),
    ("pdawl_c", "src/c", &["src/c/lib.rs"]),
    ("pdawl_cli", "src/cli", &["src/cli/lib.rs"]),
    ("pdawl_codelet", "src/codelet", &["src/codelet/lib.rs"]),
    ("pdawl_core", "src/core", &["src/core/lib.rs"]),
    ("pdawl_engine", "src/engine", &["src/engine/lib.rs"]),
    ("pdawl_hardware", "src/hardware", &["src/hardware/lib.rs"]),
    (
        "pdawl_modelling",
        "src/modelling",
        &["src/modelling/lib.rs"],
    ),
    ("pdawl_opencl", "opencl-layer", &["opencl-layer/src/lib.rs"]),
    ("pdawl_profiler", "profiler", &["profiler/src/lib.rs"]),
    ("pdawl_wire_mpi", "wire-mpi", &["wire-mpi/src/lib.rs"]),
];

#[test]
fn parts_use_only_the_parts_below_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let names = CRATES.map(|(name, _, _)| name);
    let mut sources = Sources::default();
    for (name, _, roots) in CRATES {
        for root in roots {
            sources.add(name, &folder.join(root), &names);
        }
    }
    let page = folder.join("ARCHITECTURE.md");
    let page = fs::read_to_string(page).expect("ARCHITECTURE.md can be read");
    let parts = parts::parts(&page, "part");
    let module = |part: &ArchitecturePart| {
        if part.name == "kernels" {
            // OpenCL sources.
            assert!(
                folder.join("kernels").is_dir(),
                "there is no folder kernels/"
            );
            return None;
        }
        // The crate whose folder holds the part. The root's parts are in `src`.
        let file = folder.join("src").join(&part.name);
        let within = match file.exists() || file.with_extension("rs").exists() {
            true => format!("src/{}", part.name),
            false => part.name.clone(),
        };
        let crates = CRATES
            .iter()
            .filter(|(_, folder, _)| within.starts_with(folder));
        let (name, folder, _) = crates.max_by_key(|(_, folder, _)| folder.len())?;
        let rest = within.strip_prefix(folder)?.trim_start_matches('/');
        let rest = rest
            .strip_prefix("src")
            .map_or(rest, |rest| rest.trim_start_matches('/'));
        let rest = rest.split('/').filter(|name| !name.is_empty());
        Some([*name].into_iter().chain(rest).map(str::to_owned).collect())
    };
    let violations = parts::violations(&parts, &sources, module, folder);
    assert!(
        violations.is_empty(),
        "ARCHITECTURE.md does not allow:\n{violations}"
    );
}

#[test]
fn files_that_pages_name_exist() {
    let missing = pages::missing(Path::new(env!("CARGO_MANIFEST_DIR")));
    assert!(missing.is_empty(), "there is no such file:\n{missing}");
}

#[test]
fn libraries_bring_few_packages() {
    packages::assert_few("pdawl");
    packages::assert_few("pdawl-opencl-layer");
}

/// A crate of a file and a folder, whose table has `high` above `low`.
fn violations_of(low: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        fs::write(folder.path().join(name), text).expect("the folder can be written");
    };
    fs::create_dir(folder.path().join("high")).expect("the folder can be written");
    write("lib.rs", "mod high;\nmod low;\n");
    write("high/mod.rs", "mod part;\npub use part::Thing;\n");
    write("high/part.rs", "use crate::low::f;\npub struct Thing;\n");
    write("low.rs", low);
    let mut sources = Sources::default();
    sources.add("name", &folder.path().join("lib.rs"), &["name"]);
    let table = "| part | owns |\n|---|---|\n| `high/part/` | |\n| `high/` | |\n| `low.rs` | |\n";
    let parts = parts::parts(table, "part");
    let module = |part: &ArchitecturePart| {
        let path = ["name"].into_iter().chain(part.name.split('/'));
        Some(path.map(str::to_owned).collect())
    };
    parts::violations(&parts, &sources, module, folder.path())
}

const OF_HIGH: &str = "high/mod.rs:2: high -> high/part (name::high::part::Thing)\n";

#[test]
fn every_way_to_import_is_found() {
    for (low, violation) in [
        (
            "\nuse crate::high::Thing;",
            "low.rs:2: low -> high (name::high::Thing)",
        ),
        (
            "pub use super::high::{\n  part,\n};",
            "low.rs:2: low -> high/part (name::high::part)",
        ),
        (
            "use crate::{high as a}; fn f() { a::part::g() }",
            "low.rs:1: low -> high (name::high)\nlow.rs:1: low -> high/part (name::high::part::g)",
        ),
        (
            "mod inner { fn f(_: super::super::high::Thing) {} }",
            "low.rs:1: low -> high (name::high::Thing)",
        ),
        (
            "fn f() { let _ = name::high::part::g::<u8>(); }",
            "low.rs:1: low -> high/part (name::high::part::g)",
        ),
        (
            "macro_rules! m { () => { $crate::high::Thing } }",
            "low.rs:1: low -> high (name::high::Thing)",
        ),
        (
            "#[cfg(not(test))] use crate::high::*;",
            "low.rs:1: low -> high (name::high)",
        ),
        (
            "use crate::other::f;",
            "low.rs:1: low -> no part (name::other::f)",
        ),
    ] {
        assert_eq!(
            violations_of(low),
            format!("{OF_HIGH}{violation}\n"),
            "{low}"
        );
    }
}

#[test]
fn what_is_no_import_is_not_found() {
    for low in [
        "// use crate::high::Thing;\n/* crate::high /* */ crate::high::f() */",
        r##"const TEXT: &str = r#"" crate::high::f() "#; const OTHER: &str = "\" crate::high::f";"##,
        "#[cfg(test)] mod tests { use crate::high::Thing; }",
        "#[cfg(test)] use crate::high::{Thing, part}; struct Own;",
        "fn f(c: char) -> bool { c == '\"' } pub(in crate::high) struct Own;",
        "fn f<'a>(own: &'a u8) -> impl Fn() + use<'a> { move || drop(own) } use self::f as g;",
        "#![cfg(test)] use crate::high::Thing;",
    ] {
        assert_eq!(violations_of(low), OF_HIGH, "{low}");
    }
}

#[test]
fn rows_without_sources_and_sources_without_row_are_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("lib.rs");
    fs::write(&root, "mod low { }\nmod other { use super::low; }\n").expect("it can be written");
    let mut sources = Sources::default();
    sources.add("name", &root, &["name"]);
    let parts = parts::parts("| part |\n|---|\n| `gone/` |\n| `low/` |\n", "part");
    let module = |part: &ArchitecturePart| Some(vec!["name".to_owned(), part.name.clone()]);
    assert_eq!(
        parts::violations(&parts, &sources, module, folder.path()),
        "gone: the table has it, the sources do not\n\
         name::other: no row of the table names it\n",
    );
}

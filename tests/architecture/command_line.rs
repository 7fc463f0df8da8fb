//! The command line stands on sessions: it names nothing of runtimes, engines and policies.

use std::fs;
use std::path::Path;

/// What it may name: errors, whose words it completes, and choices that options name.
fn may_be_named(name: &str) -> bool {
    name.ends_with("Error") || name == "NamedPolicy"
}

/// The names that follow `prefix` in a source, such as `A` and `B` of `prefix::x::{A, B}`.
fn named(source: &str, prefix: &str) -> Vec<String> {
    let statements = source.split(prefix).skip(1);
    let names = statements.flat_map(|rest| {
        let end = rest.find([';', ')', '(', '>', '<']).unwrap_or(rest.len());
        let path = &rest[..end];
        let last = path.rsplit_once("::{").map_or_else(
            || path.rsplit("::").next().unwrap_or(path),
            |(_, names)| names,
        );
        last.split([',', '}'])
            .map(|name| name.trim().to_owned())
            .filter(|name| !name.is_empty())
            .collect::<Vec<_>>()
    });
    names.collect()
}

fn sources(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        // `exec` starts other programs, and asks their OpenCL loader.
        if path.is_dir() && !path.ends_with("exec") {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("a source");
            found.push((path.display().to_string(), text));
        }
    }
}

#[test]
fn the_command_line_names_no_runtime_engine_or_policy() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli");
    let mut all = Vec::new();
    sources(&folder, &mut all);
    assert!(all.len() > 50, "{} sources", all.len());
    for part in ["engine", "runtime", "policy"] {
        for (path, text) in &all {
            for name in named(text, &format!("pdawl::{part}")) {
                assert!(may_be_named(&name), "{path}: {name} of pdawl::{part}");
            }
        }
    }
}

#[test]
fn names_are_found_in_any_form() {
    let source = "use pdawl::engine::a::{One,\n    Two};\nuse pdawl::engine::Three;\nlet x = \
                  pdawl::engine::b::four(1);";
    let found = named(source, "pdawl::engine");
    assert_eq!(found, ["One", "Two", "Three", "four"]);
}

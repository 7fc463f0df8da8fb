//! The command line stands on sessions: it names nothing of runtimes, engines and policies.

use std::path::Path;

use crate::imports::Sources;

/// The parts of the library that it does not name.
const PARTS: [&str; 3] = ["engine", "policy", "runtime"];

/// What it may name of them: errors, whose words it completes, and what options name.
fn may_be_named(name: &str) -> bool {
    name.ends_with("Error") || name == "NamedPolicy"
}

/// What sources name of these parts, and may not.
fn wrongly_named(sources: &Sources) -> Vec<String> {
    let imports = sources.imports.iter();
    // `exec` starts other programs, and asks their OpenCL loader.
    let imports = imports.filter(|import| !import.from.contains(&"exec".to_owned()));
    let wrong = imports.filter(|import| match &import.to[..] {
        [library, part, names @ ..] => {
            let is_of_part = library == "pdawl_api" && PARTS.contains(&part.as_str());
            // An error's variant is the error's.
            is_of_part && !names.iter().any(|name| may_be_named(name))
        }
        _ => false,
    });
    wrong
        .map(|import| {
            let (file, line) = (import.file.display(), import.line);
            format!("{file}:{line}: {}", import.to.join("::"))
        })
        .collect()
}

fn command_line(root: &Path) -> Sources {
    let mut sources = Sources::default();
    sources.add("pdawl_cli", root, &["pdawl_api", "pdawl_cli"]);
    sources
}

#[test]
fn the_command_line_names_no_runtime_engine_or_policy() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli/lib.rs");
    let sources = command_line(&root);
    assert!(
        sources.modules.len() > 40,
        "{} modules",
        sources.modules.len()
    );
    let wrong = wrongly_named(&sources);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_it_may_not_name_is_found_in_any_form() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("lib.rs");
    for (source, number) in [
        ("use pdawl_api::engine::cluster::{ClusterError, Node};", 1),
        (
            "use pdawl_api::engine;\nfn f() { engine::graph::bound(); }",
            2,
        ),
        (
            "use pdawl_api::{policy::Policy, runtime::{Runtime, RuntimeError}};",
            2,
        ),
        ("use pdawl_api::engine::cluster::Node as NodeError;", 1),
        ("fn f() -> pdawl_api::runtime::DeviceId { g() }", 1),
        ("use pdawl_api::policy::{MapError, NamedPolicy};", 0),
        ("fn f() { h(pdawl_api::runtime::RuntimeError::Unknown) }", 0),
        ("use pdawl_api::session::Session;", 0),
    ] {
        std::fs::write(&root, source).expect("a source");
        let wrong = wrongly_named(&command_line(&root));
        assert_eq!(wrong.len(), number, "{source}: {wrong:?}");
    }
}

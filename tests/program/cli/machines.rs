//! `pdawl machine`: machine files that are measured, listed, shown, and refused.

use predicates::prelude::*;
use predicates::str::contains;

use crate::command::{Home, json, pdawl};

#[test]
fn the_machines_are_listed_and_shown() {
    let listing = json("machine list");
    let names: Vec<&str> = listing["machines"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|m| m["name"].as_str())
        .collect();
    for name in [
        "k20-32", "k20-40", "k40", "titan", "h200", "laptop", "m2070x2", "v100x1", "v100x2",
        "v100x4", "v100x7",
    ] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    assert_eq!(json("machine show h200")["name"], "h200");
}

#[test]
fn this_machine_is_measured_and_not_simulated() {
    let home = Home::new();
    let saved = home.json("machine save mine --copy-size 64MiB");
    assert_eq!(saved["schema"], "pdawl-saved/1");
    assert_eq!(
        (&saved["kind"], &saved["name"]),
        (&"machine".into(), &"mine".into())
    );
    assert!(std::path::Path::new(saved["file"].as_str().unwrap()).is_file());
    let shown = home.json("machine show mine");
    assert!(shown["host"]["memory_bandwidth"].as_f64().unwrap() > 1e8);
    let report = home.json("run stencil --machine mine --size 64 --steps 2");
    assert_eq!(report["machine"]["simulated"], false);
    assert_eq!(report["machine"]["name"], "mine");
}

#[test]
fn an_unknown_machine_is_reported_with_the_known_ones() {
    pdawl("run stencil --machine k41")
        .assert()
        .code(1)
        .stderr(contains("`k41`").and(contains("k40")));
    pdawl("machine show k41").assert().code(1);
}

#[test]
fn a_machine_file_is_shown_and_asked_by_its_path() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/datasets/machines/k40.toml");
    assert_eq!(
        json(&format!("machine show {path}")),
        json("machine show k40")
    );
    let check = json(&format!("model check k40 --machine {path}"));
    assert_eq!(check["fits"]["fits"], true);
    for none in ["./none.toml", "none.toml", "./none"] {
        pdawl(&format!("machine show {none}"))
            .assert()
            .code(1)
            .stderr(contains(format!("{none}: cannot be read")).and(contains("machine list")));
    }
}

#[test]
fn a_machine_cannot_have_any_name() {
    pdawl("machine save a/b")
        .assert()
        .code(1)
        .stderr(contains("cannot name a machine"));
}

#[test]
fn a_machine_file_with_a_missing_field_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let whole = pdawl("machine show k40").assert().success();
    let text = String::from_utf8(whole.get_output().stdout.clone()).unwrap();
    let without: Vec<&str> = text.lines().filter(|l| !l.starts_with("cores =")).collect();
    std::fs::write(folder.path().join("broken.toml"), without.join("\n")).unwrap();
    pdawl("run stencil --machine broken")
        .env("PDAWL_MACHINES", folder.path())
        .assert()
        .code(1)
        .stderr(contains("broken.toml").and(contains("cores")));
}

#[test]
fn a_file_that_is_no_machine_is_reported_with_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let whole = include_str!("../../../datasets/machines/k40.toml");
    let many = whole.replace("cores = ", "cores = \"many\" # ");
    for (name, contents, part) in [
        (
            "type.toml",
            many.as_bytes(),
            "invalid type: string \"many\"",
        ),
        ("words.toml", b"this is ][ not", "line 1"),
        ("other.toml", b"name = 'x'", "the first key must be"),
        ("bytes.toml", b"\xff\xfe\x00", "UTF-8"),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, contents).unwrap();
        pdawl(&format!("run stencil --machine {}", path.display()))
            .assert()
            .code(1)
            .stdout("")
            .stderr(contains(name).and(contains(part)));
    }
    pdawl("run stencil --machine /nonexistent/pdawl.toml")
        .assert()
        .code(1)
        .stderr(contains("/nonexistent/pdawl.toml: cannot be read"));
}

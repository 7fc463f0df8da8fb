//! Model files: exported, imported, shown, and refused when damaged.

use std::fs;

use pdawl_profiler::bundle::Bundle;
use predicates::prelude::*;
use predicates::str::contains;

use super::{refuses, with_model};

#[test]
fn models_travel_as_files_and_hide_nothing() {
    let home = with_model();
    home.pdawl("model export k40 out.json").assert().success();
    assert_eq!(
        fs::read(home.path("out.json")).unwrap(),
        fs::read(home.model("k40")).unwrap()
    );
    refuses(
        &home,
        "model export k40 out.json",
        &["out.json is there already", "--force"],
    );
    refuses(
        &home,
        "model import out.json",
        &["k40.json is there already", "--force"],
    );
    home.pdawl("model import out.json --force")
        .assert()
        .success();
    home.pdawl("model import out.json --name lab")
        .assert()
        .success()
        .stdout(contains("lab of k40 (simulated) kept in"));
    assert_eq!(Bundle::read(&home.model("lab")).unwrap().name, "lab");
    let imported = home.json("model import out.json --name lab --force");
    assert_eq!(
        (&imported["schema"], &imported["kind"], &imported["name"]),
        (&"pdawl-saved/1".into(), &"model".into(), &"lab".into())
    );
    let file = imported["file"].as_str().unwrap();
    assert_eq!(std::path::Path::new(file), home.model("lab"));
    home.pdawl("model check lab --machine k40")
        .assert()
        .success()
        .stdout(contains("fits k40"));
    home.pdawl("model check out.json --machine titan")
        .assert()
        .success()
        .stdout(contains("does not fit titan").and(contains("pdawl model adapt")));
    let shown = home.pdawl("model show ./out.json").assert().success();
    let by_name = home.pdawl("model show k40").assert().success();
    let lines = |text: &[u8]| {
        let text = String::from_utf8_lossy(text).into_owned();
        let lines = text.lines().filter(|line| !line.contains("Kept in"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        lines(&shown.get_output().stdout),
        lines(&by_name.get_output().stdout)
    );
    // A file is accepted wherever a model's name is.
    let predicted = home.json("predict stencil --machine titan --size 900 --model out.json");
    assert_eq!(predicted["model"]["name"], "k40");
    let run = home.json("run stencil --machine titan --size 900 --steps 2 --model ./out.json");
    assert_eq!(run["details"]["model"]["name"], "k40");
    refuses(
        &home,
        "run stencil --machine titan --model ./none.json",
        &["./none.json: cannot be read"],
    );
    refuses(
        &home,
        "model export k40 . --force",
        &[".: cannot be written: it is a folder"],
    );
    refuses(
        &home,
        "model export k40 none/out.json",
        &["none/out.json: cannot be written: its folder does not exist; give a path"],
    );
    refuses(
        &home,
        "model import out.json --name a/b",
        &["`a/b` cannot name a model"],
    );
    refuses(
        &home,
        "model show none",
        &["no model is called `none`", "k40, lab"],
    );
}

#[test]
fn files_that_are_no_models_are_refused_with_the_reason() {
    let home = with_model();
    let whole = fs::read_to_string(home.model("k40")).unwrap();
    let path = home.path("other.json");
    for (changed, words) in [
        (
            whole.replacen("\"rows\":144", "\"rows\":145", 1),
            vec!["was changed or cut off", "checksum"],
        ),
        (
            whole[..whole.len() / 2].to_owned(),
            vec!["cut off or no JSON"],
        ),
        (
            whole.replacen("pdawl-model/1", "pdawl-model/2", 1),
            vec!["made by pdawl", "`pdawl-model/2`", "update pdawl"],
        ),
        (
            "{\"format\": \"other\"}".to_owned(),
            vec!["is no pdawl model"],
        ),
        ("[1, 2]".to_owned(), vec!["is no pdawl model"]),
        (String::new(), vec!["cut off or no JSON"]),
    ] {
        assert_ne!(changed, whole, "{words:?}");
        fs::write(&path, changed).unwrap();
        for command in ["import", "check", "adapt --machine titan"] {
            let (command, options) = command.split_once(' ').unwrap_or((command, ""));
            refuses(
                &home,
                &format!("model {command} other.json {options}"),
                &words,
            );
        }
    }
    refuses(
        &home,
        "model import none.json",
        &["none.json", "cannot be read"],
    );
    // A broken file among the user's models does not hide the others.
    fs::write(home.model("broken"), "{").unwrap();
    home.pdawl("model list")
        .assert()
        .success()
        .stdout(contains("k40"))
        .stderr(contains("broken.json"));
}

//! Every policy by its name, wherever tasks are scheduled: the registry is one.

use predicates::str::contains;

use crate::command::{json, pdawl};

/// Commands that take one policy, and that take a list.
const ONE: [&str; 4] = [
    "run transformer",
    "run dag kernels/examples/head.dag",
    "run matmul --size 8",
    "run cholesky --size 8",
];
const LIST: [&str; 2] = ["bench tasks --set matmul2d --n 2", "bench transformer"];

/// What the program says of a name that it does not know.
fn refusal(command: &str) -> String {
    let output = pdawl(command).assert().code(2).get_output().clone();
    let said = String::from_utf8(output.stderr).unwrap();
    let begin = said.find("`fifo`").expect(&said);
    let line = said[begin..].lines().next().unwrap_or_default();
    line.to_owned()
}

/// All policies, as the program names them.
fn all() -> Vec<String> {
    let said = refusal("run transformer --policy fifo");
    let (_, names) = said.split_once("known are ").expect(&said);
    let (names, _) = names.split_once(';').expect(&said);
    let names = names.replace(" and ", ", ");
    let names: Vec<String> = names.split(", ").map(str::to_owned).collect();
    for name in ["adaptive", "clustering", "heft", "locality", "darts"] {
        assert!(names.iter().any(|known| known == name), "{said}");
    }
    names
}

#[test]
fn all_commands_know_the_same_policies() {
    let said = refusal("run transformer --policy fifo");
    for command in ONE {
        assert_eq!(
            refusal(&format!("{command} --policy fifo")),
            said,
            "{command}"
        );
    }
    for command in LIST {
        assert_eq!(
            refusal(&format!("{command} --policies fifo")),
            said,
            "{command}"
        );
    }
    let help = |command: &str| {
        let output = pdawl(&format!("{command} --help")).assert().success();
        String::from_utf8(output.get_output().stdout.clone()).unwrap()
    };
    let commands = ONE.iter().chain(&LIST).map(|command| {
        let words: Vec<&str> = command.split(' ').take(2).collect();
        words.join(" ")
    });
    for command in commands {
        let help = help(&command);
        for name in all() {
            assert!(help.contains(&format!("{name}: ")), "{command}: {name}");
        }
    }
}

#[test]
fn every_policy_runs_a_transformer_on_a_simulated_machine() {
    for policy in all() {
        let line = "run transformer --machine k40 --heads 3 --beta 19 --layers 2 --verify";
        let report = json(&format!("{line} --policy {policy}"));
        assert_eq!(report["policy"], policy.as_str());
        assert_eq!(report["verification"]["right"], true, "{policy}");
        let small = "run transformer --machine k40 --heads 4 --beta 32 --verify --gpu-memory 64KiB";
        let report = json(&format!("{small} --policy {policy}"));
        assert_eq!(report["verification"]["right"], true, "{policy}");
    }
}

#[test]
fn every_policy_multiplies_and_factors_on_a_simulated_machine() {
    for policy in all() {
        for line in [
            "run matmul --rows 37 --columns 50 --depth 41 --tile 16",
            "run cholesky --size 61 --tile 16 --precision f64",
        ] {
            let report = json(&format!("{line} --machine k40 --verify --policy {policy}"));
            assert_eq!(report["policy"], policy.as_str(), "{line}");
            assert_eq!(report["verification"]["right"], true, "{line} {policy}");
        }
    }
}

#[test]
fn comparisons_take_every_policy() {
    let all = all();
    let list = all.join(",");
    let tasks = "bench tasks --set cholesky --n 4 --dependencies --machine v100x2";
    let report = json(&format!("{tasks} --policies {list}"));
    let rows = report["rows"].as_array().unwrap();
    let names: Vec<&str> = rows
        .iter()
        .filter_map(|row| row["policy"].as_str())
        .collect();
    assert_eq!(names, all);
    let others: Vec<&str> = all
        .iter()
        .map(String::as_str)
        .filter(|n| *n != "clustering")
        .collect();
    let bench = "bench transformer --machine k40 --heads 2 --beta 16 --repeats 1 --most-queues 2";
    let report = json(&format!("{bench} --policies {} --verify", others.join(",")));
    let contenders = report["points"][0]["contenders"].as_array().unwrap();
    let names: Vec<&str> = contenders
        .iter()
        .filter_map(|one| one["name"].as_str())
        .collect();
    let wanted: Vec<&str> = ["coarse", "clustering"]
        .into_iter()
        .chain(others)
        .chain(["batch"])
        .collect();
    assert_eq!(names, wanted);
    assert!(
        contenders.iter().all(|one| one["right"] == true),
        "{contenders:?}"
    );
}

#[test]
fn what_a_policy_does_not_take_is_reported() {
    for (line, part) in [
        (
            "run transformer --policy locality --map h_cpu=1",
            "--map is for --policy clustering",
        ),
        (
            "run transformer --policy darts --search",
            "--search is for --policy clustering",
        ),
        (
            "run transformer --policy heft --window 4",
            "--window is not for --policy heft",
        ),
        (
            "run transformer --window 4",
            "--window is not for --policy adaptive",
        ),
        (
            "run matmul --size 8 --policy clustering --window 4",
            "--window is not for --policy clustering",
        ),
        (
            "run transformer --policy eager+luf",
            "eager has no variant `+luf`",
        ),
        (
            "bench transformer --policies eager,clustering",
            "clustering is always compared",
        ),
        (
            "bench transformer --policies eager,eager",
            "eager is named twice",
        ),
    ] {
        pdawl(line).assert().code(2).stderr(contains(part));
    }
    let line = "run transformer --machine k40 --heads 3 --beta 19 --verify --window 2";
    for policy in ["locality", "eager", "round-robin"] {
        let report = json(&format!("{line} --policy {policy}"));
        assert_eq!(report["verification"]["right"], true, "{policy}");
    }
}

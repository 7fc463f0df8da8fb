//! Every policy by its name, wherever tasks are scheduled: the registry is one.

use predicates::str::contains;

use crate::command::{json, pdawl};

/// Commands that take a policy.
const ONE: [&str; 5] = [
    "run transformer",
    "run dag kernels/examples/head.dag",
    "run matmul --size 8",
    "run cholesky --size 8",
    "run tasks --set matmul2d --n 2",
];

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
    let help = |command: &str| {
        let output = pdawl(&format!("{command} --help")).assert().success();
        String::from_utf8(output.get_output().stdout.clone()).unwrap()
    };
    let commands = ONE.iter().map(|command| {
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
    for run in [
        "run tasks --set cholesky --n 4 --dependencies --machine v100x2",
        "run transformer --machine k40 --heads 2 --beta 16 --verify",
    ] {
        let bench = json(&format!("bench --repeats 1 --vary policy={list} {run}"));
        let runs = bench["runs"].as_array().unwrap();
        let names = runs
            .iter()
            .filter_map(|run| run["report"]["policy"].as_str());
        assert_eq!(names.collect::<Vec<_>>(), all, "{run}");
    }
}

/// What differs between runs may be any words.
#[test]
fn batches_and_searches_are_compared() {
    use crate::command::process;

    let mut bench = process("bench --repeats 2");
    for case in [
        "--policy clustering --queues gpu=1,cpu=1",
        "--policy clustering --search",
        "--batch --policy clustering --search",
    ] {
        bench.args(["--case", case]);
    }
    bench.args("--vary heads=1,3 run transformer --machine k40 --beta 32 --verify".split(' '));
    let output = bench.args(["--format", "json"]).output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let runs = report["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 6);
    for run in runs {
        assert_eq!(run["report"]["verification"]["right"], true, "{run}");
        assert_eq!(run["report"]["machine"]["simulated"], true, "{run}");
    }
    for heads in runs.chunks(3) {
        assert_eq!(heads[2]["report"]["workload"]["parameters"]["batch"], true);
        // The search includes one queue, and these simulations have no noise.
        assert!(heads[1]["to_first"].as_f64().unwrap() >= 0.999);
    }
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
            "bench --vary policy=eager,eager run transformer",
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

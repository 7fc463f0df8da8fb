//! What each option of `pdawl run` changes on simulated machines and clusters. The table of
//! effects is that of the program's own tests, which compare it with all options that there are
//! and with those that are refused.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::command::Home;

include!("../fixtures/option_effects.rs");

/// Workloads with the least that they need, and sizes that take no time.
const WORKLOADS: [(&str, &str); 11] = [
    ("stencil", "--size 256"),
    ("spmv", "--matrix uniform:200,3"),
    ("pagerank", "--matrix uniform:200,3"),
    ("transformer", "--heads 2 --beta 64"),
    ("matmul", "--size 256"),
    ("cholesky", "--size 256"),
    ("tasks", "--set cholesky --n 4"),
    ("convolution", "--size 256 --filter 3"),
    ("lu", "--size 256"),
    ("fft", "--size 256"),
    ("sort", "--size 1000"),
];

/// Places without real devices.
const SIMULATED: [(char, &str); 3] = [
    ('S', "--machine k40"),
    ('O', "--cluster four --nodes 1"),
    ('C', "--cluster four"),
];

/// An option with its value, and what shows its effect.
struct Effect {
    option: &'static str,
    value: &'static str,
    shown: &'static str,
}

impl Effect {
    /// The words of a command line, without those that are given already.
    fn words(&self) -> String {
        format!("--{} {}", self.option, self.value)
    }

    /// Asserts that it has changed a run.
    fn assert_shown(&self, line: &str, home: &Home, before: &Value, after: &Value) {
        let option = self.option;
        if self.shown.starts_with('/') {
            let (before, after) = (before.pointer(self.shown), after.pointer(self.shown));
            assert!(after.is_some(), "{line}: there is no {}", self.shown);
            assert_ne!(before, after, "{line}: --{option} does nothing");
        } else if let Some(text) = self.shown.strip_prefix('~') {
            let title = after["workload"]["title"].as_str().unwrap_or_default();
            assert!(title.contains(text), "{line}: --{option}: {title}");
        } else {
            let file = home.path(self.shown);
            assert!(file.is_file(), "{line}: --{option} writes nothing");
        }
    }
}

/// The effects of options of a workload at a place that one run each can show.
fn effects(workload: &str, place: char) -> Vec<Effect> {
    let rows = EFFECTS.iter().filter(|(_, of, at, value, _)| {
        let mut named = of.split_whitespace().peekable();
        let is_of = named.peek().is_none() || named.any(|name| name == workload);
        is_of && at.contains(place) && *value != "-"
    });
    rows.map(|(option, _, _, value, shown)| Effect {
        option,
        value,
        shown,
    })
    .collect()
}

/// The long names of a workload's options.
fn options(workload: &str) -> BTreeSet<String> {
    let home = Home::new();
    let mut help = home.pdawl(&format!("run {workload} --help"));
    let help = String::from_utf8(help.output().unwrap().stdout).unwrap();
    let words = help.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    let names = words.filter_map(|word| word.strip_prefix("--"));
    names.map(str::to_owned).collect()
}

/// Runs a workload with few options at once, of which no two show in the same place.
fn check(workload: &str, least: &str) {
    let all = options(workload);
    let places = SIMULATED
        .into_iter()
        .filter(|(place, _)| *place == 'S' || all.contains("cluster"));
    for (place, at) in places {
        let least: Vec<&str> = least.split_whitespace().collect();
        let mut left = effects(workload, place);
        left.retain(|effect| all.contains(effect.option));
        let plain = format!("run {workload} {at}");
        let before = Home::new().json(&format!("{plain} {}", least.join(" ")));
        while !left.is_empty() {
            let mut shown = BTreeSet::new();
            let (now, later) = left
                .into_iter()
                .partition::<Vec<_>, _>(|effect| shown.insert(effect.shown));
            left = later;
            let words = now.iter().map(Effect::words).collect::<Vec<_>>().join(" ");
            // What an option of these replaces is not given twice.
            let replaces = |name: &str| {
                let name = name.trim_start_matches('-');
                words.split_whitespace().any(|word| {
                    word == format!("--{name}")
                        || name == "size" && ["--nx", "--rows"].contains(&word)
                        || name == "nodes" && word == "--nodes"
                })
            };
            let kept = |words: &[&str]| {
                let pairs = words.chunks(2).filter(|pair| !replaces(pair[0]));
                pairs
                    .map(|pair| pair.join(" "))
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            let at: Vec<&str> = at.split_whitespace().collect();
            let line = format!("run {workload} {} {} {words}", kept(&at), kept(&least));
            let home = Home::new();
            let after = home.json(&line);
            for effect in &now {
                effect.assert_shown(&line, &home, &before, &after);
            }
        }
    }
}

#[test]
fn options_change_runs_that_several_devices_share() {
    for (workload, least) in &WORKLOADS[..3] {
        check(workload, least);
    }
}

#[test]
fn options_change_runs_of_graphs() {
    for (workload, least) in &WORKLOADS[3..7] {
        check(workload, least);
    }
}

#[test]
fn options_change_runs_over_spaces() {
    for (workload, least) in &WORKLOADS[7..] {
        check(workload, least);
    }
}

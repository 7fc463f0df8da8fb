//! `pdawl train` and `pdawl model` as their users meet them, on simulated
//! machines; and that nothing is overwritten when they fail.

mod learned;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use assert_cmd::Command;
use learned::{CODELET, machine, model, samples};
use pdawl::model::evaluate::evaluate;
use pdawl::model::training::{About, Request, bundle, fit_all};
use pdawl_profiler::Sample;
use pdawl_profiler::bundle::Bundle;
use pdawl_profiler::dataset::{self, Dataset, Provenance};
use pdawl_profiler::train::{Family, Recipe};
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;

/// A user's directories.
struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("models")).unwrap();
        fs::create_dir(folder.path().join("datasets")).unwrap();
        Self { folder }
    }

    /// A home with a model of `k40`.
    fn with_model() -> Self {
        let home = Self::new();
        let machine = machine("k40");
        let mut bundle = model(
            &machine,
            &samples(&machine, |_| 1.0),
            &[Family::PriorConstant],
        );
        bundle.name = "k40".into();
        bundle.write(&home.model("k40")).unwrap();
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn model(&self, name: &str) -> PathBuf {
        self.path("models").join(format!("{name}.json"))
    }

    fn dataset(&self, name: &str) -> PathBuf {
        self.path("datasets").join(format!("{name}.csv"))
    }

    /// `pdawl` with these words, in this home.
    fn pdawl(&self, line: &str) -> Command {
        let mut command = Command::cargo_bin("pdawl").unwrap();
        command.args(line.split_whitespace());
        command.current_dir(self.folder.path());
        command.env("PDAWL_MACHINES", "/nonexistent/pdawl-machines");
        command.env("PDAWL_MODELS", self.path("models"));
        command.env("PDAWL_DATASETS", self.path("datasets"));
        command.timeout(Duration::from_secs(300));
        command
    }

    fn json(&self, line: &str) -> Value {
        let assert = self
            .pdawl(&format!("{line} --format json"))
            .assert()
            .success();
        serde_json::from_slice(&assert.get_output().stdout).expect("JSON on standard output")
    }

    /// Runs a command that must fail with these words, and must leave every
    /// file as it was.
    fn refuses(&self, line: &str, words: &[&str]) {
        let before = contents(self.folder.path());
        let assert = self.pdawl(line).assert().code(1);
        let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        for word in words {
            assert!(said.contains(word), "{line}: no {word:?} in {said}");
        }
        assert!(
            contents(self.folder.path()) == before,
            "{line}: files have changed"
        );
    }
}

/// All files below a folder, with what is in them.
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => files.push((path.clone(), fs::read(&path).unwrap())),
            }
        }
    }
    files.sort();
    files
}

#[test]
fn training_keeps_a_model_and_says_that_it_is_simulated() {
    let home = Home::new();
    let line = "train --machine k40 --kinds cpu --configurations 10 --repeats 1 --max-size 3000";
    let report = home.json(&format!("{line} --plots charts --name mine"));
    assert_eq!(report["schema"], "pdawl-train/1");
    assert_eq!(report["model"], "mine");
    assert_eq!(report["simulated"], true);
    assert_eq!(report["measured_now"], 10);
    let group = &report["groups"][0];
    assert_eq!(
        (&group["kind"], &group["codelet"]),
        (&"cpu".into(), &CODELET.into())
    );
    for purpose in ["planning", "explaining"] {
        let validation = &group[purpose]["validation"];
        assert_eq!(validation["rows"], 10, "{purpose}");
        let names: Vec<&str> = (validation["baselines"].as_array().unwrap().iter())
            .map(|baseline| baseline["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["prior", "naive", "roofline"], "{purpose}");
        assert!(
            validation["candidates"].as_array().unwrap().len() >= 5,
            "{purpose}"
        );
    }
    for chart in report["plots"].as_array().unwrap() {
        let svg = fs::read_to_string(home.path(chart.as_str().unwrap())).unwrap();
        assert!(svg.contains("simulated"), "{chart}");
    }

    let bundle = Bundle::read(&home.model("mine")).unwrap();
    assert!(bundle.simulated);
    let trained_by = &bundle.provenance.pairs().last().unwrap().1;
    assert!(
        trained_by.starts_with("pdawl train --machine k40"),
        "{trained_by}"
    );
    let left = contents(&home.path("models"));
    assert_eq!(left.len(), 1, "nothing but the model is left");
    home.pdawl("model list").assert().success().stdout(
        contains("mine")
            .and(contains("simulated"))
            .and(contains("stencil5-f64 on cpu")),
    );
    home.pdawl("model show mine")
        .assert()
        .success()
        .stdout(contains("model mine of k40 simulated").and(contains("roofline")));
    let shown = home
        .pdawl("model show mine --format json")
        .assert()
        .success();
    let file = fs::read(home.model("mine")).unwrap();
    assert_eq!(shown.get_output().stdout, file, "the file itself");
}

#[test]
fn what_cannot_be_trained_is_told_and_leaves_the_model_that_was_there() {
    let home = Home::with_model();
    let few = "train --machine k40 --kinds cpu --configurations 5 --repeats 1 --max-size 2000";
    home.pdawl(few).assert().code(1).stderr(
        contains("no model of stencil5-f64 on cpu")
            .and(contains(
                "5 configurations cannot be divided into 10 folds: 5 more are needed",
            ))
            .and(contains("`pdawl profile stencil --machine k40`")),
    );
    // Now the runs are there, and a second try adds none.
    home.refuses(few, &["5 configurations cannot be divided into 10 folds"]);
    home.refuses(
        "train --machine k40 --no-profile --precision f32",
        &[
            "no run of stencil5-f32 on cpu is among the 5 runs",
            "`pdawl profile stencil --machine k40 --precision f32` with a longer --budget",
        ],
    );
    home.refuses(
        "train --machine titan --no-profile",
        &["nothing was measured on titan", "leave out --no-profile"],
    );
    home.refuses(
        "train --machine titan --budget 1us",
        &["a budget of 1.00 us is too small", "give more time"],
    );
    home.refuses(
        "train --machine k40 --no-profile --name ../k40",
        &["`../k40` cannot name a model"],
    );
}

/// A small dataset of made-up runs, one of them of 0.123456 seconds.
fn some_runs(path: &Path) {
    let machine = machine("k40");
    let mut samples = samples(&machine, |_| 1.0);
    samples.truncate(30);
    samples[3].seconds = 0.123456;
    let provenance = Provenance::default();
    dataset::write(
        path,
        &Dataset {
            provenance,
            samples,
        },
    )
    .unwrap();
}

#[test]
fn datasets_that_are_none_are_told_by_line() {
    let home = Home::with_model();
    let path = home.path("runs.csv");
    some_runs(&path);
    let whole = fs::read_to_string(&path).unwrap();
    let row = whole
        .lines()
        .find(|line| line.contains("0.123456"))
        .unwrap();
    for (changed, words) in [
        (whole[..whole.len() - 40].to_owned(), vec!["runs.csv, line"]),
        (
            whole.replace(row, &row.replace("0.123456", "-1")),
            vec!["line 6", "`seconds`", "`-1`"],
        ),
        (
            whole.replacen("samples/1", "samples/2", 1),
            vec!["newer", "pdawl-samples/2", "update pdawl"],
        ),
        (
            whole.replacen("# pdawl-samples/1", "# other/1", 1),
            vec!["line 1", "# pdawl-samples/1"],
        ),
        (
            whole.replace(row, &format!("{row}\n{row}")),
            vec!["line 7", "stands on line 6 already"],
        ),
        ("{}".to_owned(), vec!["line 1"]),
        (String::new(), vec!["is empty"]),
    ] {
        fs::write(&path, changed).unwrap();
        home.refuses("train --dataset runs.csv", &words);
        home.refuses("model check k40 --dataset runs.csv", &words);
    }
    home.refuses("train --dataset none.csv", &["none.csv", "cannot be read"]);
    some_runs(&path);
    home.refuses(
        "train --dataset runs.csv --machine titan",
        &["a run of `k40`", "`titan`"],
    );
}

#[test]
fn models_travel_as_files_and_hide_nothing() {
    let home = Home::with_model();
    home.pdawl("model export k40 out.json").assert().success();
    assert_eq!(
        fs::read(home.path("out.json")).unwrap(),
        fs::read(home.model("k40")).unwrap()
    );
    home.refuses(
        "model export k40 out.json",
        &["out.json is there already", "--force"],
    );
    home.refuses(
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
    home.pdawl("model check lab --machine k40")
        .assert()
        .success()
        .stdout(contains("fits k40"));
    home.pdawl("model check out.json --machine titan")
        .assert()
        .success()
        .stdout(contains("does not fit titan").and(contains("pdawl model adapt")));
    home.refuses(
        "model import out.json --name a/b",
        &["`a/b` cannot name a model"],
    );
    home.refuses(
        "model show none",
        &["no model is called `none`", "k40, lab"],
    );
}

#[test]
fn files_that_are_no_models_are_refused_with_the_reason() {
    let home = Home::with_model();
    let whole = fs::read_to_string(home.model("k40")).unwrap();
    let path = home.path("other.json");
    for (changed, words) in [
        (
            whole.replacen("\"rows\": 144", "\"rows\": 145", 1),
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
            home.refuses(&format!("model {command} other.json {options}"), &words);
        }
    }
    home.refuses("model import none.json", &["none.json", "cannot be read"]);
    // A broken file among the user's models hides no other.
    fs::write(home.model("broken"), "{").unwrap();
    home.pdawl("model list")
        .assert()
        .success()
        .stdout(contains("k40"))
        .stderr(contains("broken.json"));
}

#[test]
fn held_out_runs_show_how_good_a_model_is() {
    let home = Home::with_model();
    home.pdawl(
        "profile stencil --machine k40 --sizes 700,2900,8100,27000 --repeats 1 \
         --configurations 30 --out held.csv",
    )
    .assert()
    .success();
    let report = home.json("model check k40 --machine k40 --dataset held.csv");
    assert_eq!(report["schema"], "pdawl-model-check/1");
    assert_eq!(report["fits"]["fits"], true);
    assert_eq!(report["held_out"]["simulated"], true);
    let groups = report["held_out"]["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2);
    for group in groups {
        let mape = group["model"]["mape"].as_f64().unwrap();
        assert!(mape < 0.03, "{group}");
        for baseline in &group["baselines"].as_array().unwrap()[1..] {
            assert!(
                mape < baseline["accuracy"]["mape"].as_f64().unwrap(),
                "{baseline}"
            );
        }
        assert_eq!(group["rows"], 30);
        let outside = group["outside"].as_u64().unwrap();
        assert!(
            outside > 0 && outside < 30,
            "27000 points are beyond: {outside}"
        );
    }
    home.pdawl("model check k40 --machine k40 --dataset held.csv")
        .assert()
        .success()
        .stdout(contains("held.csv of k40 simulated").and(contains("MAPE (simulated)")));
}

/// Errors of a model on held-out runs: the model's and the least of the
/// baselines', for each kind of device.
fn errors(home: &Home, model: &str, machine: &str) -> Vec<(f64, f64)> {
    let line = format!("model check {model} --machine {machine} --dataset {machine}-held.csv");
    let report = home.json(&line);
    (report["held_out"]["groups"].as_array().unwrap().iter())
        .map(|group| {
            let baselines = group["baselines"].as_array().unwrap()[1..].iter();
            let least = baselines.map(|b| b["accuracy"]["mape"].as_f64().unwrap());
            (
                group["model"]["mape"].as_f64().unwrap(),
                least.fold(f64::INFINITY, f64::min),
            )
        })
        .collect()
}

#[test]
fn shipped_models_are_accurate_between_and_beyond_and_carry_over() {
    let home = Home::new();
    for machine in ["k20-32", "k20-40", "k40", "titan"] {
        let sizes = "--sizes 700,2900,8100,17000,27000 --configurations 40 --repeats 1";
        let out = format!("{machine}-held.csv");
        home.pdawl(&format!(
            "profile stencil --machine {machine} {sizes} --out {out}"
        ))
        .assert()
        .success();
        let native = errors(&home, machine, machine);
        assert_eq!(native.len(), 2);
        for (error, baseline) in &native {
            assert!(*error < 0.03 && error < baseline, "{machine}: {native:?}");
        }
        if machine == "k20-32" {
            continue;
        }
        home.json(&format!(
            "model adapt k20-32 --machine {machine} --name adapted"
        ));
        let adapted = errors(&home, "adapted", machine);
        for ((adapted, _), (native, _)) in adapted.iter().zip(&native) {
            assert!(
                *adapted <= 1.5 * native,
                "{machine}: {adapted} against {native}"
            );
        }
    }
}

#[test]
fn a_foreign_model_is_adapted_by_eight_runs() {
    let home = Home::with_model();
    let report = home.json("model adapt k40 --machine titan --runs 8");
    assert_eq!(report["schema"], "pdawl-model-adapt/1");
    assert_eq!(
        (&report["machine"], &report["simulated"]),
        (&"titan".into(), &true.into())
    );
    let groups = report["groups"].as_array().unwrap();
    let runs = groups
        .iter()
        .map(|group| group["runs"].as_array().unwrap().len());
    assert_eq!(runs.collect::<Vec<_>>(), [4, 4]);
    for group in groups {
        let error = |of: &str| group[of].as_f64().unwrap();
        assert!(
            error("after") <= error("before") && error("after") < 0.02,
            "{group}"
        );
    }
    let adapted = Bundle::read(&home.model("titan-from-k40")).unwrap();
    let from = adapted.adapted.as_ref().unwrap();
    let foreign = Bundle::read(&home.model("k40")).unwrap();
    assert_eq!((from.machine.as_str(), from.runs), ("k40", 8));
    assert_eq!(from.checksum, foreign.checksum().unwrap());
    // It is the model of that machine from now on.
    home.pdawl("predict stencil --machine titan --size 9000")
        .assert()
        .success()
        .stdout(contains("predicted by model titan-from-k40"));
    home.refuses(
        "model adapt none --machine titan",
        &["no model is called `none`"],
    );
    home.pdawl("model adapt k40 --machine titan --runs 1")
        .assert()
        .code(2);
}

/// Runs of simulated configurations of `k40`.
fn profiled(home: &Home, sizes: &str, out: &str) -> Vec<Sample> {
    let line = format!("profile stencil --machine k40 {sizes} --out {out}");
    home.pdawl(&line).assert().success();
    dataset::read(&home.path(out)).unwrap().samples
}

fn fitted(samples: &[Sample]) -> Bundle {
    let recipe = Recipe {
        families: vec![Family::PriorConstant, Family::PriorLinear, Family::Linear],
        folds: 5,
        ..Recipe::default()
    };
    let machine = machine("k40");
    let request = Request {
        machine: "k40",
        samples,
        codelet: Some(CODELET),
        kinds: &["cpu", "gpu"],
        recipe: &recipe,
    };
    let models = fit_all(&request, &mut |_, _, _| {}, &AtomicBool::new(false)).unwrap();
    let about = About {
        name: "k40",
        machine: &machine,
        simulated: true,
        trained_at: 0,
        provenance: Provenance::default(),
    };
    bundle(&models.groups, about).unwrap()
}

#[test]
fn one_slow_run_in_twenty_costs_no_more_than_a_point() {
    let home = Home::new();
    let clean = profiled(
        &home,
        "--configurations 40 --repeats 2 --max-size 16000",
        "clean.csv",
    );
    let held = profiled(
        &home,
        "--sizes 900,3700,11000,21000 --configurations 40 --repeats 1",
        "held.csv",
    );
    let mut disturbed = clean.clone();
    let mut slowed = 0;
    for (place, sample) in disturbed.iter_mut().enumerate() {
        if (place * 7919) % 20 == 3 {
            sample.seconds *= 5.0;
            slowed += 1;
        }
    }
    assert_eq!(slowed, clean.len() / 20);
    let [clean, disturbed] =
        [&clean, &disturbed].map(|runs| evaluate(&fitted(runs), &held).unwrap());
    for (clean, disturbed) in clean.iter().zip(&disturbed) {
        let (before, after) = (clean.model.mape, disturbed.model.mape);
        assert!(
            after < before + 0.01,
            "{}: {before} became {after}",
            clean.kind
        );
        assert!(after < 0.04, "{}: {after}", clean.kind);
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_the_runs_and_writes_no_model() {
    let home = Home::with_model();
    let before = fs::read(home.model("k40")).unwrap();
    let child = std::process::Command::new(assert_cmd::cargo::cargo_bin("pdawl"))
        .args([
            "train",
            "--machine",
            "k40",
            "--configurations",
            "60",
            "--max-size",
            "2000",
        ])
        .env("PDAWL_MACHINES", "/nonexistent/pdawl-machines")
        .env("PDAWL_MODELS", home.path("models"))
        .env("PDAWL_DATASETS", home.path("datasets"))
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // Its runs appear before there can be a model.
    for _ in 0..600 {
        if fs::metadata(home.dataset("k40")).is_ok_and(|file| file.len() > 10_000) {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let pid = child.id().to_string();
    let killed = std::process::Command::new("kill")
        .args(["-INT", &pid])
        .status();
    assert!(killed.unwrap().success());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(
        said.contains("interrupted") && said.contains("no model was written"),
        "{said}"
    );
    let kept = dataset::read(&home.dataset("k40")).unwrap().samples;
    assert!(!kept.is_empty());
    assert_eq!(fs::read(home.model("k40")).unwrap(), before);
}

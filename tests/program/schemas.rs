//! The JSON Schemas: what the program prints conforms to them, and docs/schemas has them.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};

use jsonschema::Validator;
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use serde_json::{Value, json};

use crate::command::{Home, json as printed, pdawl};
use crate::report_page;

/// Renews the generated files instead of comparing them.
const RENEW: &str = "PDAWL_RENEW=1 cargo test --test program schemas::";

/// A schema of the program.
pub struct Known {
    pub name: String,
    pub printed_by: String,
    pub schema: Value,
    validator: Validator,
}

/// All schemas, in the program's order.
pub fn all() -> &'static [Known] {
    static ALL: OnceLock<Vec<Known>> = OnceLock::new();
    ALL.get_or_init(|| {
        let output = pdawl("schema --format json").output().unwrap().stdout;
        let listing: Value = serde_json::from_slice(&output).unwrap();
        let entries = listing["schemas"].as_array().unwrap().iter();
        let known = entries.map(|entry| {
            let name = entry["name"].as_str().unwrap().to_owned();
            let output = pdawl(&format!("schema {name}")).output().unwrap().stdout;
            let schema: Value = serde_json::from_slice(&output).unwrap();
            Known {
                printed_by: entry["printed_by"].as_str().unwrap().to_owned(),
                validator: jsonschema::validator_for(&schema).unwrap(),
                name,
                schema,
            }
        });
        known.collect()
    })
}

/// The schemas of which something was seen.
static SEEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Asserts that JSON which the program printed or wrote conforms to the schema that it names.
pub fn conforms(value: &Value) {
    let name = value.get("schema").or(value.get("format"));
    let name = name.and_then(Value::as_str).expect("a schema's name");
    let known = all().iter().find(|known| known.name == name);
    let known = known.unwrap_or_else(|| panic!("`pdawl schema` does not know {name}"));
    let errors = known.validator.iter_errors(value);
    let errors: Vec<String> = errors
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{name}: {errors:#?}");
    SEEN.lock().unwrap().insert(name.to_owned());
}

/// Path of an example in kernels/examples.
fn example(name: &str) -> String {
    format!("{}/kernels/examples/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Each command prints what its schema says: `Home::json` compares them.
#[test]
fn every_schema_is_that_of_a_commands_output() {
    let home = Home::new();
    let [kernel, head] = ["vadd.json", "head.dag"].map(example);
    let on_k40 = "stencil --machine k40 --size 300 --steps 4";
    let tiny = "transformer --machine k40 --heads 2 --beta 8 --layers 2";
    let on_v100 = "--machine v100x2 --size 64 --tile 16 --gpu-memory 16KiB";
    let few = "--configurations 12 --repeats 1 --max-size 3000";
    let held = "--sizes 900,27000 --configurations 8 --repeats 1 --out held.csv";
    for line in [
        format!("run {on_k40}"),
        format!("run {on_k40} --verify --fault gpu0:lost@2"),
        "run spmv --machine k40 --matrix banded:500,3 --steps 4 --iterate --verify".to_owned(),
        format!("run kernel {kernel} -D dataset=1000 --steps 2"),
        format!("run {tiny} --verify --fault gpu0:lost@1 --queues gpu=2"),
        format!("run {tiny} --policy clustering --search"),
        format!("run matmul {on_v100} --verify --window 3 --fault gpu1:lost@0s"),
        format!("run cholesky {on_v100}"),
        "run lu --size 64 --verify --devices host:1".to_owned(),
        "run lu --size 2048 --cluster four --spread steal".to_owned(),
        format!("bench --vary strategy=cpu,dawl --repeats 2 run {on_k40}"),
        "run tasks --set cholesky --n 3 --machine v100x1 --gpu-memory 100MiB".to_owned(),
        "predict stencil --machine k40 --size 30000".to_owned(),
        format!("spec check {kernel}"),
        format!("spec check {} --no-compile", example("three.json")),
        format!("spec infer {}", example("softmax.cl")),
        format!("graph show {head} --out head.dot"),
        "matrix stats rmat:8,4".to_owned(),
        "matrix generate banded:50,2 a.mtx".to_owned(),
        "devices".to_owned(),
        "machine list".to_owned(),
        "machine show k40".to_owned(),
        "machine show v100x2".to_owned(),
        "cluster list".to_owned(),
        "cluster show four".to_owned(),
        format!("profile stencil --machine k40 {held}"),
        format!("train --machine k40 {few}"),
        "model check k40 --machine k40 --dataset held.csv".to_owned(),
        "model adapt k40 --machine titan --name there --runs 4".to_owned(),
        "model list".to_owned(),
        "model show k40".to_owned(),
        "model show there".to_owned(),
        "model show".to_owned(),
        "model export there out.json".to_owned(),
        "schema".to_owned(),
    ] {
        home.json(&line);
    }
    let seen = SEEN.lock().unwrap();
    let names = all().iter().map(|known| known.name.as_str());
    // The tests of `exec` and `ui` compare what these write.
    let unseen: Vec<&str> = names
        .filter(|name| !(seen.contains(*name) || ["pdawl-exec/1", "pdawl-served/1"].contains(name)))
        .collect();
    assert!(unseen.is_empty(), "no command printed {unseen:?}");
}

#[test]
fn what_does_not_conform_is_found() {
    let lost = "run stencil --machine k40 --size 300 --steps 4 --verify --fault gpu0:lost@2";
    let report = printed(lost);
    let known = all().iter().find(|known| report["schema"] == known.name);
    let known = known.unwrap();
    assert!(known.validator.is_valid(&report));
    for (pointer, wrong) in [
        ("/schema", json!("pdawl-report/1")),
        ("/seconds", json!(null)),
        ("/throughput", json!({"value": 1.0})),
        ("/machine/devices/1/kind", json!("fpga")),
        ("/details/kind", json!("co-walk")),
        ("/details/steps/0", json!({})),
        ("/workload/parameters/nz", json!(-1)),
        ("/lost/0/back", json!(null)),
        ("/verification/right", json!("yes")),
    ] {
        let mut report = report.clone();
        *report.pointer_mut(pointer).unwrap() = wrong;
        assert!(!known.validator.is_valid(&report), "{pointer}");
    }
}

#[test]
fn schemas_are_listed_and_an_unknown_one_is_refused_with_their_names() {
    pdawl("schema")
        .assert()
        .success()
        .stdout(contains("pdawl-report/2").and(contains("bench")));
    pdawl("schema pdawl-report/1").assert().code(2).stderr(
        contains("no schema pdawl-report/1").and(contains("pdawl-report/2, pdawl-bench/2")),
    );
}

/// docs/schemas and docs/report.md are made from the types that are printed.
#[test]
fn the_generated_files_are_those_of_the_types() {
    let docs = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs");
    let mut made = vec![(docs.join("report.md"), report_page::page(all()))];
    for known in all() {
        let name = known.name.replace('/', "-");
        let text = serde_json::to_string_pretty(&known.schema).unwrap() + "\n";
        made.push((docs.join(format!("schemas/{name}.json")), text));
    }
    let renews = std::env::var_os("PDAWL_RENEW").is_some();
    let mut differing = Vec::new();
    for (path, text) in &made {
        if renews {
            std::fs::write(path, text).unwrap();
        } else if std::fs::read_to_string(path).ok().as_ref() != Some(text) {
            differing.push(path);
        }
    }
    assert!(
        differing.is_empty(),
        "{differing:?} differ from the types; `{RENEW}` renews them"
    );
    for entry in std::fs::read_dir(docs.join("schemas")).unwrap() {
        let path = entry.unwrap().path();
        let known = made.iter().any(|(of, _)| *of == path);
        assert!(known, "{} is the file of no schema", path.display());
    }
}

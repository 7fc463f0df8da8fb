//! docs/report.md and docs/predict.md describe every schema and exactly the fields
//! that the program prints.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::command::Home;

const REPORT: &str = include_str!("../../docs/report.md");
const PREDICT: &str = include_str!("../../docs/predict.md");
const DATASETS: &str = include_str!("../../docs/datasets.md");

/// Collects the names of all schemas and formats from constants such as
/// `const SCHEMA: &str = "pdawl-report/1";`
fn schemas(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            schemas(&path, found);
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for line in text.lines().filter(|line| line.contains("const ")) {
            let value = line.split('"').nth(1).unwrap_or_default();
            let (name, version) = value.split_once('/').unwrap_or_default();
            if name.starts_with("pdawl-") && version.parse::<u32>().is_ok() {
                found.insert(value.to_owned());
            }
        }
    }
}

#[test]
fn every_schema_has_its_section() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = BTreeSet::new();
    schemas(&root.join("src"), &mut found);
    schemas(&root.join("profiler/src"), &mut found);
    for known in [pdawl::report::run::SCHEMA, pdawl::report::training::SCHEMA] {
        assert!(found.contains(known), "{known} in {found:?}");
    }
    let pages = [REPORT, PREDICT];
    for schema in found {
        let heading = format!("## {schema}");
        let on_a_page = pages.iter().any(|page| page.lines().any(|l| l == heading));
        // Datasets have a separate page.
        let is_dataset = schema == pdawl_profiler::dataset::FORMAT;
        match is_dataset {
            true => assert!(DATASETS.contains(&format!("`{schema}`")), "{schema}"),
            false => assert!(on_a_page, "no section of docs/report.md describes {schema}"),
        }
        let listed = REPORT.contains(&format!("[`{schema}`]"));
        assert!(listed || is_dataset, "{schema} is not in the page's list");
    }
}

/// The fields in a section's table, without the `[]` of lists, and their
/// descriptions.
fn described(page: &'static str, heading: &str) -> BTreeMap<String, &'static str> {
    let mut fields = BTreeMap::new();
    let section = page.lines().skip_while(|line| *line != heading).skip(1);
    for row in section.take_while(|line| !line.starts_with('#')) {
        let Some((names, meaning)) = row
            .strip_prefix("| `")
            .and_then(|row| row.split_once(" | "))
        else {
            continue;
        };
        let names = names.replace("[]", "");
        let mut names = names.split('`').step_by(2);
        let first = names.next().unwrap().to_owned();
        // A row may name several fields.
        let beside = first.rsplit_once('.').map(|(parent, _)| parent.to_owned());
        for name in names.filter(|name| !name.is_empty()) {
            let path = beside
                .as_ref()
                .map_or(name.to_owned(), |p| format!("{p}.{name}"));
            fields.insert(path, meaning);
        }
        fields.insert(first, meaning);
    }
    assert!(!fields.is_empty(), "{heading}");
    fields
}

/// Compares printed fields with the fields that a section describes.
struct Comparison {
    described: BTreeMap<String, &'static str>,
    printed: BTreeSet<String>,
    /// Fields printed as null or empty, whose inner fields are unknown.
    empty: BTreeSet<String>,
    missing: BTreeSet<String>,
}

impl Comparison {
    fn with(page: &'static str, heading: &str) -> Self {
        Self {
            described: described(page, heading),
            printed: BTreeSet::new(),
            empty: BTreeSet::new(),
            missing: BTreeSet::new(),
        }
    }

    fn see(&mut self, value: &Value, path: &str) {
        match value {
            Value::Array(entries) => entries.iter().for_each(|entry| self.see(entry, path)),
            Value::Object(fields) => {
                for (name, value) in fields {
                    let path = match path {
                        "" => name.clone(),
                        path => format!("{path}.{name}"),
                    };
                    self.field(value, path);
                }
            }
            _ => {}
        }
    }

    fn field(&mut self, value: &Value, path: String) {
        let inner = format!("{path}.");
        let parts = self.described.keys().any(|d| d.starts_with(&inner));
        // A field without described inner fields is described as a whole.
        if !parts && !self.described.contains_key(&path) {
            self.missing.insert(path.clone());
        }
        if value.is_null() || value.as_array().is_some_and(Vec::is_empty) {
            self.empty.insert(path.clone());
        }
        if parts {
            self.see(value, &path);
        }
        self.printed.insert(path);
    }

    /// Fields that the page describes and no report has, although their parents
    /// were printed.
    fn invented(&self) -> Vec<&String> {
        let hidden = |path: &str| {
            let within = |empty: &String| path == empty || path.starts_with(&format!("{empty}."));
            self.empty.iter().any(within)
        };
        (self.described.iter())
            .filter(|(path, meaning)| {
                !self.printed.contains(*path) && !hidden(path) && !meaning.contains("absent")
            })
            .map(|(path, _)| path)
            .collect()
    }
}

fn agrees(page: &'static str, heading: &str, printed: &[&Value]) {
    let mut comparison = Comparison::with(page, heading);
    for value in printed {
        comparison.see(value, "");
    }
    let missing = &comparison.missing;
    assert!(missing.is_empty(), "{heading} lacks {missing:#?}");
    let invented = comparison.invented();
    assert!(invented.is_empty(), "{heading} has {invented:#?}");
}

/// Asserts that a schema's section describes exactly the printed fields.
fn is_described(page: &'static str, printed: &[&Value]) {
    let schema = |value: &Value| value.get("schema").or(value.get("format")).cloned();
    let first = schema(printed[0]).unwrap();
    assert!(printed.iter().all(|v| schema(v).as_ref() == Some(&first)));
    agrees(page, &format!("## {}", first.as_str().unwrap()), printed);
}

#[test]
fn runs_and_comparisons_are_described() {
    let home = Home::new();
    let on_k40 = "stencil --machine k40 --size 300 --steps 4";
    let plain = home.json(&format!("run {on_k40}"));
    let lost = home.json(&format!("run {on_k40} --verify --fault gpu0:lost@2"));
    let on_k40_too = "spmv --machine k40 --matrix banded:500,3 --steps 4";
    let product = home.json(&format!("run {on_k40_too} --iterate --verify"));
    let kernel = example("vadd.json");
    let kernel = home.json(&format!("run kernel {kernel} -D dataset=1000 --steps 2"));
    is_described(REPORT, &[&plain, &lost, &product, &kernel]);
    let bench = home.json(&format!("bench {on_k40} --repeats 2"));
    let products = home.json(&format!("bench {on_k40_too} --repeats 2"));
    is_described(REPORT, &[&bench, &products]);
    let trial = home.json("bench codelet gemm --size 8 --repeats 1 --devices host");
    is_described(REPORT, &[&trial]);
    let tasks = "--set cholesky --n 3 --machine v100x1 --gpu-memory 100MiB --window 3";
    let tasks = home.json(&format!("bench tasks {tasks}"));
    is_described(REPORT, &[&tasks]);
    let on_v100 = "--machine v100x2 --size 64 --tile 16 --gpu-memory 16KiB";
    let product = format!("run matmul {on_v100} --verify --window 3 --fault gpu1:lost@0s");
    let factor = home.json(&format!("run cholesky {on_v100}"));
    is_described(REPORT, &[&home.json(&product), &factor]);
    let tiny = "transformer --machine k40 --heads 2 --beta 8 --layers 2";
    let few = "--repeats 1 --most-queues 2 --most-on-cpu 1 --verify";
    let policies = home.json(&format!("bench {tiny} {few}"));
    is_described(REPORT, &[&policies]);
    let graph = home.json(&format!(
        "run {tiny} --verify --fault gpu0:lost@1 --queues gpu=2"
    ));
    let searched = home.json(&format!("run {tiny} --policy clustering --search"));
    is_described(REPORT, &[&graph, &searched]);
    let unseen = home.json("predict stencil --machine k40 --size 30000");
    is_described(PREDICT, &[&unseen]);
}

/// Path of an example in kernels/examples.
fn example(name: &str) -> String {
    format!("{}/kernels/examples/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn specifications_are_described() {
    let home = Home::new();
    let [kernel, head, three] = ["vadd.json", "head.dag", "three.json"].map(example);
    let checked = home.json(&format!("spec check {kernel}"));
    let graph = home.json(&format!("spec check {three} --no-compile"));
    is_described(REPORT, &[&checked, &graph]);
    let source = example("softmax.cl");
    is_described(REPORT, &[&home.json(&format!("spec infer {source}"))]);
    is_described(
        REPORT,
        &[&home.json(&format!("graph show {head} --out head.svg"))],
    );
}

#[test]
fn matrices_are_described() {
    let home = Home::new();
    let shown = home.json("matrix stats rmat:8,4");
    let written = home.json("matrix generate banded:50,2 a.mtx");
    let read = home.json("matrix stats a.mtx");
    is_described(REPORT, &[&shown, &written, &read]);
}

#[test]
fn machines_and_devices_are_described() {
    let home = Home::new();
    is_described(REPORT, &[&home.json("devices")]);
    is_described(REPORT, &[&home.json("machine list")]);
    let files = ["k40", "laptop", "v100x2"].map(|m| home.json(&format!("machine show {m}")));
    is_described(REPORT, &files.each_ref());
}

#[test]
fn clusters_are_described() {
    let home = Home::new();
    let real = home.json("run lu --size 64 --verify --devices host:1");
    let simulated = home.json("run lu --size 2048 --cluster four --spread steal");
    is_described(REPORT, &[&real, &simulated]);
    let scaling = home.json("predict matmul --size 2048 --cluster four");
    is_described(REPORT, &[&scaling]);
    is_described(REPORT, &[&home.json("cluster list")]);
    let files = ["four", "unicorn"].map(|name| home.json(&format!("cluster show {name}")));
    is_described(REPORT, &files.each_ref());
}

#[test]
fn profiles_and_models_are_described() {
    let home = Home::new();
    let held = "profile stencil --machine k40 --sizes 900,27000 --configurations 8 --repeats 1";
    let profile = home.json(&format!("{held} --out held.csv"));
    is_described(REPORT, &[&profile]);
    let few = "--configurations 12 --repeats 1 --max-size 3000";
    let trained = home.json(&format!("train --machine k40 {few} --plots charts"));
    is_described(REPORT, &[&trained]);
    let validation = &trained["groups"][1]["planning"]["validation"];
    agrees(REPORT, "### Validation", &[validation]);
    let check = home.json("model check k40 --machine k40 --dataset held.csv");
    is_described(REPORT, &[&check]);
    let adapted = home.json("model adapt k40 --machine titan --name there --runs 4");
    is_described(REPORT, &[&adapted]);
    is_described(REPORT, &[&home.json("model list")]);
    is_described(REPORT, &[&home.json("model export there out.json")]);
    let [native, foreign] = ["k40", "there"].map(|name| home.json(&format!("model show {name}")));
    is_described(REPORT, &[&native, &foreign]);
}

#[test]
fn what_the_page_lacks_or_invents_is_found() {
    const PAGE: &str =
        "## x/1\n| `a`, `b` | | two |\n| `c[].d` | s | inner |\n| `e` | | absent |\n";
    let compared = |text: &str| {
        let mut comparison = Comparison::with(PAGE, "## x/1");
        comparison.see(&serde_json::from_str(text).unwrap(), "");
        let invented = comparison.invented().into_iter().cloned();
        (comparison.missing.clone(), invented.collect::<Vec<_>>())
    };
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    for (printed, missing, invented) in [
        (
            r#"{"a": 1, "b": {"z": 1}, "c": [{"d": 2}]}"#,
            &[][..],
            &[][..],
        ),
        (r#"{"a": 1, "b": 1, "c": []}"#, &[], &[]),
        (
            r#"{"a": 1, "b": 1, "c": [{"d": 2, "f": 3}]}"#,
            &["c.f"],
            &[],
        ),
        (r#"{"a": 1, "c": [{"d": 2}], "g": null}"#, &["g"], &["b"]),
        (r#"{"a": 1, "b": 1, "c": [{}]}"#, &[], &["c.d"]),
    ] {
        let (lacks, has) = compared(printed);
        assert_eq!(lacks, names(missing).into_iter().collect(), "{printed}");
        assert_eq!(has, names(invented), "{printed}");
    }
}

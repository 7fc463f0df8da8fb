//! Datasets as their readers and writers meet them.

mod appending;
mod documented;
mod properties;
mod reading;
mod writing;

use super::write::contents;
use super::{Dataset, Provenance, parse, row, write};
use crate::Sample;

/// A measured run of a GPU.
fn sample(configuration: &str, repeat: u32) -> Sample {
    let features = [
        ("machine.clock_mhz", 3400.0),
        ("known.units_count", 4096.0),
        ("derived.working_set_over_l3_ratio", 32.5),
        ("trace.h2d_seconds", 0.1),
        ("trace.overlap_seconds", 0.05),
    ];
    Sample {
        machine: "k40".into(),
        simulated: false,
        device: "gpu0".into(),
        kind: "gpu".into(),
        codelet: "stencil5-f64".into(),
        configuration: configuration.into(),
        repeat,
        counters: "none".into(),
        steps: 30,
        seconds: 0.1 + f64::from(repeat),
        features: features.map(|(name, value)| (name.into(), value)).into(),
    }
}

fn provenance() -> Provenance {
    let mut provenance = Provenance::default();
    provenance.add("hardware", "i7, Tesla K40");
    provenance.add("command", "pdawl profile --machine k40");
    provenance
}

fn dataset() -> Dataset {
    Dataset {
        provenance: provenance(),
        samples: vec![sample("4096, chunk 64", 0), sample("4096, chunk 64", 1)],
    }
}

/// The dataset as a file's text.
fn text(dataset: &Dataset) -> String {
    let columns = row::columns(&dataset.samples).unwrap();
    let mut text = Vec::new();
    contents(&mut text, dataset, &columns).unwrap();
    String::from_utf8(text).unwrap()
}

/// What reading this text says.
fn refusal(text: &str) -> String {
    parse(text.as_bytes(), "runs.csv").unwrap_err().to_string()
}

#[test]
fn pairs_stay_in_order_each_once_and_on_one_line() {
    let mut provenance = Provenance::default();
    provenance.add("date", "2026-11-20");
    provenance.add("command: line", "pdawl profile\n--budget 5m ");
    provenance.add("date", "2026-11-20");
    provenance.add("date", "2026-11-21");
    let text: Vec<String> = provenance
        .pairs()
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    assert_eq!(
        text,
        [
            "date=2026-11-20",
            "command  line=pdawl profile --budget 5m",
            "date=2026-11-21"
        ]
    );
}

//! Runs that were made, read from their reports and traces.

use std::fs;
use std::path::Path;

use pdawl_api::report::{Report, Schematic};
use pdawl_api::trace::gantt;
use serde_json::{Value, json};

use crate::chart;
use crate::failure::Failure;

/// What the page gets of these files: name, report and chart of each, as JSON.
///
/// # Errors
/// A file that is neither a report nor a trace.
pub fn read(files: &[String]) -> Result<Vec<u8>, Failure> {
    let all = files.iter().map(|file| one(Path::new(file)));
    let all = all.collect::<Result<Vec<Value>, Failure>>()?;
    serde_json::to_vec(&all).map_err(Failure::of)
}

fn one(file: &Path) -> Result<Value, Failure> {
    let shown = file.display();
    let failed = |why: String| {
        let remedy = "a report of `pdawl run ... --format json`, or a file of its --trace";
        Failure::failed(format!("{shown}: {why}"), remedy)
    };
    let text = fs::read(file).map_err(|error| failed(error.to_string()))?;
    let json: Value = serde_json::from_slice(&text)
        .map_err(|error| failed(format!("it is not JSON: {error}")))?;
    let name = shown.to_string();
    match json["schema"].as_str() {
        Some(Report::SCHEMA) => Ok(json!({ "name": name, "report": json, "chart": null })),
        Some(other) => Err(failed(format!("it is {other}, not {}", Report::SCHEMA))),
        None => {
            let run = chart::read(file)?;
            let mut drawn = Vec::new();
            gantt::write_data(&[chart::of(&run, file)], &mut drawn).map_err(Failure::of)?;
            let drawn: Value = serde_json::from_slice(&drawn).map_err(Failure::of)?;
            Ok(json!({ "name": name, "report": run.report, "chart": drawn }))
        }
    }
}

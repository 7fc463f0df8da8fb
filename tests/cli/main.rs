//! The program as its users meet it.
//!
//! `usage` is what it says of itself and of wrong words, `machines` and
//! `devices` what it lists, `runs` what it runs and compares, `output` where
//! all that is written, and `interrupts` how it is ended early.

#[path = "../json_schema/mod.rs"]
mod json_schema;
#[path = "../program/mod.rs"]
mod program;

mod devices;
mod interrupts;
mod machines;
mod output;
mod runs;
mod usage;

use serde_json::Value;

const SIMULATED: &str = "run stencil --machine k40 --size 256 --steps 5";

fn conforms(report: &Value) {
    let found = json_schema::violations(&json_schema::report_schema(), report);
    assert!(found.is_empty(), "{found:#?}");
}

//! `pdawl run stencil --until`: runs that end once no point changes more, and what is refused.

use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;

use crate::command::{Home, pdawl};

fn steps(report: &Value) -> (u64, f64) {
    let each = report["details"]["steps"].as_array().unwrap().iter();
    let steps = each.map(|step| step["steps"].as_u64().unwrap()).sum();
    let change = &report["details"]["change"];
    // None that is finite after an overflow.
    (steps, change.as_f64().unwrap_or(f64::INFINITY))
}

/// All devices find the same change, whatever moves between them and however many steps are
/// between two barriers: `--verify` compares steps and change with the reference's.
#[test]
fn a_change_ends_the_steps_on_all_devices() {
    let home = Home::new();
    let mut found = Vec::new();
    for (devices, superstep) in [
        ("host:1", 1),
        ("host", 5),
        ("opencl0.0:1=own", 1),
        ("opencl0.0:1=own --gpu-memory 300KiB", 4),
        ("opencl0.0", 3),
        ("host:1,opencl0.0:1=own", 7),
        ("host:1,opencl0.0:1=own --strategy fixed:0.5,0.5", 1),
    ] {
        let run = "run stencil --nx 260 --ny 150 --steps 400 --until 0.004 --check-every 14";
        let line = format!("{run} --superstep {superstep} --devices {devices} --verify");
        let report = home.json(&line);
        assert_eq!(report["verification"]["right"], true, "{line}");
        let (steps, change) = steps(&report);
        assert!(
            steps.is_multiple_of(14) && change <= 0.004,
            "{line}: {steps}, {change}"
        );
        found.push((steps, change));
    }
    assert!(found.windows(2).all(|two| two[0] == two[1]), "{found:?}");
    let solid = "run stencil --nx 70 --ny 9 --nz 17 --precision f32 --steps 40 --until 0.004";
    for devices in [
        "host",
        "opencl0.0:1=own",
        "host:1,opencl0.0:1=own --superstep 3",
    ] {
        let report = home.json(&format!(
            "{solid} --check-every 6 --devices {devices} --verify"
        ));
        assert_eq!(report["verification"]["right"], true, "{devices}");
        assert!(steps(&report).0 < 40);
    }
}

#[test]
fn what_ended_the_steps_is_reported() {
    let home = Home::new();
    let run = "run stencil --size 100 --steps 60 --devices host --check-every 7";
    let report = home.json(&format!("{run} --until 0.01 --superstep 20"));
    let parameters = &report["workload"]["parameters"];
    assert_eq!(parameters["until"], 0.01);
    assert_eq!(parameters["check_every"], 7);
    // No superstep is longer than the steps between two checks.
    assert_eq!(parameters["superstep"], 7);
    let (done, change) = steps(&report);
    let mut text = home.pdawl(&format!("{run} --until 0.01"));
    text.assert()
        .success()
        .stdout(contains(format!("{done} of 60, until 1e-2\n")))
        .stdout(contains(format!(
            "{change:.3e}, the largest of a point in the last step"
        )));
    let mut text = home.pdawl(&format!("{run} --until 1e-9"));
    text.assert()
        .success()
        .stdout(contains("60 of 60, until 1e-9 not reached"));
    // A simulation computes data then.
    let simulated = home.json("run stencil --size 100 --steps 60 --machine k40 --until 0.01");
    assert_eq!(steps(&simulated).0, 20);
}

#[test]
fn an_overflow_is_told_and_ends_a_run() {
    let home = Home::new();
    let run = "run stencil --size 40 --coefficients 2,2,2,2,2 --steps 900 --verify";
    for place in ["--devices host", "--machine k40"] {
        let ended = home.json(&format!("{run} --until 1e-3 --check-every 50 {place}"));
        let (done, _) = steps(&ended);
        assert!((250..900).contains(&done), "{place}: {done}");
        let notes = ended["notes"].to_string();
        assert!(notes.contains("the numbers overflowed"), "{notes}");
        assert!(
            notes.contains("numbers of the result are infinite or NaN"),
            "{notes}"
        );
        assert_eq!(ended["verification"]["right"], true, "{place}");
    }
    let mut text = home.pdawl(&format!("{run} --devices host"));
    let said = contains("right, bit for bit").and(contains("infinite or NaN"));
    text.assert().success().stdout(said);
}

#[test]
fn wrong_ends_are_refused() {
    let number = "this is no change of a point, a number above 0 such as 1e-6";
    for (line, said) in [
        ("--until 0", number),
        ("--until NaN", number),
        ("--until=-1e-3", number),
        ("--until inf", number),
        ("--until 1e-6 --check-every 0", "--check-every"),
        ("--check-every 5", "--until <RESIDUAL>"),
        ("--until 1e-6 --cluster four --nodes 2", "--until"),
    ] {
        pdawl(&format!("run stencil --size 100 {line}"))
            .assert()
            .code(2)
            .stderr(contains(said).and(contains("panicked").not()));
    }
}

//! Every strategy on every kind of device, with the whole grid held in device
//! memory and with most of it streamed.

use pdawl_api::codelet::stencil::Precision::{F32, F64};
use pdawl_api::engine::Outcome;
use pdawl_api::runtime::Devices;
use pdawl_api::workload::Divisible;

use super::harness::{Grid, LEAST_UNITS, run};
use crate::pocl::open;

fn grids() -> [Grid; 6] {
    [
        Grid::new(3, 3, None, F64),
        Grid::new(17, 4099, None, F64),
        Grid::new(97, 101, None, F64),
        Grid::new(97, 101, None, F32),
        Grid::new(7, 11, Some(13), F64),
        Grid::new(7, 11, Some(13), F32),
    ]
}

/// Limits of device memory under which most of a grid is streamed.
fn limits(grid: Grid) -> Vec<u64> {
    let stencil = grid.stencil();
    let units = stencil.units();
    let mut limits = vec![LEAST_UNITS + 7 + units / 5];
    if units < 1000 {
        // Room for the smallest stream buffers only. Grids with many units would
        // take too long.
        limits.push(LEAST_UNITS);
    }
    limits.iter().map(|n| n * stencil.unit_bytes()).collect()
}

fn strategies(devices: usize) -> &'static [&'static str] {
    match devices {
        1 => &["cpu", "fixed:1", "guided", "dawl"],
        _ => &[
            "cpu",
            "fixed:1,0",
            "fixed:0,1",
            "fixed:0.5,0.5",
            "fixed:0.3,0.7",
            "guided",
            "dawl",
        ],
    }
}

/// Bytes copied to the devices during the steps.
fn copied(outcome: &Outcome) -> u64 {
    let devices = outcome.steps.iter().flat_map(|step| &step.devices);
    devices.map(|device| device.bytes_h2d).sum()
}

/// Runs every strategy, grid and limit on one runtime.
fn every_run_is_right(devices: &str) {
    let mut runtime = open(devices);
    let separate = runtime.devices().iter().any(|d| !d.shares_host_memory);
    for strategy in strategies(runtime.devices().len()) {
        for grid in grids() {
            let resident = run(&mut runtime, grid, strategy, None);
            assert!(resident.losses.is_empty());
            if !separate {
                assert_eq!(
                    copied(&resident),
                    0,
                    "{strategy}: there is nowhere to copy to"
                );
                continue;
            }
            for limit in limits(grid) {
                run(&mut runtime, grid, strategy, Some(limit));
            }
        }
    }
}

#[test]
fn one_pool() {
    every_run_is_right("host:1");
}

#[test]
fn two_pools() {
    every_run_is_right("host:1,host:1");
}

#[test]
fn a_pool_and_opencl() {
    every_run_is_right("host:1,cpu:1");
}

#[test]
fn a_pool_and_a_separate_device() {
    every_run_is_right("host:1,cpu:1=own");
}

#[test]
fn a_separate_device_alone() {
    every_run_is_right("cpu:1=own");
}

#[test]
fn two_separate_devices() {
    every_run_is_right("cpu:1=own,cpu:1=own");
}

#[test]
fn a_separate_device_and_one_in_place() {
    every_run_is_right("cpu:1=own,cpu:1");
}

/// Units held by each device, summed over the steps.
fn held(outcome: &Outcome) -> Vec<u64> {
    let devices = 0..outcome.devices.len();
    let held = |d: usize| outcome.steps.iter().map(|step| step.devices[d].held).sum();
    devices.map(held).collect()
}

#[test]
fn memory_decides_what_is_held_and_what_is_streamed() {
    let mut runtime = open("host:1,cpu:1=own");
    let grid = Grid::new(97, 101, None, F64);
    let stencil = grid.stencil();
    let (units, unit_bytes) = (stencil.units(), stencil.unit_bytes());
    let steps = u64::from(super::harness::STEPS);

    let resident = run(&mut runtime, grid, "fixed:0,1", None);
    assert_eq!(held(&resident), [0, units * steps]);
    assert_eq!(copied(&resident), 0, "what is held stays");
    // Half of the grid has one neighbour, whose edge is copied in each step.
    let half = run(&mut runtime, grid, "fixed:0.5,0.5", None);
    assert!(held(&half)[1] > 0);
    assert_eq!(copied(&half), steps * unit_bytes);
    // Nothing fits: every unit is copied in every step.
    let streamed = run(
        &mut runtime,
        grid,
        "fixed:0,1",
        Some(LEAST_UNITS * unit_bytes),
    );
    assert_eq!(held(&streamed), [0, 0]);
    assert!(copied(&streamed) >= steps * units * unit_bytes);
    let some = run(&mut runtime, grid, "fixed:0,1", Some(60 * unit_bytes));
    assert!((1..units * steps).contains(&held(&some)[1]));
    assert!(copied(&some) > 0 && copied(&some) < copied(&streamed));
}

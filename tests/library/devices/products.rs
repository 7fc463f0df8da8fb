//! Sparse matrix products on every kind of device: awkward matrices under every
//! strategy, with memory for the whole matrix and for a part of it.

use std::sync::Arc;

use pdawl_api::balance::Strategy;
use pdawl_api::codelet::Precision;
use pdawl_api::engine::corun::product::lacking;
use pdawl_api::runtime::{Devices, Runtime};
use pdawl_api::workload::Divisible;
use pdawl_api::workload::spmv::{Form, Options, Spmv};

use super::harness::{STEPS, by, corun};
use crate::matrices::{awkward, matrix};
use crate::pocl::open;

const STRATEGIES: [&str; 5] = ["fixed:1,0", "fixed:0,1", "fixed:0.4,0.6", "guided", "dawl"];

/// Runs a product with a strategy, and checks the result.
fn run(runtime: &mut dyn Runtime, spmv: &Spmv, strategy: &str, gpu_memory: Option<u64>) {
    let name = match (strategy, runtime.devices().len()) {
        ("fixed:0.4,0.6" | "fixed:1,0" | "fixed:0,1", 1) => "fixed:1",
        (other, _) => other,
    };
    let parsed: Strategy = name.parse().expect("a strategy");
    let (matrix, options) = (spmv.matrix_name(), spmv.options());
    let what = format!("{strategy} on {matrix}, {options:?}, {gpu_memory:?}");
    let outcome = corun(runtime, spmv, gpu_memory, by(&parsed))
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    let error = outcome.max_abs_error;
    // What overflows or is no number may leave nothing to compare.
    let is_finite = spmv.matrix().values().iter().all(|value| value.is_finite());
    assert!(outcome.verified.unwrap_or(!is_finite), "{what}: {error:?}");
    assert_eq!(outcome.steps.len() as u32, STEPS, "{what}");
    for step in &outcome.steps {
        let units: u64 = step.devices.iter().map(|device| device.units).sum();
        assert_eq!(units, spmv.units(), "{what}, step {}", step.step);
    }
}

fn options(form: Form, precision: Precision) -> Options {
    Options {
        form,
        precision,
        unit_weight: Some(256),
        ..Options::default()
    }
}

/// Runs every awkward matrix with every strategy on one runtime.
fn every_run_is_right(devices: &str) {
    let mut runtime = open(devices);
    for (name, matrix) in awkward() {
        let matrix = Arc::new(matrix);
        for (form, precision) in [
            (Form::Product, Precision::F64),
            (Form::Iteration, Precision::F64),
            (Form::Ranks, Precision::F64),
            (Form::Ranks, Precision::F32),
            (Form::Product, Precision::F32),
        ] {
            let Ok(spmv) = Spmv::new(name, Arc::clone(&matrix), options(form, precision)) else {
                assert_ne!(matrix.rows(), matrix.columns(), "{name}");
                continue;
            };
            for strategy in STRATEGIES {
                run(&mut runtime, &spmv, strategy, None);
            }
        }
    }
}

#[test]
fn beside_a_device_with_memory_of_its_own() {
    every_run_is_right("host:1,cpu:1=own");
}

#[test]
fn beside_a_device_on_the_hosts_memory() {
    every_run_is_right("host:1,cpu:1");
}

#[test]
fn on_a_lone_device_with_memory_of_its_own() {
    every_run_is_right("cpu:1=own");
}

#[test]
fn with_room_for_a_part_of_the_matrix() {
    let mut runtime = open("host:1,cpu:1=own");
    let separate = runtime.devices().iter().position(|d| !d.shares_host_memory);
    let device = runtime.devices()[separate.expect("one with memory of its own")].clone();
    let mut lengths: Vec<u32> = (0..9000).map(|row| 3 + row % 11).collect();
    lengths[4000] = 8000;
    for form in [Form::Product, Form::Iteration, Form::Ranks] {
        let whole = matrix(9000, &lengths, 5);
        let spmv =
            Spmv::new("", Arc::new(whole), options(form, Precision::F64)).expect("a product");
        let (_, least) = lacking(&spmv, &device, Some(1)).expect("a byte is too little");
        assert_eq!(lacking(&spmv, &device, Some(least)), None);
        let matrix_bytes = spmv.units() * spmv.unit_bytes();
        for limit in [least, least + matrix_bytes / 4, least + 2 * matrix_bytes] {
            for strategy in STRATEGIES {
                run(&mut runtime, &spmv, strategy, Some(limit));
            }
        }
    }
}

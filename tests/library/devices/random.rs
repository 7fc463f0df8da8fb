//! Random balancers on real devices: the results equal the reference's.

use std::cell::RefCell;
use std::collections::HashMap;

use pdawl_api::codelet::stencil::Precision;
use pdawl_api::runtime::union::Union;
use pdawl_api::workload::Divisible;
use proptest::prelude::*;
use proptest::test_runner::{TestError, TestRunner};

use super::harness::{Grid, LEAST_UNITS, corun};
use crate::pocl::open;
use crate::random_balancer::RandomBalancer;

const DEVICES: [&str; 5] = [
    "host:1,cpu:1=own",
    "cpu:1=own",
    "cpu:1=own,cpu:1=own",
    "cpu:1=own,cpu:1",
    "cpu:1,host:1",
];

#[derive(Clone, Debug)]
struct Case {
    devices: &'static str,
    grid: Grid,
    /// Memory of a device, in units.
    memory: Option<u64>,
}

fn case() -> impl Strategy<Value = Case> {
    (
        prop::sample::select(DEVICES.as_slice()),
        (3u64..24, 3u64..80),
        prop::option::weighted(0.3, 3u64..16),
        any::<bool>(),
        prop::option::weighted(0.7, LEAST_UNITS..120),
        any::<u64>(),
    )
        .prop_map(|(devices, (nx, ny), nz, single, memory, seed)| Case {
            devices,
            grid: Grid {
                nx,
                ny,
                nz,
                precision: if single {
                    Precision::F32
                } else {
                    Precision::F64
                },
                seed,
            },
            memory,
        })
}

#[test]
fn any_balancer_on_any_devices_is_right() {
    // Each set of devices is opened once and used for many runs.
    let open_ones: RefCell<HashMap<&str, Union>> = RefCell::default();
    let mut runner = TestRunner::new(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(40)
    });
    let result = runner.run(&case(), |case| {
        let mut open_ones = open_ones.borrow_mut();
        let runtime = open_ones
            .entry(case.devices)
            .or_insert_with(|| open(case.devices));
        let stencil = case.grid.stencil();
        let limit = case.memory.map(|units| units * stencil.unit_bytes());
        let seed = case.grid.seed;
        let outcome = corun(runtime, &stencil, limit, |setup| {
            Box::new(RandomBalancer::new(setup, seed))
        })
        .map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(outcome.verified, Some(true));
        prop_assert_eq!(outcome.max_abs_error, Some(0.0));
        prop_assert!(outcome.losses.is_empty());
        for step in &outcome.steps {
            let units: u64 = step.devices.iter().map(|d| d.units).sum();
            prop_assert_eq!(units, stencil.units());
        }
        Ok(())
    });
    match result {
        Ok(()) => {}
        Err(TestError::Fail(why, case)) => panic!("{case:?}: {why}"),
        Err(TestError::Abort(why)) => panic!("{why}"),
    }
}

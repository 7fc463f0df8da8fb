//! Properties of random graphs on real devices: the host's cores and PoCL, with
//! device memory and without.

use fastrand::Rng;
use pdawl_api::runtime::Devices;

use super::random::case;
use super::run::{
    check_memory, check_order, check_results, connect, limit_memory, numbers, once, options,
    policy, prepared,
};
use crate::pocl::open;

fn holds(devices: &str, cases: usize) {
    let mut runtime = open(devices);
    let seed = fastrand::u64(..);
    println!("{devices}: seed {seed}");
    let mut rng = Rng::with_seed(seed);
    for number in 0..cases {
        connect(&mut rng, &mut runtime);
        let case = case(&mut rng, 10);
        let mut policy = policy(&mut rng, numbers(&runtime, &case));
        let mut options = options(&mut rng, runtime.devices().len());
        let mut prepared = prepared(&mut runtime, &case);
        let limit = limit_memory(&mut rng, &mut prepared);
        for run in 0..3 {
            options.trace = run == 1;
            let what = format!(
                "{devices}, seed {seed}, case {number}, run {run}, {}, {options:?}, {limit} bytes",
                policy.name()
            );
            let outcome = once(&mut prepared, &mut runtime, policy.as_mut(), &options)
                .unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(outcome.losses.is_empty(), "{what}: {:?}", outcome.losses);
            // The clocks of devices and host differ slightly.
            check_order(&outcome, &options, &case, 100_000, &what);
            check_results(&prepared, &mut runtime, &case, &what);
            check_memory(&prepared, limit, runtime.devices().len(), &what);
        }
        prepared.release(&mut runtime);
    }
}

#[test]
fn on_a_pool() {
    holds("host:2", 60);
}

#[test]
fn on_two_pools() {
    holds("host:1,host:1", 60);
}

#[test]
fn on_opencl_in_host_memory() {
    holds("cpu:1", 6);
}

#[test]
fn on_opencl_with_memory_of_its_own() {
    holds("cpu:1=own", 6);
}

#[test]
fn on_a_pool_and_opencl() {
    holds("host:1,cpu:1=own", 10);
    holds("host:1,cpu:1", 5);
}

#[test]
fn on_two_parts_of_one_opencl_device() {
    holds("cpu:1=own,cpu:1=own", 6);
}

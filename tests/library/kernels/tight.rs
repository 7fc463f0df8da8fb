//! A run on a device whose memory is just large enough for a kernel's buffers.

use pdawl_api::balance::Strategy;

use super::harness::{corun, examined, open, seed};
use super::suite::Case;
use crate::tight_runtime::TightRuntime;

#[test]
fn a_comparison_needs_no_more_memory_than_the_run() {
    let case = Case {
        name: "twice",
        source: "__kernel void k(__global const int *in, __global int *out) {
            out[get_global_id(0)] = 2 * in[get_global_id(0)];
        }",
        dimension: 1,
        global: "[n]",
        local: "",
        inputs: &[("int", "n", 0, true)],
        outputs: &[("int", "n", 1, true)],
        io: &[],
        values: &[],
        locals: &[],
        macros: &[],
        symbols: &[("n", 1009)],
        sliced: &[],
    };
    let mut runtime = TightRuntime::new(open(&[true]), 2 * 4 * 1009);
    let user = examined(&mut runtime, &case, seed()).user;
    let strategy: Strategy = "cpu".parse().expect("a strategy");
    let (outcome, _) = corun(&mut runtime, &user, &strategy, 2).expect("a run");
    assert_eq!(outcome.verified, Some(true));
    assert!(runtime.is_bare(), "memory was kept");
}

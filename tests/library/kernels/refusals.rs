//! Kernels that cannot be divided are refused with the reason.

use std::sync::atomic::AtomicBool;

use pdawl_api::engine::corun::CorunError;
use pdawl_api::engine::corun::kernel::{SliceTrials, examine};

use super::harness::{examined, open, seed, user};
use super::suite::Case;

fn refused(case: &Case) -> String {
    let mut runtime = open(&[false]);
    let found = examined(&mut runtime, case, seed());
    found
        .refusal
        .unwrap_or_else(|| panic!("{} was divided", case.name))
}

const BASE: Case = Case {
    name: "",
    source: "",
    dimension: 1,
    global: "[n]",
    local: "",
    inputs: &[],
    outputs: &[],
    io: &[],
    values: &[],
    locals: &[],
    macros: &[],
    symbols: &[("n", 1000)],
    sliced: &[],
};

#[test]
fn a_counter_that_all_add_to_is_no_sum_of_parts() {
    let case = Case {
        name: "counter",
        source: "__kernel void k(__global int *count) {
            if (get_global_id(0) % 3 == 0) atomic_inc(&count[0]);
        }",
        io: &[("int", "4", 0, false)],
        ..BASE
    };
    assert!(refused(&case).contains("write the same bytes of argument 0"));
}

/// A GPU does not protect what lies behind a buffer.
#[test]
fn writes_behind_a_buffer_in_a_devices_own_memory_are_found() {
    for (name, statement, left) in [
        (
            "an output",
            "out[i + 24] = in[i];",
            "`out` (argument 1, 4000",
        ),
        (
            "an input",
            "((__global int *)in)[i + 1] = out[i] = 5;",
            "`in` (argument 0, 4000",
        ),
    ] {
        let source = format!(
            "__kernel void k(__global const int *in, __global int *out) {{
                size_t i = get_global_id(0);
                {statement}
            }}"
        );
        let case = Case {
            name,
            source: Box::leak(source.into_boxed_str()),
            inputs: &[("int", "n", 0, false)],
            outputs: &[("int", "n", 1, false)],
            ..BASE
        };
        let mut runtime = open(&[true]);
        let stop = AtomicBool::new(false);
        let trials = SliceTrials::IfShort;
        let error = examine(&mut runtime, 0, user(&case, seed()), trials, &stop);
        let error = error.expect_err(name);
        assert!(matches!(error, CorunError::PastEnd { .. }), "{error:?}");
        let said = error.to_string();
        for part in ["kernel `k` writes past the end of buffer", left, "=own"] {
            assert!(said.contains(part), "{name}: no {part} in {said}");
        }
    }
}

#[test]
fn parts_that_write_the_same_place_are_found() {
    let case = Case {
        name: "the largest wins",
        source: "__kernel void k(__global int *out) {
            atomic_max(&out[get_global_id(0) % 16], get_global_id(0) + 1);
        }",
        io: &[("int", "16", 0, false)],
        ..BASE
    };
    assert!(refused(&case).contains("the first at byte 0"));
}

#[test]
fn a_single_group_is_not_divided() {
    let case = Case {
        name: "one group",
        source: "__kernel void k(__global int *out, __local int *part) {
            int i = get_local_id(0);
            part[i] = i;
            barrier(CLK_LOCAL_MEM_FENCE);
            out[get_global_id(0)] = part[get_local_size(0) - 1 - i];
        }",
        outputs: &[("int", "n", 0, true)],
        locals: &[("int", "n", 1)],
        local: "[n]",
        symbols: &[("n", 40)],
        ..BASE
    };
    assert!(refused(&case).contains("single work-group"));
}

#[test]
fn a_value_handed_from_one_part_to_another_is_found() {
    // PoCL runs the groups of a device in any order; each reads `out[0]` as it is.
    let case = Case {
        name: "depends on what others wrote",
        source: "__kernel void k(__global const int *in, __global int *out) {
            int i = get_global_id(0);
            int seen = out[0];
            out[i] = in[i] + (i > 0 ? seen : 5);
        }",
        inputs: &[("int", "n", 0, false)],
        outputs: &[("int", "n", 1, false)],
        local: "[1]",
        ..BASE
    };
    let why = refused(&case);
    let expected = ["differ from run to run", "another result", "same bytes"];
    assert!(expected.iter().any(|part| why.contains(part)), "{why}");
}

#[test]
fn a_wrong_break_is_reported_and_does_no_harm() {
    let case = Case {
        name: "reads everything",
        source: "__kernel void k(__global const int *in, __global const int *mine,
                                 __global int *out) {
            int i = get_global_id(0);
            out[i] = in[get_global_size(0) - 1 - i] + mine[i];
        }",
        inputs: &[("int", "n", 0, true), ("int", "n", 1, true)],
        outputs: &[("int", "n", 2, true)],
        ..BASE
    };
    let mut runtime = open(&[false]);
    let found = examined(&mut runtime, &case, seed());
    assert_eq!(found.refusal, None);
    assert_eq!(found.user.slices().read, [1]);
    assert_eq!(found.user.slices().written, [2]);
    assert!(found.notes[0].contains("argument 0 is not divided as its `break` says"));
}

#[test]
fn trials_end_on_request() {
    let case = Case {
        name: "copy",
        source: "__kernel void k(__global int *out) { out[get_global_id(0)] = 1; }",
        outputs: &[("int", "n", 0, false)],
        ..BASE
    };
    let mut runtime = open(&[false]);
    let stop = AtomicBool::new(true);
    let ended = examine(&mut runtime, 0, user(&case, 1), SliceTrials::IfShort, &stop);
    assert!(matches!(ended, Err(CorunError::Interrupted)), "{ended:?}");
}

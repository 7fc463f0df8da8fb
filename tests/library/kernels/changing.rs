//! Kernels whose data change from step to step, and with them what the examination has seen.

use pdawl_api::balance::Strategy;
use pdawl_api::balance::strategy::Shares;

use super::harness::{corun, examined, open, seed, undivided};
use super::suite::Case;
use crate::own_process::in_own_process;

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
    symbols: &[("n", 1001)],
    sliced: &[],
};

/// Parts that are apart in the first step add to one place from the second on.
const GATHERS: Case = Case {
    name: "all add to one place",
    source: "__kernel void k(__global int *index, __global int *sum) {
        int i = get_global_id(0);
        int to = index[i] == 123456789 ? 0 : i;
        atomic_add(&sum[to], i + 1);
        index[i] = 123456789;
    }",
    io: &[("int", "n", 0, true), ("int", "n", 1, false)],
    ..BASE
};

/// The same number is added by everybody, so that all parts leave the same value.
const COUNTS: Case = Case {
    name: "all count at one place",
    source: "__kernel void k(__global int *index, __global int *sum) {
        int i = get_global_id(0);
        int n = get_global_size(0);
        int nth = i < n / 2 ? i : n - 1 - i;
        if (index[i] != 123456789) sum[i] += 1;
        else if (nth == 3) atomic_add(&sum[0], 1);
        index[i] = 123456789;
    }",
    io: &[("int", "n", 0, true), ("int", "n", 1, false)],
    ..BASE
};

/// Each writes its own place in the first step, and that of another one later. The file says
/// that both buffers are divided with the work.
const MOVES: Case = Case {
    name: "the places move",
    source: "__kernel void k(__global long *next, __global long *to) {
        long i = get_global_id(0), n = get_global_size(0), tag = 1L << 60;
        long old = next[i] - tag;
        long at = old >= 0 && old < n ? old : i;
        to[at] = i + 1;
        next[i] = tag + (at * 5 + 3) % n;
    }",
    io: &[("long", "n", 0, true), ("long", "n", 1, true)],
    ..BASE
};

/// Every part sets a flag, to the same value.
const FLAGS: Case = Case {
    name: "all set a flag",
    source: "__kernel void k(__global int *value, __global int *flag) {
        int i = get_global_id(0);
        if (value[i] != 42) flag[0] = 1;
        value[i] = value[i] / 2 + i;
    }",
    io: &[("int", "n", 0, true)],
    outputs: &[("int", "4", 1, false)],
    ..BASE
};

/// Runs four steps of a case over each set of devices, and compares every written byte with
/// the undivided launches. Returns the notes of the last set's run.
fn check(case: &Case, sets: &[&[bool]]) -> Vec<String> {
    let seed = seed();
    let expected = undivided(&mut open(&[false]), case, seed, 4);
    let mut notes = Vec::new();
    for own in sets {
        let mut runtime = open(own);
        let found = examined(&mut runtime, case, seed);
        assert_eq!(found.refusal, None, "{} on {own:?}", case.name);
        let equal = vec![1.0 / own.len() as f64; own.len()];
        let strategy = Strategy::Fixed(Shares::new(equal).expect("shares"));
        let (outcome, results) = corun(&mut runtime, &found.user, &strategy, 4)
            .unwrap_or_else(|e| panic!("{} on {own:?}: {e}", case.name));
        assert!(results == expected, "{} on {own:?} differs", case.name);
        assert_eq!(outcome.verified, Some(true), "{} on {own:?}", case.name);
        notes = outcome.notes;
    }
    notes
}

const TWO: [&[bool]; 2] = [&[false, true], &[true, true]];

#[test]
fn parts_that_clash_in_a_later_step_run_again_undivided() {
    for case in [GATHERS, COUNTS] {
        let notes = check(&case, &TWO);
        assert_eq!(notes.len(), 1, "{}: {notes:?}", case.name);
        let (what, steps) = ("argument 1 in step 1", "3 of the steps ran again");
        assert!(notes[0].contains(what), "{}: {notes:?}", case.name);
        assert!(notes[0].contains(steps), "{}: {notes:?}", case.name);
    }
}

#[test]
fn parts_of_three_devices_clash() {
    let name = "kernels::changing::parts_of_three_devices_clash";
    if !in_own_process(name, &[("POCL_MAX_PTHREAD_COUNT", "3")]) {
        return;
    }
    let notes = check(&GATHERS, &[&[true, false, true]]);
    assert_eq!(notes.len(), 1, "{notes:?}");
}

#[test]
fn places_that_move_are_no_slices() {
    assert_eq!(check(&MOVES, &TWO), Vec::<String>::new());
}

#[test]
fn equal_values_of_several_parts_agree() {
    assert_eq!(check(&FLAGS, &TWO), Vec::<String>::new());
}

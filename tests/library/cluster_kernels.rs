//! Kernels of users over nodes that are threads, each with an OpenCL CPU device (PoCL) that
//! shares the host's memory or has its own.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use pdawl_api::cluster::wire::{LocalWire, Wire};
use pdawl_api::engine::corun::kernel::{SliceTrials, examine, undivided};
use pdawl_api::spread::NamedSpread;
use pdawl_api::workload::cluster::{Check, ClusterWorkload, KernelWorkload, NotDivided};

use crate::cluster::{Case, Ran};
use crate::cluster_losses::right_or_never_begun;
use crate::kernels::harness::{self, open, user};
use crate::kernels::suite::{self, Case as KernelCase};

/// A kernel as it was examined, with the results of the unchanged source.
fn workload(kernel: &KernelCase, seed: u64, steps: u32, nodes: usize) -> KernelWorkload {
    let mut runtime = open(&[false]);
    let found = harness::examined(&mut runtime, kernel, seed);
    let reference = harness::undivided(&mut runtime, kernel, seed, steps);
    let reference = reference.into_iter().map(|(_, bytes)| bytes).collect();
    let workload = KernelWorkload::new(found.user, steps.into(), nodes);
    let workload = workload.unwrap_or_else(|error| panic!("{}: {error}", kernel.name));
    // A last unit of another size has a launch of its own.
    assert!((1..=8 * nodes as u64 + 1).contains(&workload.runs()));
    workload.with_reference(reference)
}

/// Whether all that a kernel writes is divided.
fn is_divided(kernel: &KernelCase) -> bool {
    let mut written = kernel.outputs.iter().chain(kernel.io);
    written.all(|(_, _, position, _)| kernel.sliced.contains(position))
}

fn rank(case: &Case, own: bool, wire: LocalWire, stop: &AtomicBool) -> Ran {
    case.on(&mut open(&[own]), wire, stop)
}

#[test]
fn every_divided_kernel_is_right_on_any_nodes() {
    let seed = harness::seed();
    let mut random = fastrand::Rng::with_seed(seed);
    let policies: Vec<NamedSpread> = NamedSpread::all().collect();
    let kernels = suite::cases().into_iter().filter(is_divided);
    for kernel in kernels {
        // Data of kernels that read what they write change from step to step.
        let steps = if kernel.io.is_empty() { 2 } else { 3 };
        let nodes = random.usize(1..=3);
        let case = Case {
            workload: Arc::new(workload(&kernel, seed, steps, nodes)),
            tile: 1,
            spread: policies[random.usize(..policies.len())],
            prefetch: random.u32(..4),
            nodes,
            seed: random.u64(..),
        };
        let own: Vec<bool> = (0..nodes).map(|_| random.bool()).collect();
        let ran = case.run_as(
            |wire, stop| rank(&case, own[wire.rank()], wire, stop),
            |_| {},
        );
        let mut outcomes = ran
            .into_iter()
            .map(|ran| ran.unwrap_or_else(|error| panic!("{} on {own:?}: {error}", kernel.name)));
        let outcome = outcomes
            .next()
            .flatten()
            .expect("the first rank has the outcome");
        let checked = outcome.checked().expect("the result was compared");
        assert!(checked.numbers > 0, "{}", kernel.name);
        // The same kernel on the same device: bit for bit.
        assert_eq!(
            (checked.wrong, checked.worst),
            (0, 0.0),
            "{} on {own:?}",
            kernel.name
        );
    }
}

/// Nodes make parts of buffers, from any byte on, which are those of the whole.
#[test]
fn a_part_of_a_buffer_has_the_first_contents_of_the_whole() {
    let mut random = fastrand::Rng::with_seed(harness::seed());
    for kernel in suite::cases() {
        let generated = user(&kernel, 7);
        let buffers: Vec<_> = generated.buffers().map(|(at, b)| (at, b.bytes())).collect();
        for (position, bytes) in buffers {
            let given: Arc<[u8]> = (0..bytes).map(|_| random.u8(..)).collect();
            let loaded = generated.clone().with_contents(position, Arc::new(given));
            for user in [&generated, &loaded.expect("it has the right length")] {
                let mut whole = vec![9; bytes as usize];
                user.fill(position, &mut whole);
                for _ in 0..20 {
                    let begin = random.usize(..=whole.len());
                    let end = random.usize(begin..=whole.len());
                    let mut part = vec![5; end - begin];
                    user.fill_from(position, begin as u64, &mut part);
                    let right = &whole[begin..end];
                    assert_eq!(part, right, "{}: {position}, {begin}..{end}", kernel.name);
                }
            }
        }
    }
}

const SUM: KernelCase = KernelCase {
    name: "sum of all steps",
    source: "__kernel void k(__global const float *a, __global float *sum, __global int *odd) {
        int i = get_global_id(0);
        sum[i] = sum[i] * 0.5f + a[i % 7];
        if (i % 2) odd[i] = i + (int)get_global_size(0);
    }",
    dimension: 1,
    global: "[n]",
    local: "",
    inputs: &[("float", "7", 0, false)],
    outputs: &[("int", "n", 2, true)],
    io: &[("float", "n", 1, true)],
    values: &[],
    locals: &[],
    macros: &[],
    symbols: &[("n", 3001)],
    sliced: &[1, 2],
};

#[test]
fn a_lost_node_does_not_change_the_result_of_a_kernel() {
    let seed = harness::seed();
    let mut random = fastrand::Rng::with_seed(seed);
    let workload = Arc::new(workload(&SUM, seed, 6, 16));
    for own in [false, true] {
        let case = Case {
            workload: workload.clone(),
            tile: 1,
            spread: NamedSpread::default(),
            prefetch: 2,
            nodes: 3,
            seed: random.u64(..),
        };
        let after = Duration::from_micros(random.u64(..1_500_000));
        let ran = case.run_as(
            |wire, stop| rank(&case, own, wire, stop),
            move |faults| {
                thread::sleep(after);
                faults.kill(1);
            },
        );
        right_or_never_begun(&case, ran);
    }
}

/// After another number of steps the sums differ, and the odd numbers do not.
#[test]
fn wrong_results_of_a_kernel_are_seen() {
    let (seed, steps) = (4, 2);
    let workload = workload(&SUM, seed, steps, 16);
    let Check::Whole(_, check) = workload.check() else {
        panic!("all of a kernel's result is compared");
    };
    let mut runtime = open(&[false]);
    let (whole, stop) = (user(&SUM, seed), AtomicBool::new(false));
    let mut after = |steps| undivided(&mut runtime, 0, &whole, steps, &stop).expect("it runs");
    let mut checked = |steps| {
        let buffers = after(steps);
        check(&buffers.iter().map(Vec::as_slice).collect::<Vec<_>>(), 1)
    };
    assert_eq!(checked(steps).wrong, 0);
    let checked = checked(steps + 1);
    assert_eq!(checked.numbers, 2 * 3001);
    assert!((2500..=3001).contains(&checked.wrong), "{checked:?}");
}

#[test]
fn what_is_written_and_not_divided_is_refused() {
    let undeclared = KernelCase {
        io: &[("float", "n", 1, false)],
        ..SUM
    };
    let scattered = KernelCase {
        source: "__kernel void k(__global int *out) {
            out[get_global_size(0) - 1 - get_global_id(0)] = 1;
        }",
        inputs: &[],
        io: &[],
        outputs: &[("int", "n", 0, true)],
        ..SUM
    };
    let mut runtime = open(&[false]);
    let stop = AtomicBool::new(false);
    let refused: HashMap<usize, bool> = [(1, undeclared), (0, scattered)]
        .into_iter()
        .map(|(argument, kernel)| {
            let user = user(&kernel, 1);
            let found = examine(&mut runtime, 0, user, SliceTrials::Always, &stop);
            let found = found.expect("it runs");
            assert_eq!(found.refusal, None);
            let refused = KernelWorkload::new(found.user, 1, 16).err();
            (argument, refused == Some(NotDivided { argument }))
        })
        .collect();
    assert_eq!(refused, HashMap::from([(0, true), (1, true)]));
}

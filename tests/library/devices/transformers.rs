//! Transformers under every policy, divided between the host's cores and an OpenCL
//! device with device memory.

use std::sync::atomic::AtomicBool;

use pdawl_api::codelet::NumberFormat;
use pdawl_api::engine::graph::Control;
use pdawl_api::policy::{Configuration, NamedPolicy};
use pdawl_api::workload::transformer::{Form, Transformer};

use crate::comparison::{CandidatePolicy, Comparison};
use crate::pocl::open;

const WIDE: Configuration = Configuration {
    q_gpu: 3,
    q_cpu: 2,
    h_cpu: 2,
    width: 3,
};

fn right(
    (heads, beta, layers): (u32, u32, u32),
    format: NumberFormat,
    form: Form,
    candidates: &[CandidatePolicy],
) {
    let transformer = Transformer {
        heads,
        beta,
        layers,
        format,
        seed: fastrand::u64(..),
        form,
        read_back: true,
    };
    println!("{transformer:?}");
    let mut runtime = open("host:1,cpu:1=own");
    let stop = AtomicBool::new(false);
    let mut comparison = Comparison::new(&runtime, &transformer, true);
    let mut shares = vec![0; 2];
    for candidate in candidates {
        for _ in 0..2 {
            let mut control = Control {
                stop: &stop,
                progress: &mut |_, _| {},
            };
            let outcome = comparison.run(&mut runtime, *candidate, false, &mut control);
            for (share, used) in shares.iter_mut().zip(&outcome.uses) {
                *share += used.kernels;
            }
            let verification = comparison.verify(&mut runtime);
            assert!(verification.right(), "{candidate:?}: {verification:?}");
        }
    }
    // Both devices must have run kernels, so that both kinds were verified.
    assert!(shares.iter().all(|kernels| *kernels > 0), "{shares:?}");
    comparison.release(&mut runtime);
}

#[test]
fn every_policy_is_right() {
    let candidates = [
        CandidatePolicy::new(NamedPolicy::CLUSTERING, Some(WIDE)),
        CandidatePolicy::new(NamedPolicy::EAGER, None),
        CandidatePolicy::new(NamedPolicy::HEFT, None),
        CandidatePolicy::new(NamedPolicy::ADAPTIVE, Some(WIDE)),
        CandidatePolicy::new("locality".parse().unwrap(), None),
    ];
    right((3, 37, 2), NumberFormat::F32, Form::Heads, &candidates);
    right((4, 64, 1), NumberFormat::F32, Form::Heads, &candidates);
}

#[test]
fn batches_are_right() {
    let form = Form::Batches(vec![3, 2]);
    let clustering = CandidatePolicy::new(NamedPolicy::CLUSTERING, Some(WIDE));
    right((5, 33, 3), NumberFormat::F32, form, &[clustering]);
}

#[test]
fn transformers_of_every_format_are_right() {
    for format in [NumberFormat::F16, NumberFormat::Bf16, NumberFormat::Tf32] {
        let form = Form::Batches(vec![3, 2]);
        let clustering = CandidatePolicy::new(NamedPolicy::CLUSTERING, Some(WIDE));
        right((5, 36, 2), format, form, &[clustering]);
        let eager = CandidatePolicy::new(NamedPolicy::EAGER, None);
        right((3, 37, 2), format, Form::Heads, &[eager]);
    }
}

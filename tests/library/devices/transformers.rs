//! Transformers under every policy, divided between the host's cores and an OpenCL
//! device with device memory.

use std::sync::atomic::AtomicBool;

use pdawl::engine::graph::Control;
use pdawl::experiment::{Bout, Contender};
use pdawl::policy::Configuration;
use pdawl::workload::transformer::{Form, Transformer};

use crate::pocl::open;

const WIDE: Configuration = Configuration {
    q_gpu: 3,
    q_cpu: 2,
    h_cpu: 2,
    width: 3,
};

fn right(heads: u32, beta: u32, layers: u32, form: Form, contenders: &[Contender]) {
    let transformer = Transformer {
        heads,
        beta,
        layers,
        seed: fastrand::u64(..),
        form,
        read_back: true,
    };
    println!("{transformer:?}");
    let mut runtime = open("host:1,cpu:1=own");
    let stop = AtomicBool::new(false);
    let mut bout = Bout::new(&runtime, &transformer, true).unwrap();
    let mut shares = vec![0; 2];
    for contender in contenders {
        for _ in 0..2 {
            let mut control = Control {
                stop: &stop,
                progress: &mut |_, _| {},
            };
            let outcome = bout
                .run(&mut runtime, *contender, false, &mut control)
                .unwrap();
            for (share, used) in shares.iter_mut().zip(&outcome.uses) {
                *share += used.kernels;
            }
            let verification = bout
                .verify(&mut runtime, &AtomicBool::new(false))
                .unwrap()
                .unwrap();
            assert!(verification.right(), "{contender:?}: {verification:?}");
        }
    }
    // Both devices must have run kernels, so that both kinds were verified.
    assert!(shares.iter().all(|kernels| *kernels > 0), "{shares:?}");
    bout.release(&mut runtime);
}

#[test]
fn every_policy_is_right() {
    let contenders = [
        Contender::Clustering(WIDE),
        Contender::Eager,
        Contender::Heft,
        Contender::Adaptive(WIDE),
    ];
    right(3, 37, 2, Form::Heads, &contenders);
    right(4, 64, 1, Form::Heads, &contenders);
}

#[test]
fn batches_are_right() {
    let form = Form::Batches(vec![3, 2]);
    right(5, 33, 3, form, &[Contender::Clustering(WIDE)]);
}

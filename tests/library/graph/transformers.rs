//! Transformers under every policy on simulated machines with data, and on the host's cores.

use std::sync::atomic::AtomicBool;

use crate::comparison::{CandidatePolicy, Comparison};
use pdawl_api::codelet::NumberFormat;
use pdawl_api::engine::graph::Control;
use pdawl_api::machine::MachineStore;
use pdawl_api::policy::{Configuration, NamedPolicy, Space};
use pdawl_api::runtime::Runtime;
use pdawl_api::runtime::select;
use pdawl_api::runtime::sim::{Sim, SimOptions};
use pdawl_api::workload::transformer::{Form, Transformer};

fn transformer(heads: u32, beta: u32, layers: u32, form: Form) -> Transformer {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    Transformer {
        heads,
        beta,
        layers,
        format: NumberFormat::F32,
        seed,
        form,
        read_back: true,
    }
}

fn simulated() -> Sim {
    let file = MachineStore::at("/nonexistent").find("k40").unwrap();
    let options = SimOptions {
        data: true,
        ..SimOptions::default()
    };
    Sim::new(&file, options).unwrap()
}

fn mc(q_gpu: usize, q_cpu: usize, h_cpu: usize, width: usize) -> Configuration {
    Configuration {
        q_gpu,
        q_cpu,
        h_cpu,
        width,
    }
}

/// Runs the candidates and verifies every result.
fn right(runtime: &mut dyn Runtime, transformer: &Transformer, candidates: &[CandidatePolicy]) {
    let stop = AtomicBool::new(false);
    for keep in [false, true] {
        let mut comparison = Comparison::new(runtime, transformer, keep);
        for candidate in candidates {
            for trace in [false, true] {
                let mut control = Control {
                    stop: &stop,
                    progress: &mut |_, _| {},
                };
                let outcome = comparison.run(runtime, *candidate, trace, &mut control);
                let verification = comparison.verify(runtime);
                let place = format!("{candidate:?} {transformer:?} {keep} {trace}");
                assert!(verification.right(), "{place}: {verification:?}");
                let kernels = transformer.layers().unwrap().graph.kernels().len();
                assert_eq!(outcome.kernels(), kernels as u64, "{place}");
            }
        }
        comparison.release(runtime);
    }
}

const ALL: [CandidatePolicy; 7] = [
    CandidatePolicy::new(
        NamedPolicy::CLUSTERING,
        Some(Configuration {
            q_gpu: 1,
            q_cpu: 1,
            h_cpu: 0,
            width: 1,
        }),
    ),
    CandidatePolicy::new(
        NamedPolicy::CLUSTERING,
        Some(Configuration {
            q_gpu: 3,
            q_cpu: 2,
            h_cpu: 1,
            width: 1,
        }),
    ),
    CandidatePolicy::new(
        NamedPolicy::CLUSTERING,
        Some(Configuration {
            q_gpu: 5,
            q_cpu: 1,
            h_cpu: 2,
            width: 5,
        }),
    ),
    CandidatePolicy::new(NamedPolicy::EAGER, None),
    CandidatePolicy::new(NamedPolicy::HEFT, None),
    CandidatePolicy::new(
        NamedPolicy::ADAPTIVE,
        Some(Configuration {
            q_gpu: 2,
            q_cpu: 1,
            h_cpu: 0,
            width: 1,
        }),
    ),
    CandidatePolicy::new(
        NamedPolicy::ADAPTIVE,
        Some(Configuration {
            q_gpu: 4,
            q_cpu: 2,
            h_cpu: 0,
            width: 4,
        }),
    ),
];

#[test]
fn every_policy_is_right_on_a_simulated_machine() {
    for (heads, beta, layers) in [(1, 1, 1), (1, 37, 2), (3, 29, 3), (5, 16, 1)] {
        let transformer = transformer(heads, beta, layers, Form::Heads);
        let fits = |candidate: &&CandidatePolicy| {
            let configuration = candidate.configuration;
            configuration.is_none_or(|c| c.h_cpu <= heads as usize)
        };
        let others = [
            "auto-fit",
            "round-robin",
            "locality",
            "dmdar",
            "partition",
            "mhfp",
            "darts",
        ];
        let others = others.map(|name| {
            let policy: NamedPolicy = name.parse().unwrap();
            let configuration = (!policy.places_kernels()).then(|| mc(2, 1, 0, 1));
            CandidatePolicy::new(policy, configuration)
        });
        let candidates = ALL.iter().filter(fits).copied().chain(others);
        let candidates: Vec<_> = candidates.collect();
        right(&mut simulated(), &transformer, &candidates);
    }
}

#[test]
fn batches_are_right_on_a_simulated_machine() {
    let one = transformer(4, 21, 2, Form::Batches(vec![4]));
    right(
        &mut simulated(),
        &one,
        &[
            CandidatePolicy::new(NamedPolicy::CLUSTERING, Some(mc(1, 1, 0, 1))),
            CandidatePolicy::new(NamedPolicy::CLUSTERING, Some(mc(3, 1, 1, 3))),
        ],
    );
    let two = transformer(4, 21, 3, Form::Batches(vec![3, 1]));
    right(
        &mut simulated(),
        &two,
        &[
            CandidatePolicy::new(NamedPolicy::CLUSTERING, Some(mc(2, 1, 1, 2))),
            ALL[5],
        ],
    );
}

#[test]
fn every_policy_is_right_on_the_host() {
    let host = "host:1".parse().unwrap();
    let (mut runtime, _) = select::open(Some(&host), false).unwrap();
    let transformer = transformer(2, 67, 2, Form::Heads);
    let candidates = [
        CandidatePolicy::new(NamedPolicy::CLUSTERING, Some(mc(1, 2, 2, 1))),
        CandidatePolicy::new(NamedPolicy::EAGER, None),
        CandidatePolicy::new(NamedPolicy::HEFT, None),
        ALL[5],
    ];
    right(&mut *runtime, &transformer, &candidates);
}

#[test]
fn a_search_finds_the_fastest_of_a_simulated_machine() {
    let mut sim = simulated();
    let transformer = transformer(4, 64, 1, Form::Heads);
    let mut comparison = Comparison::new(&sim, &transformer, false);
    let stop = AtomicBool::new(false);
    let mut control = Control {
        stop: &stop,
        progress: &mut |_, _| {},
    };
    let space = Space {
        q_gpu: vec![1, 2, 3],
        q_cpu: vec![1],
        h_cpu: vec![0, 1, 4],
        widths: vec![1, 3],
    };
    let found = comparison.search(&mut sim, &space, 2, &mut control);
    let (_, least) = found.best.unwrap();
    // Without noise a run takes the same each time: none is faster.
    for configuration in space.configurations(4) {
        let mut control = Control {
            stop: &stop,
            progress: &mut |_, _| {},
        };
        let candidate = CandidatePolicy::new(NamedPolicy::CLUSTERING, Some(configuration));
        let seconds = comparison
            .run(&mut sim, candidate, false, &mut control)
            .seconds;
        assert!(
            least <= seconds * 1.01,
            "{configuration:?} {found:?} {seconds}"
        );
    }
    comparison.release(&mut sim);
}

/// Copies cost time, too: what adaptive has learned is as good as the best of the
/// search only if it leaves on a device what only that device needs.
#[test]
fn adaptive_is_as_fast_as_the_best_of_a_search() {
    for (machine, beta, layers) in [
        ("h200", 256, 1),
        ("h200", 512, 3),
        ("k40", 256, 1),
        ("k40", 256, 3),
        ("titan", 64, 3),
    ] {
        let file = MachineStore::at("/nonexistent").find(machine).unwrap();
        let options = SimOptions {
            noise: Some(0.0),
            ..SimOptions::default()
        };
        let mut sim = Sim::new(&file, options).unwrap();
        let transformer = transformer(16, beta, layers, Form::Heads);
        let mut comparison = Comparison::new(&sim, &transformer, true);
        let stop = AtomicBool::new(false);
        let mut control = Control {
            stop: &stop,
            progress: &mut |_, _| {},
        };
        let mut runs = Vec::new();
        for _ in 0..4 {
            let candidate = CandidatePolicy::new(NamedPolicy::ADAPTIVE, Some(mc(4, 1, 0, 1)));
            let outcome = comparison.run(&mut sim, candidate, false, &mut control);
            runs.push((outcome.seconds, outcome.uses));
        }
        let space = Space {
            q_gpu: vec![4],
            q_cpu: vec![1],
            h_cpu: (0..=16).collect(),
            widths: vec![1],
        };
        let found = comparison.search(&mut sim, &space, 1, &mut control);
        let (best, least) = found.best.unwrap();
        assert!(
            runs[3].0 <= least * 1.05,
            "{machine}, beta {beta}, {layers} layers: {runs:#?}, at best {best:?} {least}"
        );
        comparison.release(&mut sim);
    }
}

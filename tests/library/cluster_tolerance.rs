//! Page ranks and stencils over nodes that end with a tolerance.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use pdawl_api::codelet::Precision;
use pdawl_api::matrix::Csr;
use pdawl_api::spread::NamedSpread;
use pdawl_api::workload::Supersteps;
use pdawl_api::workload::cluster::BandsWorkload;
use pdawl_api::workload::spmv::Form;
use pdawl_api::workload::stencil::Stencil;

use crate::cluster::{Case, load, product};
use crate::cluster_losses::right_or_never_begun;

/// The sum of the changes in each step of a page rank.
fn changes(matrix: &Csr, damping: f64, steps: usize) -> Vec<f64> {
    let count = matrix.rows() as usize;
    let mut ranks = vec![1.0 / count as f64; count];
    let step = |ranks: &mut Vec<f64>| {
        let mut next = vec![0.0; count];
        let mut loose = 0.0;
        for (vertex, rank) in (0..).zip(&*ranks) {
            let (links, _) = matrix.row(vertex);
            match links {
                [] => loose += rank,
                _ => links
                    .iter()
                    .for_each(|to| next[*to as usize] += rank / links.len() as f64),
            }
        }
        for number in &mut next {
            *number = damping * (*number + loose / count as f64) + (1.0 - damping) / count as f64;
        }
        let changes = next.iter().zip(&*ranks).map(|(new, old)| (new - old).abs());
        let sum = changes.sum();
        *ranks = next;
        sum
    };
    (0..steps).map(|_| step(&mut ranks)).collect()
}

/// A page rank with a tolerance ends after the step in which it is reached, on any nodes
/// and with losses, and with the ranks of that step.
#[test]
fn a_tolerance_ends_a_page_rank() {
    let seed = fastrand::u64(..1 << 40);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let policies: Vec<NamedSpread> = NamedSpread::all().collect();
    let matrix = load("rmat:11,6", seed);
    let changes = changes(&matrix, 0.85, 12);
    assert!(changes.is_sorted_by(|a, b| a > b), "{changes:?}");
    for nodes in 1..=8 {
        let done = random.usize(1..=12);
        // Between two changes, so that rounding does not decide.
        let tolerance = match done {
            1 => 2.0 * changes[0],
            12 => 0.0,
            _ => (changes[done - 2] * changes[done - 1]).sqrt(),
        };
        let case = Case {
            workload: Arc::new(product(
                matrix.clone(),
                Form::Ranks,
                Precision::F64,
                (12, Some(tolerance)),
                seed,
            )),
            tile: 1,
            spread: policies[random.usize(..policies.len())],
            prefetch: random.u32(..4),
            nodes,
            seed: random.u64(..),
        };
        let outcome = case.outcome();
        assert_eq!(outcome.tasks, done as u64, "{nodes} nodes, {changes:?}");
        let change = outcome.figure.expect("it has the change");
        assert!((change - changes[done - 1]).abs() < 1e-12, "{change}");
        let checked = outcome.checked().expect("the result was compared");
        assert_eq!(checked.wrong, 0, "{checked:?}");
        let after = Duration::from_micros(random.u64(..20_000));
        if nodes > 1 {
            let ran = case.run(move |faults| {
                thread::sleep(after);
                faults.kill(nodes - 1);
            });
            right_or_never_begun(&case, ran);
        }
    }
}

/// A stencil ends after the first step that is checked and changes no point more, on any
/// nodes, whose supersteps need not divide the steps between two checks.
#[test]
fn a_change_ends_a_stencil() {
    let seed = fastrand::u64(..1 << 40);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for nodes in 1..=5 {
        let stencil = Stencil::new(70, 90, None, Precision::F64, seed).unwrap();
        let supersteps = Supersteps::new(60, random.u32(1..8)).with_period(random.u32(3..12));
        // Random numbers from 0 to 1 change less and less; sometimes never so little.
        let tolerance = [0.05, 0.02, 0.01, 1e-9][random.usize(..4)];
        let case = Case {
            workload: Arc::new(BandsWorkload::stencil(stencil, supersteps).until(Some(tolerance))),
            tile: 1,
            spread: NamedSpread::all().next().unwrap(),
            prefetch: 0,
            nodes,
            seed: random.u64(..),
        };
        let outcome = case.outcome();
        let change = outcome.figure.expect("it has the change");
        let ends = outcome.tasks.is_multiple_of(supersteps.period().into());
        match change <= tolerance {
            true => assert!(ends && outcome.tasks < 60, "{} steps", outcome.tasks),
            false => assert_eq!(outcome.tasks, 60),
        }
        // The reference has as many steps, and this change in the last one.
        let checked = outcome.checked().expect("the result was compared");
        assert_eq!(checked.wrong, 0, "{nodes} nodes: {checked:?}");
    }
}

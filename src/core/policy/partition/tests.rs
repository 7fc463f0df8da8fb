use super::*;
use crate::policy::fixtures::{gpus, product};
use proptest::prelude::*;

fn graph(problem: &Problem) -> Hypergraph {
    let mut users = vec![Vec::new(); problem.data.len()];
    uses(problem).for_each(|(task, datum)| users[datum].push(task));
    let nets = users.into_iter().map(|users| (1, users));
    Hypergraph::new(vec![1.0; problem.tasks.len()], nets)
}

/// The best known: a device has a half, a quarter, or a third of the product, as a block.
#[test]
fn a_product_is_divided_into_blocks() {
    for (n, devices, best) in [(20, 2, 20), (20, 4, 40), (40, 4, 80), (24, 3, 40)] {
        let graph = graph(&product(n, gpus(devices, 1)));
        let shares = vec![1.0 / devices as f64; devices];
        let mut random = fastrand::Rng::with_seed(1);
        let parts = partition(&graph, &shares, IMBALANCE, &mut random);
        for part in 0..devices {
            let count = parts.iter().filter(|of| **of == part).count() as f64;
            let share = (n * n) as f64 / devices as f64;
            assert!(
                (count - share).abs() <= share * IMBALANCE + 1.0,
                "{count} of {share}"
            );
        }
        let copies = copies(&graph, &parts, devices);

        assert!(copies <= best * 5 / 4, "{n} {devices}: {copies} of {best}");
    }
}

proptest! {
    /// The best bisection of small hypergraphs, by exhaustive search.
    #[test]
    fn bisections_are_near_the_best(
        nets in prop::collection::vec((1_i64..5, prop::collection::btree_set(0_usize..10, 2..5)), 1..12),
        seed in any::<u64>(),
    ) {
        let nets = nets.into_iter().map(|(bytes, pins)| (bytes, pins.into_iter().collect()));
        let graph = Hypergraph::new(vec![1.0; 10], nets);
        let sides = |set: u32| (0..10).map(|v| set >> v & 1 == 1).collect::<Vec<bool>>();
        let halves = (0..1_u32 << 10).filter(|set| set.count_ones() == 5);
        let best = halves.map(|set| graph.cut(&sides(set))).min().expect("a half");
        let mut random = fastrand::Rng::with_seed(seed);
        let parts = partition(&graph, &[0.5, 0.5], IMBALANCE, &mut random);
        prop_assert_eq!(parts.iter().sum::<usize>(), 5);
        let cut = copies(&graph, &parts, 2);
        prop_assert!(cut >= best && cut <= best + 4, "{} of {}", cut, best);
    }
}

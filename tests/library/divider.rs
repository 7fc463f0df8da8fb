//! Dividers beside other rules on simulated loops, and the same decisions on every rank.

#[path = "../fixtures/divider_traces.rs"]
mod divider_traces;

use divider_traces::Trace;
use pdawl_core::balance::divider::{Divider, Options};

#[test]
fn loops_are_divided_nearly_as_by_who_knows_the_rates() {
    let (mut reached, mut behind) = (Vec::new(), Vec::new());
    for seed in 0..1000 {
        let trace = Trace::drawn(seed);
        let [ours, others @ ..] = trace.rules().map(|mut rule| trace.of_oracle(&mut *rule));
        if others.iter().any(|other| ours < 0.99 * other) {
            behind.push((seed, ours, others));
        }
        reached.push(ours);
    }
    reached.sort_by(f64::total_cmp);
    let mean = reached.iter().sum::<f64>() / reached.len() as f64;
    // Noise lets another rule be lucky, and hides a small change for long.
    assert!(behind.len() <= 10, "{behind:.3?}");
    assert!(
        mean > 0.99 && reached[10] > 0.97,
        "mean {mean:.4}, {:.3?}",
        &reached[..20]
    );
}

/// Ranks that are told the same, of which one is started anew in the middle.
#[test]
fn ranks_decide_alike() {
    for seed in 0..100_000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let parts = random.usize(1..6);
        let options = Options {
            granularity: random.u64(1..20),
            ..Options::new(random.u64(0..100_000), parts)
        };
        let mut ranks = [Divider::new(options.clone()), Divider::new(options)]
            .map(|rank| rank.expect("options"));
        for _ in 0..8 {
            let [one, other] = ranks.each_mut().map(|rank| rank.next().map(<[_]>::to_vec));
            assert_eq!(one, other, "history {seed}");
            if one.is_ok() {
                let answer = |_| (random.u8(0..12) > 0).then(|| random.f64());
                let seconds: Vec<Option<f64>> = (0..parts).map(answer).collect();
                let [one, other] = ranks.each_mut().map(|rank| rank.took(&seconds));
                assert_eq!(one, other, "history {seed}");
            }
            if random.u8(0..4) == 0 {
                let part = random.usize(0..parts);
                for rank in &mut ranks {
                    rank.back(part).expect("a part");
                }
            }
            if random.u8(0..8) == 0 {
                let written = ranks[0].to_json().expect("a state");
                ranks[1] = Divider::from_json(&written).expect("a state");
            }
        }
    }
}

//! The choice of the few runs that reduce the uncertainty most.

use super::Belief;

/// Chooses `runs` of the candidates, which are given by their terms; returns
/// their indices. A candidate can be chosen more than once.
///
/// The chosen ones leave predictions for all candidates least uncertain on
/// average (I-optimal design). That is what a correction is for; a D-optimal
/// design, which makes the coefficients certain, prefers corners that are
/// hardly ever asked for. One is chosen after the other, then each is exchanged
/// while that helps: a run in the middle is the best first one of four, and
/// none of the best four. `noise` is the relative standard deviation of a run,
/// and `deviations` are those of the constant and of each term's coefficient.
pub fn choose(candidates: &[Vec<f64>], runs: usize, noise: f64, deviations: &[f64]) -> Vec<usize> {
    /// Rounds of exchanges; two or three are usual.
    const ROUNDS: usize = 20;
    let noise = noise.max(1e-6).powi(2);
    let mut chosen = Vec::with_capacity(runs);
    while chosen.len() < runs {
        let belief = after(candidates, &chosen, noise, deviations);
        match best(candidates, &belief, noise) {
            Some((next, _)) => chosen.push(next),
            None => return chosen,
        }
    }
    for _ in 0..ROUNDS {
        let mut better = false;
        for place in 0..chosen.len() {
            let mut others = chosen.clone();
            let present = others.swap_remove(place);
            let belief = after(candidates, &others, noise, deviations);
            let kept = removed(candidates, &belief, noise, present);
            if let Some((other, most)) = best(candidates, &belief, noise)
                && most > kept * (1.0 + 1e-9)
            {
                chosen[place] = other;
                better = true;
            }
        }
        if !better {
            break;
        }
    }
    chosen
}

/// What is believed after these runs; their outcomes do not matter to how
/// certain it is.
fn after(candidates: &[Vec<f64>], runs: &[usize], noise: f64, deviations: &[f64]) -> Belief {
    let mut belief = Belief::new(deviations);
    for run in runs {
        belief.observe(&candidates[*run], 0.0, noise);
    }
    belief
}

/// The candidate that removes most variance, and how much.
fn best(candidates: &[Vec<f64>], belief: &Belief, noise: f64) -> Option<(usize, f64)> {
    (0..candidates.len())
        .map(|run| (run, removed(candidates, belief, noise, run)))
        .max_by(|a, b| a.1.total_cmp(&b.1))
}

/// The variance, summed over all candidates' predictions, that a run removes.
fn removed(candidates: &[Vec<f64>], belief: &Belief, noise: f64, run: usize) -> f64 {
    let here = &candidates[run];
    let covariance: f64 = (candidates.iter())
        .map(|other| belief.together(here, other).powi(2))
        .sum();
    covariance / (belief.variance(here) + noise)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVIATIONS: [f64; 4] = [0.7, 0.3, 0.3, 0.3];

    /// Candidates as a profile has them: many alike, few at the ends.
    fn candidates() -> Vec<Vec<f64>> {
        (0..60)
            .map(|i| {
                let t = f64::from(i) / 59.0;
                vec![t * t, f64::from(i % 4) / 3.0, (9.0 * t).sin().abs()]
            })
            .collect()
    }

    /// The mean variance of predictions for all candidates after these runs.
    fn uncertainty(candidates: &[Vec<f64>], runs: &[usize], noise: f64) -> f64 {
        let mut belief = Belief::new(&DEVIATIONS);
        for run in runs {
            belief.observe(&candidates[*run], 0.0, noise * noise);
        }
        let sum: f64 = candidates.iter().map(|z| belief.variance(z)).sum();
        sum / candidates.len() as f64
    }

    /// A generator for tests: the same numbers every time.
    fn numbers(seed: u64) -> impl FnMut() -> u64 {
        let mut state = seed;
        move || {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            state >> 33
        }
    }

    #[test]
    fn chosen_runs_tell_more_than_random_ones() {
        let candidates = candidates();
        let chosen = choose(&candidates, 4, 0.02, &DEVIATIONS);
        let ours = uncertainty(&candidates, &chosen, 0.02);
        let mut next = numbers(7);
        let mut random: Vec<f64> = (0..200)
            .map(|_| {
                let runs: Vec<usize> = (0..4).map(|_| next() as usize % candidates.len()).collect();
                uncertainty(&candidates, &runs, 0.02)
            })
            .collect();
        random.sort_by(f64::total_cmp);
        assert!(ours < random[0], "{ours} is not below {}", random[0]);
        assert!(ours < 0.1 * random[100], "{ours} against {}", random[100]);
    }

    #[test]
    fn the_error_is_lower_too_and_not_only_what_is_expected_of_it() {
        let candidates = candidates();
        let mut next = numbers(3);
        let mut uniform = move || (next() % 2001) as f64 / 1000.0 - 1.0;
        let chosen = choose(&candidates, 4, 0.02, &DEVIATIONS);
        let mut ours = 0.0;
        let mut others = 0.0;
        let mut pick = numbers(11);
        for _ in 0..100 {
            let truth = [
                0.5 * uniform(),
                0.3 * uniform(),
                0.3 * uniform(),
                0.3 * uniform(),
            ];
            let value =
                |z: &[f64]| truth[0] + truth[1..].iter().zip(z).map(|(c, z)| c * z).sum::<f64>();
            let random: Vec<usize> = (0..4).map(|_| pick() as usize % candidates.len()).collect();
            for (runs, error) in [(&chosen, &mut ours), (&random, &mut others)] {
                let mut belief = Belief::new(&DEVIATIONS);
                for run in runs {
                    let z = &candidates[*run];
                    belief.observe(z, value(z) + 0.03 * uniform(), 4e-4);
                }
                let off = candidates
                    .iter()
                    .map(|z| (belief.value(z) - value(z)).abs());
                *error += off.sum::<f64>() / candidates.len() as f64;
            }
        }
        assert!(ours < 0.6 * others, "{ours} against {others}");
    }

    #[test]
    fn two_of_few_are_the_best_two() {
        let all = candidates();
        let few: Vec<Vec<f64>> = all.iter().step_by(5).cloned().collect();
        let chosen = choose(&few, 2, 0.02, &DEVIATIONS);
        let ours = uncertainty(&few, &chosen, 0.02);
        for a in 0..few.len() {
            for b in 0..few.len() {
                assert!(ours <= uncertainty(&few, &[a, b], 0.02) + 1e-12, "{a} {b}");
            }
        }
    }

    #[test]
    fn without_terms_or_candidates() {
        assert!(choose(&[], 3, 0.02, &DEVIATIONS).is_empty());
        let alike = vec![Vec::new(); 3];
        assert_eq!(choose(&alike, 2, 0.02, &DEVIATIONS[..1]).len(), 2);
    }
}

//! The choice of the candidate that becomes the model.

use super::validation::Candidate;
use crate::median;
use crate::regress::spread;

/// What decides between candidates, and its standard error, from the mean
/// absolute percentage errors of all folds together, of each, and of the rows
/// beyond the others.
///
/// Where there are rows beyond, it is the geometric mean of the error inside
/// and the error beyond, so that halving either is worth the same. The standard
/// error is that of the folds' errors, by their median deviation: one odd fold
/// must not make all candidates seem equal.
pub fn score(inside: f64, folds: &[f64], beyond: Option<f64>) -> (f64, f64) {
    let score = match beyond {
        Some(beyond) => (inside * beyond).sqrt(),
        None => inside,
    };
    let centre = median(folds).unwrap_or(0.0);
    let deviations: Vec<f64> = folds.iter().map(|error| error - centre).collect();
    let standard_error = spread(&deviations) / (folds.len().max(1) as f64).sqrt();
    let relative = match inside > 0.0 {
        true => standard_error / inside,
        false => 0.0,
    };
    (score, score * relative)
}

/// The first candidate, in the order of preference, that is within one
/// standard error of the best; and why. `None` if there is no candidate.
pub fn choose(candidates: &[Candidate]) -> Option<(usize, String)> {
    let by_score = |a: &&Candidate, b: &&Candidate| a.score.total_cmp(&b.score);
    let best = candidates.iter().min_by(by_score)?;
    let good_enough = best.score + best.score_error;
    let preferred = |&at: &usize| (candidates[at].family, at);
    let chosen = (0..candidates.len())
        .filter(|&at| candidates[at].score <= good_enough)
        .min_by_key(preferred)?;
    let family = candidates[chosen].family;
    let why = if family == best.family {
        format!("{family} has the least score")
    } else if family.over_prior() && !best.family.over_prior() {
        format!(
            "{family} is within one standard error of {}, and physics goes on \
             where measurements end",
            best.family
        )
    } else {
        format!(
            "{family} is within one standard error of {}, and simpler",
            best.family
        )
    };
    Some((chosen, why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regress::Spec;
    use crate::train::Family;
    use crate::validate::Accuracy;

    fn candidate(family: Family, score: f64, score_error: f64) -> Candidate {
        Candidate {
            family,
            spec: Spec::Linear { l2: 1.0 },
            clusters: 4,
            inputs: Vec::new(),
            accuracy: Accuracy::default(),
            believed: 0.0,
            standard_error: 0.0,
            folds: Vec::new(),
            beyond: None,
            score,
            score_error,
        }
    }

    #[test]
    fn the_least_error_wins() {
        let candidates = [
            candidate(Family::PriorLinear, 0.05, 0.01),
            candidate(Family::Linear, 0.02, 0.01),
            candidate(Family::Forest, 0.03, 0.02),
        ];
        let (chosen, why) = choose(&candidates).unwrap();
        assert_eq!(chosen, 1);
        assert_eq!(why, "linear has the least score");
        assert_eq!(choose(&[]), None);
    }

    #[test]
    fn physics_and_simplicity_win_among_equals() {
        let mut candidates = vec![
            candidate(Family::PriorConstant, 0.05, 0.01),
            candidate(Family::PriorLinear, 0.029, 0.01),
            candidate(Family::Gaussian, 0.02, 0.01),
        ];
        let (chosen, why) = choose(&candidates).unwrap();
        assert_eq!(chosen, 1);
        assert!(why.contains("physics"), "{why}");
        candidates[0].score = 0.0205;
        candidates[1] = candidate(Family::PriorForest, 0.02, 0.001);
        candidates.pop();
        let (chosen, why) = choose(&candidates).unwrap();
        assert_eq!(chosen, 0);
        assert!(why.contains("simpler"), "{why}");
    }

    #[test]
    fn errors_inside_and_beyond_count_alike() {
        let folds = [0.01, 0.02, 0.04, 0.9];
        // The folds' median is 0.03, and half of them are within 0.015 of it;
        // of normal deviates half are within 0.6745.
        let expected = 0.015 / 0.674_489_750_196 / 2.0;
        let (inside, error) = score(0.02, &folds, None);
        assert!((inside - 0.02).abs() < 1e-12);
        assert!((error - expected).abs() < 1e-9, "{error}");
        let (both, error) = score(0.02, &folds, Some(0.08));
        assert!((both - 0.04).abs() < 1e-12);
        assert!((error - 2.0 * expected).abs() < 1e-9, "{error}");
        assert_eq!(score(0.0, &[], None), (0.0, 0.0));
    }
}

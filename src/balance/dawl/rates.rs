//! Robust estimates: a median over the last steps that one outlier cannot
//! move, and that follows a real change after two steps.

/// Steps that an estimate looks back.
const WINDOW: usize = 5;
/// A relative deviation that is not noise.
const SUDDEN: f64 = 0.2;

/// What an observation did to an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It fits, or it is the first.
    Fits,
    /// It is far off: an outlier, unless the next one is alike.
    Suspect,
    /// The second one far off: the past has been forgotten.
    Changed,
}

/// A positive quantity observed once a step.
#[derive(Clone, Debug, Default)]
pub struct Estimate {
    window: [f64; WINDOW],
    seen: usize,
    suspect: Option<f64>,
}

impl Estimate {
    /// The median of the window; `None` before the first observation.
    pub fn value(&self) -> Option<f64> {
        let count = self.seen.min(WINDOW);
        if count == 0 {
            return None;
        }
        let mut sorted = self.window;
        let sorted = &mut sorted[..count];
        sorted.sort_by(f64::total_cmp);
        Some(0.5 * (sorted[(count - 1) / 2] + sorted[count / 2]))
    }

    /// An observation under the conditions of those before it.
    pub fn observe(&mut self, observed: f64) -> Verdict {
        if !observed.is_finite() || observed < 0.0 {
            return Verdict::Fits;
        }
        let Some(value) = self.value() else {
            self.push(observed);
            return Verdict::Fits;
        };
        if !is_sudden(value, observed) {
            self.suspect = None;
            self.push(observed);
            return Verdict::Fits;
        }
        match self.suspect {
            Some(suspect) if (suspect > value) == (observed > value) => {
                self.restart(observed);
                Verdict::Changed
            }
            _ => {
                self.suspect = Some(observed);
                Verdict::Suspect
            }
        }
    }

    /// An observation under new conditions, such as another share: what it
    /// contradicts is forgotten at once.
    pub fn observe_anew(&mut self, observed: f64) {
        if !observed.is_finite() || observed < 0.0 {
            return;
        }
        match self.value() {
            Some(value) if (observed / value - 1.0).abs() <= 0.02 => self.push(observed),
            _ => self.restart(observed),
        }
    }

    /// Whatever it is of has become `factor` times as fast.
    pub fn scale(&mut self, factor: f64) {
        self.window.iter_mut().for_each(|seen| *seen *= factor);
    }

    /// A step passed without an observation: nothing will confirm the last.
    pub fn unobserved(&mut self) {
        self.suspect = None;
    }

    /// Whether the last observation was far off and is not yet confirmed.
    pub fn is_suspect(&self) -> bool {
        self.suspect.is_some()
    }

    fn restart(&mut self, observed: f64) {
        *self = Self::default();
        self.push(observed);
    }

    fn push(&mut self, observed: f64) {
        self.window[self.seen % WINDOW] = observed;
        self.seen += 1;
    }
}

fn is_sudden(value: f64, observed: f64) -> bool {
    observed > value * (1.0 + SUDDEN) || observed < value / (1.0 + SUDDEN)
}

/// What is known of a device.
#[derive(Clone, Debug, Default)]
pub struct Gauge {
    /// Held units a second.
    pub held: Estimate,
    /// Pool units a second: streamed, or, on host memory, while others stream.
    pub pool: Estimate,
    /// Pool units a second on host memory while nobody streams: memory is
    /// shared, and this may be much more.
    pub alone: Estimate,
    /// Seconds of a step before its work starts.
    pub overhead: Estimate,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(observations: &[f64]) -> Estimate {
        let mut estimate = Estimate::default();
        for observed in observations {
            estimate.observe(*observed);
        }
        estimate
    }

    #[test]
    fn it_is_the_median_of_the_last_five() {
        assert_eq!(Estimate::default().value(), None);
        assert_eq!(after(&[2.0]).value(), Some(2.0));
        assert_eq!(after(&[1.0, 1.1]).value(), Some(1.05));
        let drifting = after(&[1.0, 1.1, 1.2, 1.25, 1.3, 1.3, 1.3]);
        assert_eq!(drifting.value(), Some(1.3));
    }

    #[test]
    fn one_outlier_leaves_no_trace() {
        let mut estimate = after(&[1.0, 1.01, 0.99]);
        assert_eq!(estimate.observe(0.2), Verdict::Suspect);
        assert_eq!(estimate.value(), Some(1.0));
        assert_eq!(estimate.observe(1.0), Verdict::Fits);
        assert_eq!(estimate.observe(0.2), Verdict::Suspect);
    }

    #[test]
    fn a_second_one_is_a_change() {
        let mut estimate = after(&[1.0, 1.01, 0.99]);
        assert_eq!(estimate.observe(0.5), Verdict::Suspect);
        assert_eq!(estimate.observe(0.52), Verdict::Changed);
        assert_eq!(estimate.value(), Some(0.52));
    }

    #[test]
    fn opposite_outliers_are_no_change() {
        let mut estimate = after(&[1.0, 1.0]);
        estimate.observe(0.5);
        assert_eq!(estimate.observe(2.0), Verdict::Suspect);
        assert_eq!(estimate.value(), Some(1.0));
    }

    #[test]
    fn new_conditions_count_at_once() {
        let mut estimate = after(&[1.0, 1.0, 1.0]);
        estimate.observe_anew(1.5);
        assert_eq!(estimate.value(), Some(1.5));
        estimate.observe_anew(1.51);
        assert_eq!(estimate.value(), Some(1.505));
    }

    #[test]
    fn a_suspicion_that_nothing_confirms_is_dropped() {
        let mut estimate = after(&[1.0, 1.0, 0.5]);
        assert!(estimate.is_suspect());
        estimate.unobserved();
        assert!(!estimate.is_suspect());
        assert_eq!(estimate.observe(0.5), Verdict::Suspect);
    }

    #[test]
    fn nonsense_is_ignored() {
        assert_eq!(
            after(&[1.0, f64::NAN, f64::INFINITY, -1.0]).value(),
            Some(1.0)
        );
    }
}

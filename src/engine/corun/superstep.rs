//! What is computed in a superstep, several steps of a workload between two barriers. What
//! the engine and balancers call a step is one of them. Pure arithmetic.

use std::ops::Range;

/// What is computed in each step of a superstep, so that after the last one `units` are done:
/// in each step `halo` units fewer on either side, as far as there are units.
pub fn stages(
    units: &Range<u64>,
    steps: u32,
    (halo, all): (u64, u64),
) -> impl Iterator<Item = Range<u64>> + use<> {
    let units = units.clone();
    (0..u64::from(steps)).rev().map(move |left| {
        let beside = left * halo;
        units.start.saturating_sub(beside)..all.min(units.end + beside)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_computes_a_halo_less() {
        let stages = |units, steps, all| stages(&units, steps, (2, all)).collect::<Vec<_>>();
        assert_eq!(stages(6..9, 3, 12), [2..12, 4..11, 6..9]);
        assert_eq!(stages(0..1, 2, 12), [0..3, 0..1]);
        assert_eq!(stages(6..9, 1, 12), vec![6..9]);
    }
}

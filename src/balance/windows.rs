//! The launches of held units. A ring that is nearly full leaves a small window
//! for each launch (`engine/corun/held.rs` says why), so the fuller the ring,
//! the more launches a step needs, each with a cost of its own. Pure arithmetic.

/// Slots of a ring beyond the units and the window: the two halo units of the
/// present version, and one for the lower halo of the next.
pub const SPARE: u64 = 3;

/// Units of a window of a ring of `slots` slots that holds `held` units: as
/// many as the free slots allow, at least one.
pub fn window(held: u64, slots: u64) -> u64 {
    held.min(slots.saturating_sub(held + SPARE)).max(1)
}

/// Launches of a step beyond the first on `held` units in a ring of `slots`
/// slots; none where there is no ring.
pub fn more_launches(held: u64, slots: Option<u64>) -> u64 {
    let launches = slots.map_or(1, |slots| held.div_ceil(window(held, slots)));
    launches.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fuller_the_ring_the_more_launches() {
        assert_eq!(more_launches(100, None), 0);
        assert_eq!(more_launches(10, Some(23)), 0);
        assert_eq!(more_launches(10, Some(22)), 1);
        assert_eq!(more_launches(10, Some(14)), 9);
        assert_eq!(more_launches(0, Some(14)), 0);
    }
}

//! The number of launches that a step on held units needs. A ring buffer that is
//! nearly full leaves a small window for each launch (`engine/corun/held.rs`
//! explains why). So a fuller ring needs more launches, and each has a cost.

/// Slots of a ring beyond the units and the window: two halo units of the present
/// version and the lower halo unit of the next.
pub const SPARE: u64 = 3;

/// Units of a window in a ring of `slots` slots that holds `held` units: as many
/// as the free slots allow, at least one.
pub fn window(held: u64, slots: u64) -> u64 {
    held.min(slots.saturating_sub(held + SPARE)).max(1)
}

/// Launches of a step beyond the first, on `held` units in a ring of `slots` slots;
/// 0 where there is no ring.
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

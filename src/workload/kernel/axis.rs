//! Units along a dimension: whole work-groups, and few enough that who writes
//! what can be found out for each of them. Pure arithmetic.

use std::ops::Range;

/// Most units of a kernel: shares as fine as a thousandth, and little more to
/// look at than a thousand parts.
pub const MOST_UNITS: u64 = 1024;

/// Work-items of a group where a kernel needs groups and no file says how
/// large, at most.
const GROUP: u64 = 64;

/// The same where it does not matter to the kernel.
const QUICK: u64 = 128;

/// Work-items that GPUs run in step.
const WARP: u64 = 32;

/// In one dimension there are at least about so many groups.
const FINE: u64 = 64;

/// The dimension along which a launch is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    pub dimension: usize,
    /// Work-items along it.
    extent: u64,
    /// Of these, a unit's; the last unit may have fewer.
    per_unit: u64,
}

impl Axis {
    /// Along `dimension`, in groups of `local` work-items, where that is known.
    pub(super) fn of(dimension: usize, global: &[u64], local: Option<&[u64]>) -> Self {
        let extent = global.get(dimension).copied().unwrap_or(1).max(1);
        let group = local.and_then(|local| local.get(dimension)).copied();
        let group = group.unwrap_or(1).max(1);
        let groups = extent.div_ceil(group);
        Self {
            dimension,
            extent,
            per_unit: group * groups.div_ceil(MOST_UNITS),
        }
    }

    /// The whole launch as one unit.
    pub(super) fn whole(global: &[u64], local: Option<&[u64]>) -> Self {
        let first = Self::of(0, global, local);
        Self {
            per_unit: first.extent,
            ..first
        }
    }

    /// Units along it.
    pub fn units(&self) -> u64 {
        self.extent.div_ceil(self.per_unit)
    }

    /// The work-items of units along it.
    pub fn items(&self, units: &Range<u64>) -> Range<u64> {
        let at = |unit: u64| unit.saturating_mul(self.per_unit).min(self.extent);
        at(units.start)..at(units.end)
    }

    /// The part of `bytes` bytes that belongs to units; `None` if a unit's part
    /// is no whole number of bytes.
    pub fn slice(&self, bytes: u64, units: &Range<u64>) -> Option<Range<u64>> {
        let extent = u128::from(self.extent);
        let part = |items: u64| u128::from(bytes) * u128::from(items);
        if part(self.per_unit) % extent != 0 {
            return None;
        }
        let items = self.items(units);
        let at = |items: u64| (part(items) / extent) as u64;
        Some(at(items.start)..at(items.end))
    }
}

/// Groups for a kernel that does not ask for them: along the first dimension,
/// so many that devices are full, and in one dimension few enough that the
/// launch can be divided finely. `None` where nothing that is good divides it.
pub(super) fn quick_groups(global: &[u64]) -> Option<Vec<u64>> {
    let first = global.first().copied().unwrap_or(1);
    if global.len() == 1 {
        let finest = (first / FINE).max(1);
        let size: u64 = 1 << finest.ilog2();
        return Some(vec![size.min(QUICK)]);
    }
    // Fewer where that leaves parts along this dimension, too.
    let most = first.min(QUICK).min((first / 16).max(WARP));
    let divides = |size: &u64| first.is_multiple_of(*size);
    let size = (1..=most).rev().find(divides).unwrap_or(1);
    (size * 8 >= most).then(|| {
        let mut groups = vec![1; global.len()];
        groups[0] = size;
        groups
    })
}

/// Groups for a launch: along the first dimension, as large as divides it.
pub(super) fn groups(global: &[u64]) -> Vec<u64> {
    let first = global.first().copied().unwrap_or(1);
    let divides = |size: &u64| first.is_multiple_of(*size);
    let along = (1..=GROUP).rev().find(divides).unwrap_or(1);
    let mut local = vec![1; global.len()];
    if let Some(size) = local.first_mut() {
        *size = along;
    }
    local
}

//! The units of a user's kernel along a dimension. A unit consists of whole
//! work-groups. There are few enough units to determine what each of them writes.
//! Pure arithmetic.
//! Code before the source of a partial launch has its work-item functions return the values of the
//! whole one.

use std::ops::Range;
use std::path::Path;

/// Most units of a kernel. Shares can be as small as a thousandth, and the examination
/// of the units' writes is short.
pub const MOST_UNITS: u64 = 1024;

/// Most work-items of a group if the kernel uses groups and the file gives no size.
const GROUP: u64 = 64;

/// Most work-items of a group if the kernel's results do not depend on groups.
const QUICK: u64 = 128;

/// Work-items that a GPU executes in lockstep.
const WARP: u64 = 32;

/// The least number of groups in one dimension, approximately.
const FINE: u64 = 64;

/// The dimension along which a launch is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    pub dimension: usize,
    /// Work-items along it.
    pub extent: u64,
    /// Work-items of a unit along it; the last unit may have fewer.
    per_unit: u64,
}

impl Axis {
    /// Along a dimension of `extent` work-items in groups of `group`, in at most `most` units.
    pub fn new(dimension: usize, extent: u64, group: u64, most: u64) -> Self {
        let groups = extent.div_ceil(group);
        Self {
            dimension,
            extent,
            per_unit: group * groups.div_ceil(most),
        }
    }

    /// Along `dimension`, in groups of `local` work-items, if `local` is known.
    pub(super) fn of(dimension: usize, global: &[u64], local: Option<&[u64]>) -> Self {
        let extent = global.get(dimension).copied().unwrap_or(1).max(1);
        let group = local.and_then(|local| local.get(dimension)).copied();
        Self::new(dimension, extent, group.unwrap_or(1).max(1), MOST_UNITS)
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

    /// Three parts of unequal size. They are none of them empty but for two units.
    pub fn thirds(&self) -> impl Iterator<Item = Range<u64>> + use<> {
        let units = self.units();
        let first = (units * 3 / 10).clamp(1, units - 1);
        let second = (units * 7 / 10).max(first);
        let parts = [0..first, first..second, second..units];
        parts.into_iter().filter(|part| !part.is_empty())
    }

    /// Sets of units, as ranges: of every two units, a set has the first and lacks the second.
    /// Each unit is alone, or in two sets and no two in the same two: what takes the least time,
    /// if all units run for `run` seconds, and a look at what a set has written takes `look`
    /// seconds.
    pub fn sets(&self, run: f64, look: f64) -> Vec<Vec<Range<u64>>> {
        let units = self.units();
        let alone = self.sets_of(units, |set, unit| unit == set);
        let count = (2..).find(|sets| sets * (sets - 1) / 2 >= units);
        let count = count.unwrap_or(units);
        let pairs = (0..count).flat_map(|a| (a + 1..count).map(move |b| [a, b]));
        let pairs: Vec<[u64; 2]> = pairs.take(units as usize).collect();
        let in_pairs = self.sets_of(count, |set, unit| pairs[unit as usize].contains(&set));
        let cost = |runs: f64, sets: &[_]| runs * run + sets.len() as f64 * look;
        match cost(1.0, &alone) <= cost(2.0, &in_pairs) {
            true => alone,
            false => in_pairs,
        }
    }

    /// Such sets, two for each bit of a unit's number. Their ranges have few lengths, for each
    /// of which some drivers compile the kernel.
    pub fn sets_by_bits(&self) -> Vec<Vec<Range<u64>>> {
        let bits = u64::BITS - self.units().saturating_sub(1).leading_zeros();
        self.sets_of(2 * u64::from(bits), |set, unit| {
            unit >> (set / 2) & 1 == set % 2
        })
    }

    fn sets_of(&self, count: u64, has: impl Fn(u64, u64) -> bool) -> Vec<Vec<Range<u64>>> {
        let set = |set: u64| ranges(&(0..self.units()), |unit| has(set, unit));
        (0..count).map(set).collect()
    }
}

/// Ranges of consecutive units for which `has` holds.
pub fn ranges(units: &Range<u64>, has: impl Fn(u64) -> bool) -> Vec<Range<u64>> {
    let mut all: Vec<Range<u64>> = Vec::new();
    for unit in units.clone().filter(|unit| has(*unit)) {
        match all.last_mut() {
            Some(last) if last.end == unit => last.end = unit + 1,
            _ => all.push(unit..unit + 1),
        }
    }
    all
}

/// The group size for a kernel that does not use groups. Groups extend along the first
/// dimension and are large enough to use a device fully. In a 1-D launch they are
/// small enough for many units. `None` if no good size divides the dimension.
pub(super) fn quick_groups(global: &[u64]) -> Option<Vec<u64>> {
    let first = global.first().copied().unwrap_or(1);
    if global.len() == 1 {
        let finest = (first / FINE).max(1);
        let size: u64 = 1 << finest.ilog2();
        return Some(vec![size.min(QUICK)]);
    }
    // Smaller groups allow at least 16 units along this dimension.
    let most = first.min(QUICK).min((first / 16).max(WARP));
    let divides = |size: &u64| first.is_multiple_of(*size);
    let size = (1..=most).rev().find(divides).unwrap_or(1);
    (size * 8 >= most).then(|| {
        let mut groups = vec![1; global.len()];
        groups[0] = size;
        groups
    })
}

/// The group size for a launch: along the first dimension, the largest divisor up to
/// `GROUP`.
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

// OpenCL code that is put before the source of a kernel, so that the work-item functions of a
// partial launch return the values of the undivided launch: of users' kernels, and in the
// OpenCL layer of those of unmodified programs.
//
// With a global offset, `get_global_id` is already right. The group's number, the
// number of groups, the global size and the linear id are those of the part, and the
// offset is not 0. The functions here correct these values by the offset, so one
// program is enough for all parts. They precede the macros that replace the originals.

/// A function for the offset of a launch. PoCL 3.1 takes it to be below 65536 in a launch of
/// fewer work-items, and drops comparisons by that. Where PoCL compiles, the compiler is
/// kept from knowing what the value is.
const OFFSET: &str = "size_t pdawl_offset(uint d);\n\
                          size_t pdawl_offset(uint d) {\n\
                          size_t offset = get_global_offset(d);\n\
                          #ifdef POCL_DEVICE_ADDRESS_BITS\n\
                          __asm__(\"\" : \"+r\"(offset));\n\
                          #endif\n\
                          return offset; }\n";

/// What the undivided launch has along a dimension, in OpenCL C.
pub struct Extent {
    pub dimension: usize,
    /// Its work-items and its work-groups.
    pub items: String,
    pub groups: String,
}

/// The code for launches in so many dimensions, of which these have another extent than the
/// launch of a part. In further dimensions a part may have an offset that means something else.
pub fn work_items(dimensions: usize, whole: &[Extent]) -> String {
    let by_dimension = |of: &dyn Fn(&Extent) -> String, part: &str| {
        let cases = whole
            .iter()
            .map(|one| format!("d == {} ? {} : ", one.dimension, of(one)));
        cases.collect::<String>() + part
    };
    let group = |Extent { dimension, .. }: &Extent| {
        format!(
            "get_group_id({dimension}) + pdawl_offset({dimension}) / get_local_size({dimension})"
        )
    };
    let groups = by_dimension(&|one| one.groups.clone(), "get_num_groups(d)");
    let functions = [
        (
            "global_id(uint d)",
            format!("d < {dimensions} ? get_global_id(d) : (size_t)0"),
        ),
        (
            "global_size(uint d)",
            by_dimension(&|one| one.items.clone(), "get_global_size(d)"),
        ),
        ("num_groups(uint d)", groups),
        ("group_id(uint d)", by_dimension(&group, "get_group_id(d)")),
        (
            "global_linear_id(void)",
            "(pdawl_global_id(2) * pdawl_global_size(1) + pdawl_global_id(1)) * \
             pdawl_global_size(0) + pdawl_global_id(0)"
                .to_owned(),
        ),
    ];
    let mut text = OFFSET.to_owned();
    for (head, body) in functions {
        text += &format!("size_t pdawl_{head};\nsize_t pdawl_{head} {{ return {body}; }}\n");
    }
    for name in ["global_id", "global_size", "num_groups", "group_id"] {
        text += &format!("#define get_{name}(d) pdawl_{name}(d)\n");
    }
    text + "#define get_global_linear_id() pdawl_global_linear_id()\n\
            #define get_global_offset(d) ((size_t)0)\n"
}

/// The source of a launch over `global` work-items in groups of `local`, with the line
/// numbers of the original file.
pub(super) fn preamble(text: &str, file: &Path, global: &[u64], local: Option<&[u64]>) -> String {
    let extent = |(dimension, items): (usize, &u64)| Extent {
        dimension,
        items: format!("(size_t){items}"),
        groups: match local.and_then(|local| local.get(dimension)) {
            Some(group) => format!("(size_t){}", items.div_ceil(*group)),
            None => format!("(size_t){items} / get_local_size({dimension})"),
        },
    };
    let whole: Vec<Extent> = global.iter().enumerate().map(extent).collect();
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let name = name.replace(['"', '\\', '\n'], "_");
    format!(
        "{}#line 1 \"{name}\"\n{text}",
        work_items(global.len(), &whole)
    )
}

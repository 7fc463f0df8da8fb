//! What a kernel requires of the device: dimensions, work-groups, atomic operations,
//! double precision.

use std::collections::BTreeSet;

use super::function::{Function, close};
use super::usage::Known;
use crate::codelet::AddressSpace;

/// The requirements of a kernel and of the functions that it calls.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Facts {
    pub dimension: usize,
    pub any_dimension: bool,
    pub uses_groups: bool,
    pub atomics: bool,
    pub fp64: bool,
}

const IDS: [&str; 8] = [
    "get_global_id",
    "get_global_size",
    "get_global_offset",
    "get_group_id",
    "get_num_groups",
    "get_local_id",
    "get_local_size",
    "get_enqueued_local_size",
];

const GROUPS: [&str; 10] = [
    "get_group_id",
    "get_num_groups",
    "get_local_id",
    "get_local_size",
    "get_local_linear_id",
    "get_enqueued_local_size",
    "barrier",
    "work_group_barrier",
    "__local",
    "local",
];

/// Finds the requirements of a kernel.
pub(super) fn facts(kernel: &Function, known: &Known) -> Facts {
    let mut facts = Facts::default();
    let mut seen = BTreeSet::new();
    let mut open = vec![kernel];
    while let Some(function) = open.pop() {
        if !seen.insert(function.name.as_str()) {
            continue;
        }
        let doubles = |name: &str| name.starts_with("double");
        facts.fp64 |= function.parameters.iter().any(|p| doubles(&p.type_name));
        facts.uses_groups |= (function.parameters.iter()).any(|p| p.address == AddressSpace::Local);
        for (at, token) in function.body.iter().enumerate() {
            let name = token.as_str();
            facts.uses_groups |= GROUPS.contains(&name)
                || name.starts_with("work_group_")
                || name.starts_with("sub_group_")
                || name.starts_with("get_sub_group");
            facts.atomics |= name.starts_with("atomic_") || name.starts_with("atom_");
            facts.fp64 |= doubles(name) || name.starts_with("convert_double");
            if IDS.contains(&name)
                && function.body.get(at + 1).is_some_and(|t| t == "(")
                && let Some(end) = close(&function.body, at + 1)
            {
                match &function.body[at + 2..end] {
                    [one] if one.parse::<usize>().is_ok_and(|d| d < 3) => {
                        let asked = one.parse::<usize>().unwrap_or(0) + 1;
                        facts.dimension = facts.dimension.max(asked);
                    }
                    _ => facts.any_dimension = true,
                }
            }
            if let Some(called) = known.get(name) {
                open.push(called);
            }
        }
    }
    facts
}

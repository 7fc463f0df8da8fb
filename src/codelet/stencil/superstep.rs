//! The codelet of several steps at once.

use super::{Dimensions, Precision, Rule, host};
use crate::{Codelet, HostCode};

/// Operations at a processor's peak rate that take as long as one of a superstep of so many
/// steps, beside the time in which the grid is read and written once: a core does one after the
/// other. A peak counts fused multiplications and additions, of which a stencil has none. A Zen 4
/// core at 3.66 GHz computes 4.1 Gpoint/s in 2-D, and in 3-D 1.7 with up to eight steps, and
/// half of that with twice as many, where a tile's halo no longer fits its cache
/// (`cargo bench --bench host_stencil`).
pub fn superstep_flops(dimensions: Dimensions, steps: u32) -> f64 {
    match dimensions {
        Dimensions::Two => 2.8,
        Dimensions::Three => 5.0 * (f64::from(steps) / 8.0).max(1.0),
    }
}

/// The precision of the codelet of several steps at once that has this name; `None` if none has.
pub fn superstep_named(codelet: &str) -> Option<Precision> {
    let (stencil, _) = codelet.split_once("-superstep")?;
    let is = |precision: Precision| stencil.split('-').any(|part| part == precision.name());
    [Precision::F64, Precision::F32]
        .into_iter()
        .find(|p| is(*p))
}

/// The codelet that computes so many steps of a stencil at once. Memory is read and written
/// once for all of them.
///
/// Results agree bit for bit with those of as many launches of the stencil's own codelet, whose
/// arguments these are but for:
///
/// | # | argument | type | meaning |
/// |---|---|---|---|
/// | 0 | `from` | memory | present versions of `first - steps .. first + count + steps`, as far as the grid has these units |
/// | 1 | `to` | memory | versions of `first .. first + count` that are `steps` steps later |
/// | the last | `steps` | u32 | 1 or more, after the stencil's own |
///
/// `from` stays as it is. Other units' slots may hold anything.
///
/// How many steps are best: in 2-D about 16 to 32; in 3-D 4 to 8, since a tile's halo grows in
/// two directions.
pub fn superstep(dimensions: Dimensions, precision: Precision, rule: Rule) -> Codelet {
    Codelet {
        name: name(dimensions, precision, rule).into(),
        host: Some(HostCode::Shared(host::superstep(
            dimensions, precision, rule,
        ))),
        opencl: None,
        library: None,
    }
}

/// The codelet that computes so many steps and finds the largest change of the last one.
///
/// Its arguments are those of [`superstep()`], and after these `changes`, as
/// [`changes()`](super::changes()) has it.
pub fn superstep_changes(dimensions: Dimensions, precision: Precision, rule: Rule) -> Codelet {
    Codelet {
        name: format!("{}-changes", name(dimensions, precision, rule)).into(),
        host: Some(HostCode::Shared(host::superstep_changes(
            dimensions, precision, rule,
        ))),
        opencl: None,
        library: None,
    }
}

fn name(dimensions: Dimensions, precision: Precision, rule: Rule) -> String {
    format!("{}-superstep", super::name(dimensions, precision, rule))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_precision_of_supersteps() {
        for precision in [Precision::F64, Precision::F32] {
            for dimensions in [Dimensions::Two, Dimensions::Three] {
                for rule in [Rule::Mean, Rule::Weighted] {
                    let of = |codelet: Codelet| superstep_named(&codelet.name);
                    let several = superstep(dimensions, precision, rule);
                    assert_eq!(of(several), Some(precision));
                    let changes = superstep_changes(dimensions, precision, rule);
                    assert_eq!(of(changes), Some(precision));
                    let one = super::super::codelet(dimensions, precision, rule);
                    assert_eq!(of(one), None);
                }
            }
        }
    }
}

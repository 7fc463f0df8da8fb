//! Parts of a machine: the sets of devices that are compared before a run begins.

use std::iter::successors;

/// Each device by itself, one of those that are `alike`; those that have memory of their `own`,
/// and 1, 2, 4 ... of them, the first ones first; these with the `others`; the others; and all.
/// Each part is sorted.
pub fn parts(
    own: &[usize],
    others: &[usize],
    alike: impl Fn(usize, usize) -> bool,
) -> Vec<Vec<usize>> {
    let mut parts: Vec<Vec<usize>> = Vec::new();
    let mut add = |devices: &[&[usize]]| {
        let mut part = devices.concat();
        part.sort_unstable();
        if !part.is_empty() && !parts.contains(&part) {
            parts.push(part);
        }
    };
    let all = [own, others].concat();
    for (place, device) in all.iter().enumerate() {
        if !all[..place].iter().any(|before| alike(*before, *device)) {
            add(&[&[*device]]);
        }
    }
    let counts = successors(Some(1), |count| Some(2 * count));
    for count in counts
        .take_while(|count| *count < own.len())
        .chain([own.len()])
    {
        add(&[&own[..count]]);
        add(&[others, &own[..count]]);
    }
    add(&[others]);
    parts
}

/// Devices, or nodes, that gain less than this part of the time are left out: estimates are no
/// better.
pub const MARGINAL: f64 = 0.03;

/// The place of the part with the fewest members of those that take nearly as little as the best; of
/// as many, the fastest. `parts` has members and seconds.
pub fn fewest(parts: impl Iterator<Item = (usize, f64)> + Clone) -> Option<usize> {
    let least = parts.clone().map(|(_, seconds)| seconds);
    let most = (1.0 + MARGINAL) * least.reduce(f64::min)?;
    let good = parts
        .enumerate()
        .filter(|(_, (_, seconds))| *seconds <= most);
    let best = good.min_by(|(_, one), (_, other)| {
        let seconds = one.1.total_cmp(&other.1);
        one.0.cmp(&other.0).then(seconds)
    });
    best.map(|(place, _)| place)
}

#[cfg(test)]
mod tests {
    use super::{fewest, parts};

    #[test]
    fn the_fewest_that_are_nearly_as_fast_are_the_best() {
        let place = |parts: &[(usize, f64)]| fewest(parts.iter().copied());
        assert_eq!(place(&[(3, 1.0), (2, 1.02), (2, 1.01), (1, 1.04)]), Some(2));
        assert_eq!(place(&[(3, 1.0), (1, 1.02), (2, 0.9)]), Some(2));
        assert_eq!(place(&[]), None);
    }

    #[test]
    fn devices_alone_some_of_a_kind_and_all() {
        let parts = parts(&[3, 1, 2], &[0], |one, other| one.min(other) > 0);
        let expected: [&[usize]; 7] = [
            &[3],
            &[0],
            &[0, 3],
            &[1, 3],
            &[0, 1, 3],
            &[1, 2, 3],
            &[0, 1, 2, 3],
        ];
        assert_eq!(parts, expected);
    }

    #[test]
    fn without_devices_there_is_no_part() {
        assert!(parts(&[], &[], |_, _| true).is_empty());
    }
}

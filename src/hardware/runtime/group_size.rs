//! Fits a launch's local size to the device.

/// A local size that divides `global` and stays within the limits: `wanted`
/// where that does, else the nearest below along each dimension. `axes` holds
/// the limits of the dimensions, `group` that of their product. Along the first
/// dimension a multiple of `multiple` is preferred that is more than half as long.
pub(super) fn fit(
    global: &[usize],
    wanted: &[usize],
    axes: &[usize],
    (group, multiple): (usize, usize),
) -> Vec<usize> {
    let mut local: Vec<usize> = global
        .iter()
        .enumerate()
        .map(|(axis, extent)| {
            let wish = wanted.get(axis).copied().unwrap_or(1);
            let limit = axes.get(axis).copied().unwrap_or(usize::MAX);
            divisor_below(*extent, wish.min(limit))
        })
        .collect();
    while local.iter().product::<usize>() > group.max(1) {
        // The last of the longest: groups stay long along x.
        let Some(axis) = (0..local.len()).max_by_key(|axis| local[*axis]) else {
            break;
        };
        local[axis] = divisor_below(global[axis], local[axis] - 1);
    }
    if let (Some(first), Some(extent)) = (local.first_mut(), global.first()) {
        let whole = (1..=*first / multiple.max(1)).rev().map(|n| n * multiple);
        let whole = whole.take_while(|length| 2 * length > *first);
        let mut whole = whole.filter(|length| extent.is_multiple_of(*length));
        *first = whole.next().unwrap_or(*first);
    }
    local
}

/// Why a local size is not acceptable, if so: it must divide `global` and stay
/// within the limits.
pub(super) fn refusal(
    global: &[usize],
    local: &[usize],
    axes: &[usize],
    group: usize,
) -> Option<String> {
    let ask = "choose another local size, or leave it to the driver";
    if local.len() != global.len() {
        return Some(format!(
            "the local size {local:?} has not as many dimensions as the global size {global:?}; \
             {ask}"
        ));
    }
    for (axis, (local, global)) in local.iter().zip(global).enumerate() {
        let most = axes.get(axis).copied().unwrap_or(usize::MAX);
        if *local == 0 || *local > most {
            return Some(format!(
                "the local size {local} of dimension {axis} is not within 1 to {most}, the \
                 device's limit; {ask}"
            ));
        }
        if !global.is_multiple_of(*local) {
            return Some(format!(
                "the global size {global} of dimension {axis} is no multiple of the local size \
                 {local}; {ask}"
            ));
        }
    }
    let items: usize = local.iter().product();
    (items > group).then(|| {
        format!(
            "a work-group of {local:?} has {items} work-items, and the device can run this \
             kernel with {group} at most; {ask}"
        )
    })
}

/// The greatest divisor of `extent` that is at most `most`, and at least 1.
fn divisor_below(extent: usize, most: usize) -> usize {
    (1..=most.max(1))
        .rev()
        .find(|divisor| extent.is_multiple_of(*divisor))
        .unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_fits_is_left_alone() {
        let limits = (4096, 32);
        assert_eq!(fit(&[1024, 7], &[128, 1], &[4096, 4096], limits), [128, 1]);
    }

    #[test]
    fn what_does_not_fit_is_cut() {
        let fit = |global: &[usize], wanted: &[usize], axes: &[usize], group| {
            fit(global, wanted, axes, (group, 8))
        };
        assert_eq!(fit(&[1024], &[512], &[4096], 256), [256]);
        assert_eq!(fit(&[1000], &[128], &[4096], 4096), [125]);
        assert_eq!(fit(&[1024, 64], &[128, 8], &[4096, 1], 4096), [128, 1]);
        assert_eq!(fit(&[4099], &[128], &[4096], 4096), [1]);
        // 100 is longer, but 80 fills the lanes.
        assert_eq!(fit(&[1200], &[128], &[4096], 100), [80]);
    }

    #[test]
    fn an_exact_size_is_taken_or_refused_with_a_reason() {
        let limits = (&[64, 64][..], 256);
        for (global, local, part) in [
            (&[128, 4][..], &[64, 4][..], None),
            (&[128, 4], &[64], Some("dimensions")),
            (&[128, 4], &[0, 4], Some("within 1 to 64")),
            (&[256, 4], &[128, 1], Some("within 1 to 64")),
            (&[100, 4], &[64, 1], Some("no multiple")),
            (&[128, 64], &[64, 8], Some("512 work-items")),
        ] {
            let why = refusal(global, local, limits.0, limits.1);
            assert_eq!(why.is_some(), part.is_some(), "{why:?}");
            if let (Some(why), Some(part)) = (why, part) {
                assert!(why.contains(part), "{why}");
            }
        }
    }

    proptest! {
        #[test]
        fn a_fitted_size_is_always_legal(
            global in prop::collection::vec(1usize..5000, 1..4),
            wanted in prop::collection::vec(0usize..600, 0..4),
            axes in prop::collection::vec(1usize..2000, 0..4),
            group in 0usize..2000,
            multiple in 0usize..70,
        ) {
            let local = fit(&global, &wanted, &axes, (group, multiple));
            prop_assert_eq!(refusal(&global, &local, &axes, group.max(1)), None);
            prop_assert_eq!(local.len(), global.len());
            for (axis, size) in local.iter().enumerate() {
                prop_assert!(*size >= 1 && global[axis].is_multiple_of(*size));
                prop_assert!(*size <= axes.get(axis).copied().unwrap_or(usize::MAX));
            }
            prop_assert!(local.iter().product::<usize>() <= group.max(1));
        }
    }
}

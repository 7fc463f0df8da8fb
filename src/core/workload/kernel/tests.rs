//! Tests of user kernels: each work-item is in one unit, and each byte in one slice.

use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn units_and_slices_divide_everything(
        global in prop::collection::vec(1u64..5000, 1..4),
        group in 1u64..7,
        dimension in 0usize..3,
        each in 1u64..9,
    ) {
        let dimension = dimension % global.len();
        let mut global = global;
        global[dimension] *= group;
        let mut local = vec![1; global.len()];
        local[dimension] = group;
        let axis = Axis::of(dimension, &global, Some(&local));
        let units = axis.units();
        prop_assert!((1..=MOST_UNITS).contains(&units));
        let bytes = each * global[dimension];
        let (mut items, mut at) = (0, 0);
        for unit in 0..units {
            let mine = axis.items(&(unit..unit + 1));
            prop_assert_eq!(mine.start, items);
            prop_assert!(mine.end > mine.start && mine.start.is_multiple_of(group));
            items = mine.end;
            let slice = axis.slice(bytes, &(unit..unit + 1)).unwrap();
            prop_assert_eq!(slice.start, at);
            at = slice.end;
        }
        prop_assert_eq!((items, at), (global[dimension], bytes));
    }

    #[test]
    fn launches_are_whole_groups_or_the_last_unit(first in 1u64..100_000, other in 1u64..300) {
        for global in [vec![first], vec![other, first], vec![first, other]] {
            let Some(quick) = axis::quick_groups(&global) else { continue };
            prop_assert_eq!(quick.len(), global.len());
            prop_assert!(quick.iter().product::<u64>() <= 128);
            for dimension in 0..global.len() {
                let axis = Axis::of(dimension, &global, Some(&quick));
                for unit in 0..axis.units() {
                    let items = axis.items(&(unit..unit + 1));
                    let whole = (items.end - items.start).is_multiple_of(quick[dimension]);
                    prop_assert!(whole || unit + 1 == axis.units());
                    prop_assert!(whole || global.len() == 1);
                }
            }
        }
    }

    #[test]
    fn groups_divide_the_first_dimension(first in 1u64..100_000, others in 0usize..3) {
        let global = [vec![first], vec![7; others]].concat();
        let local = axis::groups(&global);
        prop_assert_eq!(local.len(), global.len());
        prop_assert!(first.is_multiple_of(local[0]) && local[0] <= 64);
        prop_assert!(local[1..].iter().all(|size| *size == 1));
    }
}

#[test]
fn of_every_two_units_a_set_has_the_first_and_lacks_the_second() {
    for units in [2, 3, 5, 7, 8, 13, 63, 64, 100] {
        let axis = Axis::new(0, units, 1, MOST_UNITS);
        for sets in [
            axis.sets(1.0, 0.0),
            axis.sets(0.0, 1.0),
            axis.sets_by_bits(),
        ] {
            let has = |set: &[std::ops::Range<u64>], unit: u64| {
                set.iter().filter(|range| range.contains(&unit)).count() == 1
            };
            for one in 0..units {
                for two in (0..units).filter(|two| *two != one) {
                    assert!(sets.iter().any(|set| has(set, one) && !has(set, two)));
                }
            }
        }
    }
    let axis = Axis::new(0, 64, 1, MOST_UNITS);
    let counts = [
        axis.sets(1.0, 0.0),
        axis.sets(0.0, 1.0),
        axis.sets_by_bits(),
    ];
    assert_eq!(counts.map(|sets| sets.len()), [64, 12, 12]);
}

#[test]
fn there_is_no_slice_if_it_is_not_a_whole_number_of_bytes() {
    let axis = Axis::of(0, &[10], Some(&[5]));
    assert_eq!(axis.units(), 2);
    // One int for each group of five.
    assert_eq!(axis.slice(8, &(1..2)), Some(4..8));
    assert_eq!(axis.slice(7, &(0..1)), None);
}

#[test]
fn the_source_keeps_its_lines_and_gets_the_sizes_of_the_whole_range() {
    let text = axis::preamble(
        "__kernel void k() {}\n",
        std::path::Path::new("a/\"b\".cl"),
        &[10, 6],
        Some(&[5, 2]),
    );
    assert!(text.ends_with("#line 1 \"_b_.cl\"\n__kernel void k() {}\n"));
    assert!(text.contains("d == 0 ? (size_t)10 : d == 1 ? (size_t)6 : get_global_size(d)"));
    assert!(text.contains("d == 0 ? (size_t)2 : d == 1 ? (size_t)3 : get_num_groups(d)"));
}

#[test]
fn results_are_compared_by_their_type() {
    use super::compare::compare;
    use crate::graph::spec::scalar::Base;
    let floats = |numbers: &[f32]| bytemuck::cast_slice(numbers).to_vec();
    let (a, b) = (floats(&[1.0, 100.0]), floats(&[1.0, 100.001]));
    assert!(compare(Base::Float, &b, &a, false).right);
    assert!(!compare(Base::Float, &b, &a, true).right);
    assert!(!compare(Base::Float, &floats(&[1.1, 100.0]), &a, false).right);
    assert!(compare(Base::Float, &a, &a, true).right);
    let nan = floats(&[f32::NAN, 100.0]);
    assert!(!compare(Base::Float, &nan, &a, false).right);
    assert_eq!(
        compare(Base::Int, &[1, 0, 0, 0], &[3, 0, 0, 0], false).largest,
        2.0
    );
    assert!(!compare(Base::Int, &[1, 0, 0, 0], &[3, 0, 0, 0], false).right);
    // 1.5 and 1.0 in binary16.
    let halves = compare(Base::Half, &[0x00, 0x3e], &[0x00, 0x3c], false);
    assert_eq!(halves.largest, 0.5);
}

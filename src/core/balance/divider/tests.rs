use std::ops::Range;

use proptest::prelude::*;

use super::*;
use crate::balance::Strategy as Balancing;

fn divider(units: u64, parts: usize) -> Divider {
    Divider::new(Options::new(units, parts)).unwrap()
}

fn lengths(ranges: &[Range<u64>]) -> Vec<u64> {
    ranges.iter().map(|range| range.end - range.start).collect()
}

/// A step in which a unit takes so many seconds on each part.
fn step(divider: &mut Divider, unit: &[f64]) -> Vec<u64> {
    let lengths = lengths(divider.next().unwrap());
    let seconds: Vec<Option<f64>> = lengths
        .iter()
        .zip(unit)
        .map(|(units, unit)| Some(*units as f64 * unit))
        .collect();
    divider.took(&seconds).unwrap();
    lengths
}

#[test]
fn shares_follow_what_steps_took() {
    let mut divider = divider(1200, 3);
    assert_eq!(step(&mut divider, &[1.0, 2.0, 4.0]), [400, 400, 400]);
    assert_eq!(step(&mut divider, &[1.0, 2.0, 4.0]), [686, 343, 171]);
    for _ in 0..10 {
        step(&mut divider, &[1.0, 2.0, 4.0]);
    }
    // Part 0 becomes four times slower: two steps confirm it.
    let shares: Vec<u64> = (0..3)
        .map(|_| step(&mut divider, &[4.0, 2.0, 4.0])[0])
        .collect();
    assert_eq!(shares, [686, 686, 300]);
    let why = divider.why();
    assert!(why.contains("of 1200 units change parts"), "{why}");
    assert!(
        why.contains("part 0: 300 units, 25.0 %; 4.00 s a unit of work"),
        "{why}"
    );
    assert!(why.contains("1.00 s before step 14"), "{why}");
}

#[test]
fn a_first_guess_counts_until_a_part_is_measured() {
    let rates = vec![3.0, 1.0];
    let mut divider = Divider::new(Options {
        rates,
        ..Options::new(400, 2)
    })
    .unwrap();
    assert_eq!(step(&mut divider, &[1.0, 1.0]), [300, 100]);
    assert_eq!(step(&mut divider, &[1.0, 1.0]), [200, 200]);
}

#[test]
fn units_move_where_that_pays_in_the_steps_that_are_left() {
    let moving = |seconds: f64, steps: Option<u64>| {
        let options = Options {
            move_seconds: Some(seconds),
            steps,
            ..Options::new(100, 2)
        };
        let mut divider = Divider::new(options).unwrap();
        step(&mut divider, &[1.0, 3.0]);
        step(&mut divider, &[1.0, 3.0])
    };
    // 25 units move, and a step gets shorter by 75 seconds.
    assert_eq!(moving(29.0, None), [75, 25]);
    assert_eq!(moving(31.0, None), [50, 50]);
    assert_eq!(moving(31.0, Some(100)), [75, 25]);
    assert_eq!(moving(4.0, Some(2)), [50, 50]);
    // What moves cost is learned, here from the first ones, of all units.
    let mut divider = divider(100, 2);
    divider.next().unwrap();
    divider
        .took_moving(&[Some(50.0), Some(150.0)], Some(100.0))
        .unwrap();
    divider.next().unwrap();
    divider
        .took_moving(&[Some(75.0), Some(75.0)], Some(5000.0))
        .unwrap();
    for _ in 0..3 {
        assert_eq!(step(&mut divider, &[1.5, 3.0]), [75, 25]);
    }
    assert!(
        divider.why().contains("to move them takes"),
        "{}",
        divider.why()
    );
}

#[test]
fn what_a_lost_part_had_is_computed_by_the_others() {
    let limits = vec![Some(60), None, Some(40)];
    let mut divider = Divider::new(Options {
        limits,
        ..Options::new(90, 3)
    })
    .unwrap();
    assert_eq!(lengths(divider.next().unwrap()), [30, 30, 30]);
    let again = divider.took(&[Some(1.0), None, Some(1.0)]).unwrap();
    // Part 2 has room for 10 more.
    assert_eq!(again, [(0, 30..50), (2, 50..60)]);
    assert_eq!(lengths(divider.next().unwrap()), [50, 0, 40]);
    let error = divider.took(&[None, None, Some(1.0)]).unwrap_err();
    assert_eq!(
        error,
        DividerError::NoRoom {
            room: 40,
            needed: 90
        }
    );
    assert!(divider.next().is_err());
    divider.back(1).unwrap();
    assert_eq!(lengths(divider.next().unwrap()), [0, 50, 40]);
    assert!(
        divider
            .why()
            .contains("part 2: 40 units, 44.4 %; 29.2 ms a unit of work"),
        "{}",
        divider.why()
    );
    assert!(divider.took(&[None; 3]).is_err());
    assert_eq!(divider.next().unwrap_err(), DividerError::AllLost);
}

#[test]
fn a_part_without_units_is_tried_again() {
    let mut divider = divider(10, 2);
    // A unit takes part 1 longer than part 0 all of them.
    let mut slow = |steps: usize| {
        (0..steps)
            .map(|_| step(&mut divider, &[1.0, 60.0])[1])
            .collect::<Vec<_>>()
    };
    assert_eq!(slow(4), [5, 0, 0, 0]);
    let tried = slow(2000).iter().filter(|units| **units > 0).count();
    assert!((2..=4).contains(&tried), "{tried}");
    // It is as fast as the other now.
    let last = (0..1000).map(|_| step(&mut divider, &[1.0, 1.0])).last();
    assert_eq!(last, Some(vec![5, 5]));
}

#[test]
fn nodes_have_devices() {
    let mut nodes = divider(1000, 2);
    let mut devices = [divider(1000, 1), divider(1000, 2)];
    for _ in 0..4 {
        let ranges = nodes.next().unwrap().to_vec();
        let mut all = Vec::new();
        let seconds = ranges.iter().zip(&mut devices).map(|(range, devices)| {
            let parts = devices.next_of(range.clone()).unwrap().to_vec();
            let seconds: Vec<_> = lengths(&parts)
                .iter()
                .map(|units| Some(*units as f64))
                .collect();
            devices.took(&seconds).unwrap();
            all.extend(parts);
            seconds.into_iter().flatten().reduce(f64::max)
        });
        let seconds: Vec<_> = seconds.collect();
        nodes.took(&seconds).unwrap();
        assert_eq!((all[0].start, all[2].end), (0, 1000));
        assert_eq!((all[0].end, all[1].end), (all[1].start, all[2].start));
    }
    let lengths: Vec<u64> = lengths(nodes.next().unwrap());
    assert!(lengths[0].abs_diff(333) <= 4, "{lengths:?}");
}

#[test]
fn balancers_of_co_runs_decide() {
    let by = |strategy: &str| {
        let strategy: Balancing = strategy.parse().unwrap();
        let mut divider = Divider::with_strategy(Options::new(1200, 3), &strategy).unwrap();
        let last = (0..12)
            .map(|_| step(&mut divider, &[1e-6, 2e-6, 4e-6]))
            .last()
            .unwrap();
        assert!(divider.to_json().is_err());
        last
    };
    for (strategy, expected) in [
        ("dawl", [686, 343, 171]),
        ("guided", [686, 343, 171]),
        ("fixed:0.5,0.25,0.25", [600, 300, 300]),
    ] {
        let shares = by(strategy);
        let near = shares
            .iter()
            .zip(expected)
            .all(|(share, expected)| share.abs_diff(expected) <= 12);
        assert!(near, "{strategy}: {shares:?}");
    }
    let mut given = divider(100, 3);
    assert_eq!(
        lengths(given.next_by(&[1.0, 0.0, 3.0]).unwrap()),
        [25, 0, 75]
    );
    given.took(&[Some(1.0), None, None]).unwrap();
    assert_eq!(
        lengths(given.next_by(&[0.0, 1.0, 1.0]).unwrap()),
        [100, 0, 0]
    );
}

#[test]
fn what_is_wrong_is_named() {
    let wrong = |change: fn(&mut Options)| {
        let mut options = Options::new(10, 2);
        change(&mut options);
        Divider::new(options).err().unwrap().to_string()
    };
    for (change, named) in [
        (|options: &mut Options| options.parts = 0) as fn(&mut Options),
        |options| options.granularity = 0,
        |options| options.units = u64::MAX,
        |options| options.limits = vec![None],
        |options| options.weights = vec![1.0; 11],
        |options| options.weights = vec![-1.0; 10],
        |options| options.sizes = vec![1],
        |options| options.rates = vec![1.0, f64::NAN],
        |options| options.move_seconds = Some(-1.0),
        |options| options.hysteresis = f64::INFINITY,
    ]
    .into_iter()
    .zip([
        "parts",
        "granularity",
        "units",
        "limits",
        "weights",
        "weights",
        "sizes",
        "rates",
        "move_seconds",
        "hysteresis",
    ]) {
        let said = wrong(change);
        assert!(said.starts_with(named), "{said}");
    }
    let mut divider = divider(10, 2);
    assert_eq!(divider.took(&[None, None]), Err(DividerError::NoStep));
    assert_eq!(divider.done(0, 1.0), Err(DividerError::NotTaken(0)));
    assert_eq!(
        divider.back(2),
        Err(DividerError::NoPart { part: 2, parts: 2 })
    );
    assert!(divider.next_of(5..11).is_err());
    divider.next().unwrap();
    assert_eq!(
        divider.took(&[None]),
        Err(DividerError::Entries { given: 1, parts: 2 })
    );
    for seconds in [f64::NAN, -1.0, f64::INFINITY] {
        assert!(
            divider
                .took(&[Some(1.0), Some(seconds)])
                .unwrap_err()
                .to_string()
                .starts_with("part 1: ")
        );
    }
    divider.take(0).unwrap();
    assert_eq!(divider.took(&[None, None]), Err(DividerError::Taken));
    assert!(matches!(
        divider.take(0),
        Err(DividerError::Unfinished { part: 0, .. })
    ));
    assert!(matches!(
        divider.next(),
        Err(DividerError::Unfinished { .. })
    ));
    divider.done(0, 1.0).unwrap();
    assert!(matches!(divider.next(), Err(DividerError::Left(_))));
    for text in [
        "",
        "{}",
        "[1]",
        &divider
            .to_json()
            .unwrap()
            .replace("\"version\":1", "\"version\":2"),
    ] {
        assert!(
            matches!(Divider::from_json(text), Err(DividerError::State(_))),
            "{text}"
        );
    }
}

/// The least seconds of the slowest part over all ranges.
fn least(options: &Options, speeds: &[f64]) -> Option<f64> {
    fn rest(from: usize, options: &Options, speeds: &[f64], part: usize) -> Option<f64> {
        if part == options.parts {
            return (from == options.units as usize).then_some(0.0);
        }
        let ends = (from..=options.units as usize).filter(|end| {
            let size: u64 = options.sizes[from..*end].iter().sum();
            options.limits[part].is_none_or(|limit| size <= limit)
        });
        let each = ends.filter_map(|end| {
            let work: f64 = options.weights[from..end].iter().sum();
            Some(rest(end, options, speeds, part + 1)?.max(work / speeds[part]))
        });
        each.reduce(f64::min)
    }
    rest(0, options, speeds, 0)
}

fn limits(parts: usize, most: u64) -> impl Strategy<Value = Vec<Option<u64>>> {
    prop_oneof![
        Just(Vec::new()),
        prop::collection::vec(prop::option::of(0..most), parts),
    ]
}

fn some_options() -> impl Strategy<Value = Options> {
    (1usize..7, 0u64..200).prop_flat_map(|(parts, units)| {
        let each = units as usize;
        let weights = prop_oneof![
            Just(Vec::new()),
            prop::collection::vec(prop_oneof![Just(0.0), 0.0..9.0f64], each),
        ];
        let sizes = prop_oneof![Just(Vec::new()), prop::collection::vec(0u64..5, each)];
        let more = (
            1u64..9,
            prop_oneof![Just(None), (0.0..2.0f64).prop_map(Some)],
        );
        (limits(parts, units + 1), weights, sizes, more).prop_map(
            move |(limits, weights, sizes, (granularity, move_seconds))| Options {
                granularity,
                limits,
                weights,
                sizes,
                move_seconds,
                ..Options::new(units, parts)
            },
        )
    })
}

/// What a user may say of a part.
fn answer() -> impl Strategy<Value = Option<f64>> {
    prop_oneof![
        1 => Just(None),
        1 => prop_oneof![Just(0.0), Just(f64::NAN), Just(-1.0), Just(f64::MAX), Just(5e-324), Just(f64::INFINITY)].prop_map(Some),
        9 => (0.001..1.0f64).prop_map(Some),
    ]
}

/// Ranges follow one another, begin at granules and are within limits.
fn check_ranges(ranges: &[Range<u64>], options: &Options) {
    let mut end = 0;
    for (part, range) in ranges.iter().enumerate() {
        assert_eq!(range.start, end);
        assert!(range.is_empty() || range.start.is_multiple_of(options.granularity));
        let units = range.start as usize..range.end as usize;
        let size = match options.sizes.is_empty() {
            true => range.end - range.start,
            false => options.sizes[units].iter().sum(),
        };
        let limit = options.limits.get(part).copied().flatten();
        assert!(limit.is_none_or(|limit| size <= limit), "{ranges:?}");
        end = range.end;
    }
    assert_eq!(end, options.units);
}

proptest! {
    #[test]
    fn every_unit_has_one_part_whatever_is_answered(
        options in some_options(),
        answers in prop::collection::vec((prop::collection::vec(answer(), 6), prop::option::of(0usize..6)), 1..12),
    ) {
        let mut divider = Divider::new(options.clone()).unwrap();
        // Another rank is told the same, and one begins anew in each step from what is written.
        let mut other = Divider::new(options.clone()).unwrap();
        for (seconds, back) in answers {
            let seconds = &seconds[..options.parts];
            let written = divider.to_json().unwrap();
            prop_assert_eq!(&written, &other.to_json().unwrap());
            let mut read = Divider::from_json(&written).unwrap();
            let ranges = divider.next().map(<[Range<u64>]>::to_vec);
            prop_assert_eq!(&ranges, &other.next().map(<[Range<u64>]>::to_vec));
            prop_assert_eq!(&ranges, &read.next().map(<[Range<u64>]>::to_vec));
            if let Ok(ranges) = &ranges {
                check_ranges(ranges, &options);
                let lost: Vec<usize> = (0..options.parts).filter(|part| divider.state.parts[*part].is_lost || seconds[*part].is_none()).collect();
                let before = divider.to_json().unwrap();
                let taken = divider.took(seconds);
                prop_assert_eq!(format!("{taken:?}"), format!("{:?}", other.took(seconds)));
                match taken {
                    Ok(pieces) => {
                        let units: u64 = pieces.iter().map(|(_, piece)| piece.end - piece.start).sum();
                        prop_assert_eq!(units, lost.iter().map(|part| ranges[*part].end - ranges[*part].start).sum::<u64>());
                        prop_assert!(pieces.iter().all(|(part, _)| !lost.contains(part)));
                    }
                    Err(DividerError::Seconds { .. }) => prop_assert_eq!(before, divider.to_json().unwrap()),
                    Err(DividerError::NoRoom { .. } | DividerError::AllLost) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            prop_assert!(divider.why().lines().count() <= options.parts + 1);
            if let Some(part) = back {
                prop_assert_eq!(divider.back(part).is_ok(), part < options.parts);
                let _ = other.back(part);
            }
        }
    }

    #[test]
    fn units_that_are_taken_are_computed_once(
        options in some_options(),
        strategy in prop_oneof![Just(None), Just(Some("dawl")), Just(Some("guided"))],
        seed in 0u64..1 << 40,
    ) {
        let made = strategy.map(|strategy| Divider::with_strategy(options.clone(), &strategy.parse().unwrap()));
        let mut divider = made.unwrap_or_else(|| Divider::new(options.clone())).unwrap();
        let mut random = fastrand::Rng::with_seed(seed);
        let mut done = vec![0; options.units as usize];
        let mut taken: Vec<Option<Range<u64>>> = vec![None; options.parts];
        let mut lost = vec![false; options.parts];
        for _ in 0..10_000 {
            if divider.is_done() {
                break;
            }
            let part = random.usize(0..options.parts);
            match taken[part].take() {
                Some(_) if random.u8(0..20) == 0 => {
                    divider.lost(part).unwrap();
                    lost[part] = true;
                }
                Some(range) => {
                    range.for_each(|unit| done[unit as usize] += 1);
                    divider.done(part, random.f64()).unwrap();
                }
                None if lost[part] => {
                    divider.back(part).unwrap();
                    lost[part] = false;
                }
                None => match divider.take(part) {
                    Ok(range) => taken[part] = range,
                    // Limits that leave no room.
                    Err(error) => {
                        prop_assert!(matches!(error, DividerError::NoRoom { .. }), "{}", error);
                        return Ok(());
                    }
                },
            }
        }
        prop_assert!(divider.is_done());
        prop_assert!(done.iter().all(|times| *times == 1), "{:?}", done);
        let next = divider.next().map(|_| ());
        let is_no_room = matches!(next, Err(DividerError::AllLost | DividerError::NoRoom { .. }));
        prop_assert!(next.is_ok() || is_no_room);
    }

    #[test]
    fn no_other_ranges_end_earlier(
        (weights, sizes) in (0usize..9).prop_flat_map(|units| {
            (prop::collection::vec(0.1..9.0f64, units), prop::collection::vec(0u64..5, units))
        }),
        speeds in prop::collection::vec(0.1..9.0f64, 1..4),
        limit in prop::option::of(0u64..20),
    ) {
        let mut limits = vec![None; speeds.len()];
        limits[0] = limit;
        let parts = speeds.len();
        let options = Options { weights, sizes, limits, rates: speeds.clone(), ..Options::new(0, parts) };
        let options = Options { units: options.weights.len() as u64, ..options };
        let mut divider = Divider::new(options.clone()).unwrap();
        let found = divider.next().map(<[Range<u64>]>::to_vec).ok();
        let seconds = found.map(|ranges| divider.seconds(&ranges, &speeds));
        match (seconds, least(&options, &speeds)) {
            (Some(seconds), Some(least)) => prop_assert!(seconds <= least * 1.001, "{} {}", seconds, least),
            (found, least) => prop_assert_eq!(found, least),
        }
    }
}

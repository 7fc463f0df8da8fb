//! Residency compared with a simple model, on random requests.

use std::collections::{HashMap, HashSet};

use fastrand::Rng;
use proptest::prelude::*;

use super::*;

/// Five data in four slots: data 3 and 4 are versions of slot 3.
fn five() -> Residency<u32, ()> {
    let slots = vec![0, 1, 2, 3, 3];
    Residency::new(slots, &[10, 20, 30, 40], &[None, Some(60)])
}

/// Pins a slot as an engine does; `None` if another must be evicted first.
fn pin(residency: &mut Residency<u32, ()>, slot: usize, next: &mut u32) -> Option<()> {
    let space = residency.space_mut(1).expect("own memory");
    loop {
        match space.pin(slot) {
            Room::Held => return Some(()),
            Room::Allocate(_) => {
                space.give(slot, *next);
                *next += 1;
            }
            Room::Free(_) => {}
            Room::Full => return None,
        }
    }
}

#[test]
fn slots_without_a_buffer_lack_one_as_far_as_there_is_room() {
    let mut residency = five();
    let space = residency.space_mut(1).expect("own memory");
    // Of 60 bytes; the fourth slot has no room.
    assert_eq!(space.lacking(0..4), [10, 20, 30]);
    assert_eq!(space.lacking([3, 1].into_iter()), [40, 20]);
    space.add(20, 7);
    assert_eq!((space.lacking(0..4), space.allocated()), (vec![10, 30], 20));
    assert_eq!(
        space.pin(1),
        Room::Held,
        "the buffer serves a slot of its length"
    );
    assert_eq!(
        (space.buffer(1), space.lacking(0..4)),
        (Some(7), vec![10, 30])
    );
    space.set_capacity(20);
    assert!(space.lacking(0..4).is_empty());
}

#[test]
fn a_slot_has_one_version_at_a_time() {
    let mut residency = five();
    residency.set(1, 3, State::Valid);
    assert_eq!(residency.holder(3), Some(1));
    residency.set(1, 4, State::Arriving(()));
    assert_eq!(residency.state(1, 3), State::Absent);
    assert_eq!(residency.version(1, 3), Some(4));
    assert_eq!(residency.holder(4), None, "it is on its way");
    // The older one leaves without a trace.
    residency.set(1, 3, State::Absent);
    assert_eq!(residency.state(1, 4), State::Arriving(()));
}

#[test]
fn what_is_pinned_or_in_flight_cannot_be_evicted() {
    let mut residency = five();
    let mut next = 0;
    pin(&mut residency, 0, &mut next).expect("room");
    residency.set(1, 0, State::Valid);
    assert!(!residency.is_evictable(1, 0), "pinned");
    residency.space_mut(1).expect("memory").unpin(0);
    assert!(residency.is_evictable(1, 0));
    for state in [State::Arriving(()), State::Leaving] {
        residency.set(1, 0, state);
        assert!(!residency.is_evictable(1, 0));
    }
    assert!(!residency.is_evictable(1, 1), "never there");
    assert!(!residency.is_evictable(0, 0), "the host's memory");
}

#[test]
fn buffers_are_used_again_by_slots_of_their_length() {
    let slots = vec![0, 1, 2];
    let mut residency: Residency<u32, ()> = Residency::new(slots, &[10, 10, 15], &[None, Some(20)]);
    let mut next = 0;
    for slot in [0, 1] {
        pin(&mut residency, slot, &mut next).expect("room");
        residency.space_mut(1).expect("memory").unpin(slot);
    }
    residency.evict(1, 0);
    pin(&mut residency, 0, &mut next).expect("room");
    assert_eq!(next, 2, "nothing was allocated");
    // A longer slot needs both rooms: the free buffers are freed.
    residency.space_mut(1).expect("memory").unpin(0);
    assert!(pin(&mut residency, 2, &mut next).is_none());
    residency.evict(1, 0);
    assert!(pin(&mut residency, 2, &mut next).is_none());
    residency.evict(1, 1);
    let space = residency.space_mut(1).expect("memory");
    assert!(matches!(space.pin(2), Room::Free(buffers) if buffers.len() == 2));
    assert_eq!(space.allocated(), 0);
    pin(&mut residency, 2, &mut next).expect("room");
}

#[test]
fn after_a_loss_nothing_is_on_its_way() {
    let mut residency: Residency<u32, ()> =
        Residency::new(vec![0, 1, 2], &[1; 3], &[Some(9), Some(9)]);
    residency.set(0, 0, State::Valid);
    residency.set(1, 0, State::Valid);
    residency.set(1, 1, State::Arriving(()));
    residency.set(1, 2, State::Leaving);
    residency.lose(&[0]);
    assert_eq!(residency.state(0, 0), State::Absent);
    let states = [0, 1, 2].map(|datum| residency.state(1, datum));
    assert_eq!(states, [State::Valid, State::Absent, State::Valid]);
}

/// Random pins, unpins and evictions: the capacity holds, no buffer has two slots, and
/// the least recently used slot is the first candidate.
#[test]
fn a_space_keeps_its_capacity_and_its_order() {
    for seed in 0..300 {
        let mut rng = Rng::with_seed(seed);
        let bytes: Vec<u64> = (0..12).map(|_| 10 * rng.u64(1..5)).collect();
        let capacity = rng.u64(40..200);
        let mut residency: Residency<u32, ()> =
            Residency::new((0..12).collect(), &bytes, &[None, Some(capacity)]);
        let mut next = 0;
        let mut pins: HashMap<usize, u32> = HashMap::new();
        let mut order: Vec<usize> = Vec::new();
        for _ in 0..200 {
            let slot = rng.usize(0..12);
            if rng.bool() {
                let pinned = bytes
                    .iter()
                    .enumerate()
                    .filter(|(s, _)| pins.contains_key(s));
                let pinned: u64 = pinned.map(|(_, bytes)| bytes).sum();
                if !pins.contains_key(&slot) && pinned + bytes[slot] > capacity {
                    continue;
                }
                while pin(&mut residency, slot, &mut next).is_none() {
                    let space = residency.space(1).expect("memory");
                    let victim = space.unpinned().next().expect("a victim");
                    assert_eq!(victim, order.remove(0), "seed {seed}");
                    residency.evict(1, victim);
                }
                order.retain(|other| *other != slot);
                *pins.entry(slot).or_default() += 1;
            } else if let Some(count) = pins.get_mut(&slot) {
                *count -= 1;
                residency.space_mut(1).expect("memory").unpin(slot);
                if *count == 0 {
                    pins.remove(&slot);
                    order.push(slot);
                }
            }
            let space = residency.space(1).expect("memory");
            assert!(space.allocated() <= capacity, "seed {seed}");
            assert_eq!(space.unpinned().collect::<Vec<_>>(), order, "seed {seed}");
            let held: Vec<u32> = (0..12).filter_map(|slot| space.buffer(slot)).collect();
            let distinct: HashSet<u32> = held.iter().copied().collect();
            assert_eq!(held.len(), distinct.len(), "seed {seed}");
        }
    }
}

#[test]
fn places_are_added_and_removed() {
    let places: Places = [3, 63, 0].into_iter().collect();
    assert_eq!(places.iter().collect::<Vec<_>>(), [0, 3, 63]);
    assert!(places.has(63) && !places.has(1) && !places.has(64));
    assert_eq!(places.without(3).without(3).without(63), Places::only(0));
    assert_eq!(format!("{places:?}"), "{0, 3, 63}");
    assert!(Places::NONE.is_empty() && Places::ALL.iter().count() == 64);
}

/// The places of each byte.
type Naive = Vec<Places>;

const BYTES: u64 = 24;
const PLACES: usize = 4;

#[derive(Clone, Debug)]
enum Step {
    Written(Range<u64>, usize),
    Copied(Range<u64>, usize),
    Lost(usize),
}

fn step() -> impl Strategy<Value = Step> {
    // Some ranges are empty and some end behind the buffer.
    let range = || (0..BYTES + 2, 0..9_u64).prop_map(|(begin, length)| begin..begin + length);
    prop_oneof![
        4 => (range(), 0..PLACES).prop_map(|(range, place)| Step::Written(range, place)),
        4 => (range(), 0..PLACES).prop_map(|(range, place)| Step::Copied(range, place)),
        1 => (0..PLACES).prop_map(Step::Lost),
    ]
}

fn apply(step: &Step, regions: &mut Regions, naive: &mut Naive) {
    let within = |range: &Range<u64>| {
        let clip = |byte: u64| byte.min(BYTES) as usize;
        clip(range.start)..clip(range.end)
    };
    match step {
        Step::Written(range, place) => {
            regions.written(range.clone(), *place);
            naive[within(range)].fill(Places::only(*place));
        }
        Step::Copied(range, place) => {
            regions.copied(range.clone(), *place);
            let some = |places: &&mut Places| !places.is_empty();
            let bytes = naive[within(range)].iter_mut().filter(some);
            bytes.for_each(|places| *places = places.with(*place));
        }
        Step::Lost(place) => {
            let alone = |byte: &u64| naive[*byte as usize] == Places::only(*place);
            let expected: Vec<u64> = (0..BYTES).filter(alone).collect();
            let gone: Vec<u64> = regions.lost(*place).into_iter().flatten().collect();
            assert_eq!(gone, expected);
            naive.iter_mut().for_each(|p| *p = p.without(*place));
        }
    }
}

proptest! {
    #[test]
    fn regions_are_as_single_bytes(steps in prop::collection::vec(step(), 0..40)) {
        let mut regions = Regions::new(BYTES);
        let mut naive: Naive = vec![Places::NONE; BYTES as usize];
        for step in &steps {
            apply(step, &mut regions, &mut naive);
            for begin in 0..=BYTES {
                for end in begin..=BYTES + 1 {
                    let bytes = || begin..end.min(BYTES).max(begin);
                    for place in 0..PLACES {
                        let has = |byte: u64| naive[byte as usize].has(place);
                        prop_assert_eq!(regions.valid(begin..end, place), bytes().all(has));
                        let missing = regions.missing(begin..end, place);
                        let reported: Vec<(u64, Places)> = missing
                            .flat_map(|(range, places)| range.map(move |byte| (byte, places)))
                            .collect();
                        let each = bytes().map(|byte| (byte, naive[byte as usize]));
                        let absent: Vec<(u64, Places)> =
                            each.filter(|(_, p)| !p.is_empty() && !p.has(place)).collect();
                        prop_assert_eq!(reported, absent);
                    }
                }
            }
            let parts: Vec<Places> = regions.parts(0..BYTES).map(|(_, p)| p).collect();
            prop_assert!(parts.windows(2).all(|pair| pair[0] != pair[1]), "merged");
        }
    }
}

#[test]
fn a_buffer_of_no_bytes_is_valid_everywhere() {
    let mut regions = Regions::new(0);
    regions.written(0..8, 1);
    regions.copied(0..8, 2);
    assert!(regions.lost(1).is_empty());
    assert!(regions.valid(0..8, 3));
    assert_eq!(regions.missing(0..8, 3).count(), 0);
}

#[test]
fn an_undefined_part_is_neither_valid_nor_missing() {
    let mut regions = Regions::new(100);
    regions.written(20..40, 5);
    assert!(!regions.valid(0..40, 5));
    let missing: Vec<_> = regions.missing(0..100, 0).collect();
    assert_eq!(missing, [(20..40, Places::only(5))]);
    regions.copied(0..100, 0);
    assert!(regions.valid(20..40, 0) && !regions.valid(0..40, 0));
    assert_eq!(regions.lost(5), []);
}

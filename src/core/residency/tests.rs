//! Residency compared with a simple model, on random requests.

use std::collections::{HashMap, HashSet};

use fastrand::Rng;

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

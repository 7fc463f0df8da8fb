//! Wires between threads.

use std::collections::VecDeque;
use std::thread;

use proptest::prelude::*;

use super::heartbeat::Pulse;
use super::local::{Local, Options};
use super::*;

fn message(from: usize, bytes: &[u8]) -> Arrived {
    let bytes = bytes.to_vec();
    Arrived::Message { from, bytes }
}

/// The next arrival, however long it takes.
fn next(wire: &mut impl Wire) -> Arrived {
    loop {
        if let Some(arrived) = wire.poll().unwrap() {
            return arrived;
        }
        thread::yield_now();
    }
}

/// Runs a function on each rank, in a thread each.
fn on_each<R: Send>(wires: Vec<LocalWire>, work: impl Fn(LocalWire) -> R + Send + Sync) -> Vec<R> {
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = wires
            .into_iter()
            .map(|wire| scope.spawn(move || work(wire)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    })
}

/// The messages from one rank to another, which both ends can make.
fn messages(seed: u64, from: usize, to: usize) -> Vec<Vec<u8>> {
    let mut random = fastrand::Rng::with_seed(seed ^ (from as u64 * 64 + to as u64));
    let count = random.usize(0..200);
    let sizes = [0, 1, 8, 1000, 100_000];
    (0..count)
        .map(|_| {
            let most = sizes[random.usize(0..sizes.len())];
            let size = random.usize(0..=most);
            // A few random bytes tell messages apart; making all of them is slow.
            let mut bytes = vec![random.u8(..); size];
            random.fill(&mut bytes[..size.min(16)]);
            bytes
        })
        .collect()
}

/// Sends to all and receives from all, itself included. Returns what arrived, by sender.
fn exchange(mut wire: LocalWire, seed: u64) -> Vec<Vec<Vec<u8>>> {
    let (rank, size) = (wire.rank(), wire.size());
    let mut outgoing: Vec<VecDeque<_>> = (0..size)
        .map(|to| messages(seed, rank, to).into())
        .collect();
    let mut missing: usize = (0..size).map(|from| messages(seed, from, rank).len()).sum();
    let mut arrived = vec![Vec::new(); size];
    let mut random = fastrand::Rng::with_seed(seed + rank as u64);
    while missing > 0 || outgoing.iter().any(|queue| !queue.is_empty()) {
        let to = random.usize(0..size);
        if let Some(bytes) = outgoing[to].pop_front() {
            wire.send(to, bytes).unwrap();
        }
        match wire.poll().unwrap() {
            Some(Arrived::Message { from, bytes }) => {
                arrived[from].push(bytes);
                missing -= 1;
            }
            Some(lost) => panic!("{lost:?}"),
            None => thread::yield_now(),
        }
    }
    Box::new(wire).finish().unwrap();
    arrived
}

/// A rank that is not woken waits for days.
#[test]
fn an_arrival_wakes_a_rank_that_rests() {
    const DAYS: Duration = Duration::from_secs(1 << 20);
    let ran = on_each(LocalWire::cluster(2), |mut wire| {
        for _ in 0..100 {
            let other = 1 - wire.rank();
            if other == 1 {
                wire.send(other, vec![1]).unwrap();
            }
            let arrived = loop {
                match wire.poll().unwrap() {
                    Some(arrived) => break arrived,
                    None => wire.rest(DAYS).unwrap(),
                }
            };
            assert_eq!(arrived, message(other, &[1]));
            if other == 0 {
                wire.send(other, vec![1]).unwrap();
            }
        }
        // What waits in the wire is an arrival.
        let own = wire.rank();
        wire.send(own, vec![2]).unwrap();
        wire.rest(DAYS).unwrap();
        wire.poll().unwrap()
    });
    assert_eq!(ran, [0, 1].map(|rank| Some(message(rank, &[2]))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn all_messages_arrive_once_and_in_order(
        size in 1usize..6,
        seed in any::<u64>(),
        shuffled in any::<bool>(),
    ) {
        let shuffle = shuffled.then_some(seed);
        let options = Options { shuffle, ..Options::default() };
        let wires = LocalWire::cluster_with(size, options);
        let arrived = on_each(wires, |wire| exchange(wire, seed >> 1));
        for (to, by_sender) in arrived.into_iter().enumerate() {
            for (from, got) in by_sender.into_iter().enumerate() {
                prop_assert!(got == messages(seed >> 1, from, to), "{} to {}", from, to);
            }
        }
    }
}

#[test]
fn a_seed_changes_the_order_of_senders_alone() {
    let arrivals = |shuffle| {
        let options = Options {
            shuffle,
            ..Options::default()
        };
        let mut wires = LocalWire::cluster_with(3, options);
        for number in 0..20 {
            wires[1].send(0, vec![number]).unwrap();
            wires[2].send(0, vec![number]).unwrap();
        }
        let all: Vec<_> = (0..40).map(|_| next(&mut wires[0])).collect();
        for sender in [1, 2] {
            let from = |arrived: &&Arrived| matches!(arrived, Arrived::Message { from, .. } if *from == sender);
            let own: Vec<_> = all.iter().filter(from).cloned().collect();
            let sent: Vec<_> = (0..20).map(|number| message(sender, &[number])).collect();
            assert_eq!(own, sent);
        }
        all
    };
    assert_eq!(arrivals(Some(1)), arrivals(Some(1)));
    assert_ne!(arrivals(Some(1)), arrivals(Some(2)));
    assert_ne!(arrivals(Some(1)), arrivals(None));
}

#[test]
fn a_killed_rank_is_lost_to_all_others_after_its_messages() {
    let wires = LocalWire::cluster(4);
    let faults = wires[0].faults();
    on_each(wires, |mut wire| {
        if wire.rank() == 2 {
            for to in 0..4 {
                wire.send(to, vec![7]).unwrap();
            }
            faults.kill(2);
            assert_eq!(wire.poll(), Err(WireError::Killed { rank: 2 }));
            assert_eq!(wire.send(0, vec![8]), Err(WireError::Killed { rank: 2 }));
            return;
        }
        assert_eq!(next(&mut wire), message(2, &[7]));
        let lost = next(&mut wire);
        assert!(matches!(lost, Arrived::Lost { rank: 2, .. }), "{lost:?}");
        wire.send(2, vec![9]).unwrap();
        Box::new(wire).finish().unwrap();
    });
}

#[test]
fn a_rank_whose_thread_ends_early_is_lost() {
    let mut wires = LocalWire::cluster(2);
    drop(wires.pop());
    let lost = next(&mut wires[0]);
    assert!(matches!(lost, Arrived::Lost { rank: 1, .. }), "{lost:?}");
    Box::new(wires.remove(0)).finish().unwrap();
}

#[test]
fn ranks_leave_together() {
    let wires = LocalWire::cluster(3);
    on_each(wires, |mut wire| {
        let rank = wire.rank();
        // The last rank sends after the others have begun to end; nobody is lost meanwhile.
        if rank == 2 {
            for _ in 0..1000 {
                assert_eq!(wire.poll().unwrap(), None);
                thread::yield_now();
            }
            wire.send(0, vec![1; 1000]).unwrap();
        }
        Box::new(wire).finish().unwrap();
    });
}

#[test]
fn a_rank_that_does_not_exist_is_named() {
    let mut wires = LocalWire::cluster(2);
    let error = wires[0].send(2, Vec::new()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no rank 2; the ranks of this run are 0 to 1"
    );
}

#[test]
fn a_rank_that_sends_to_itself_hears_the_others() {
    let mut wires = LocalWire::cluster(2);
    wires[1].send(0, vec![1]).unwrap();
    wires[0].send(0, vec![0]).unwrap();
    for _ in 0..2 {
        if next(&mut wires[0]) == message(1, &[1]) {
            return;
        }
        wires[0].send(0, vec![0]).unwrap();
    }
    panic!("the other rank's message waits behind the own ones");
}

#[test]
fn clocks_are_compared_before_the_run_and_early_messages_wait() {
    let wires = Local::ranks(3, None);
    // A thread that does not run for long is not lost.
    let pulse = Pulse {
        silence: u64::MAX,
        ..Pulse::default()
    };
    thread::scope(|scope| {
        for transport in wires {
            scope.spawn(move || {
                let mut wire = Link::connect(transport, pulse).unwrap();
                let rank = wire.rank();
                // Ranks that are ready send to those that still wait for rank 0.
                let to = (rank + 1) % 3;
                wire.send(to, vec![rank as u8]).unwrap();
                let from = (rank + 2) % 3;
                assert_eq!(next(&mut wire), message(from, &[from as u8]));
                assert_eq!(wire.clock_offset(0), 0);
                Box::new(wire).finish().unwrap();
            });
        }
    });
}

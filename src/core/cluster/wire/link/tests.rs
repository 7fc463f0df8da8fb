//! Ranks that one thread drives, with a clock of its own.

use std::ops::Range;

use crossbeam_channel::{Sender, unbounded};
use proptest::prelude::*;

use super::*;
use crate::cluster::wire::LocalWire;
use crate::cluster::wire::local::{Local, Options};

const SECOND: u64 = 1_000_000_000;
const PULSE: Pulse = Pulse {
    period: 10,
    silence: 50,
};

/// Ranks that watch each other; the test says what time it is.
fn watched(size: usize) -> Vec<Link<Local>> {
    let pulse = Some(Pulse {
        // The real time of the links' start counts for nothing beside it.
        period: PULSE.period * SECOND,
        silence: PULSE.silence * SECOND,
    });
    let options = Options {
        pulse,
        ..Options::default()
    };
    LocalWire::cluster_with(size, options)
}

/// Each second, ranks take all events. Returns who was lost, to whom and when.
fn drive(
    wires: &mut [Link<Local>],
    seconds: Range<u64>,
    asleep: impl Fn(usize, u64) -> bool,
) -> Vec<(u64, usize, usize)> {
    let mut losses = Vec::new();
    for second in seconds {
        for (rank, wire) in wires.iter_mut().enumerate() {
            if asleep(rank, second) {
                continue;
            }
            while wire.pump(second * SECOND).unwrap() {}
            for arrived in wire.arrived.drain(..) {
                match arrived {
                    Arrived::Lost { rank: lost, .. } => losses.push((second, rank, lost)),
                    // Of a rank that is lost to another one, both learn of it.
                    Arrived::Excluded { by } => losses.push((second, rank, by)),
                    message => panic!("{message:?}"),
                }
            }
        }
    }
    losses
}

#[test]
fn ranks_that_only_beat_are_not_lost() {
    let mut wires = watched(3);
    assert_eq!(drive(&mut wires, 1..1000, |_, _| false), []);
}

#[test]
fn a_rank_that_is_cut_off_is_lost_to_all_and_all_to_it() {
    let mut wires = watched(3);
    assert_eq!(drive(&mut wires, 1..100, |_, _| false), []);
    wires[0].faults().cut(1);
    let losses = drive(&mut wires, 100..200, |_, _| false);
    let mut pairs: Vec<_> = losses.iter().map(|&(_, rank, lost)| (rank, lost)).collect();
    pairs.sort_unstable();
    assert_eq!(pairs, [(0, 1), (1, 0), (1, 2), (2, 1)]);
    for (second, ..) in losses {
        assert!((140..=151).contains(&second), "{second}");
    }
}

#[test]
fn a_run_that_was_suspended_goes_on() {
    let mut wires = watched(3);
    let asleep = |_, second| (100..1000).contains(&second);
    assert_eq!(drive(&mut wires, 1..1200, asleep), []);
}

#[test]
fn a_rank_that_sleeps_too_long_learns_that_it_was_lost() {
    let mut wires = watched(3);
    let losses = drive(&mut wires, 1..300, |rank, second| {
        rank == 1 && (100..200).contains(&second)
    });
    let (others, mut own): (Vec<_>, Vec<_>) =
        losses.into_iter().partition(|&(_, rank, _)| rank != 1);
    assert_eq!(others.len(), 2, "{others:?}");
    own.sort_unstable();
    assert_eq!(own, [(200, 1, 0), (200, 1, 2)]);
}

#[test]
fn a_rank_that_naps_is_not_lost() {
    let mut wires = watched(3);
    let asleep = |rank, second| rank == 1 && second % 100 > 65;
    assert_eq!(drive(&mut wires, 1..1000, asleep), []);
}

/// A transport that writes down how it was closed.
struct Recording(Local, Sender<bool>);

impl Transport for Recording {
    fn rank(&self) -> usize {
        self.0.rank()
    }

    fn size(&self) -> usize {
        self.0.size()
    }

    fn host_name(&self) -> &str {
        self.0.host_name()
    }

    fn send(&mut self, to: usize, channel: Channel, bytes: Vec<u8>) -> Result<(), WireError> {
        self.0.send(to, channel, bytes)
    }

    fn poll(&mut self) -> Result<Option<Event>, WireError> {
        self.0.poll()
    }

    fn unsent(&self) -> usize {
        self.0.unsent()
    }

    fn lose(&mut self, rank: usize) {
        self.0.lose(rank);
    }

    fn close(&mut self, complete: bool) -> Result<(), WireError> {
        self.1.send(complete).unwrap();
        self.0.close(complete)
    }
}

/// Three ranks end. The last one is driven by this function. Returns how the others were
/// closed.
fn end(last: impl FnOnce(Local)) -> [bool; 2] {
    let mut ranks = Local::ranks(3, None);
    let driven = ranks.pop().unwrap();
    let (sender, closed) = unbounded();
    thread::scope(|scope| {
        for local in ranks {
            let recording = Recording(local, sender.clone());
            let link = Link::of_one_clock(recording, Instant::now(), None);
            scope.spawn(|| Box::new(link).finish().unwrap());
        }
        last(driven);
    });
    [closed.recv().unwrap(), closed.recv().unwrap()]
}

fn send_to_both(local: &mut Local, message: &Control) {
    for to in 0..2 {
        local.send(to, Channel::Control, message.encode()).unwrap();
    }
}

#[test]
fn an_end_that_all_agree_to_is_complete() {
    let closed = end(|local| {
        let link = Link::of_one_clock(local, Instant::now(), None);
        Box::new(link).finish().unwrap();
    });
    assert_eq!(closed, [true; 2]);
}

#[test]
fn a_rank_that_dies_after_its_end_makes_it_incomplete() {
    let closed = end(|mut local| {
        send_to_both(&mut local, &Control::Done { messages: 0 });
    });
    assert_eq!(closed, [false; 2]);
}

#[test]
fn a_rank_that_has_lost_another_makes_the_end_incomplete() {
    let closed = end(|mut local| {
        send_to_both(&mut local, &Control::Done { messages: 0 });
        send_to_both(&mut local, &Control::Leave { complete: false });
        local.close(false).unwrap();
    });
    assert_eq!(closed, [false; 2]);
}

#[test]
fn an_end_waits_for_messages_that_control_messages_have_overtaken() {
    let closed = end(|mut local| {
        send_to_both(&mut local, &Control::Done { messages: 1 });
        send_to_both(&mut local, &Control::Leave { complete: true });
        for to in 0..2 {
            local.send(to, Channel::Data, vec![1]).unwrap();
        }
        local.close(true).unwrap();
    });
    assert_eq!(closed, [true; 2]);
}

/// A rank and the transport of the other one.
fn two(own: usize) -> (Link<Local>, Local) {
    let mut ranks = Local::ranks(2, None);
    let driven = ranks.remove(1 - own);
    let link = Link::of_one_clock(ranks.remove(0), Instant::now(), None);
    (link, driven)
}

fn say(local: &mut Local, message: &Control) {
    let to = 1 - local.rank();
    local.send(to, Channel::Control, message.encode()).unwrap();
}

/// The other one has informed its user that there is no result, whatever it had said before.
#[test]
fn rank_0_does_not_end_alone_when_another_one_has_taken_it_for_lost() {
    for done in [false, true] {
        let (mut link, mut other) = two(0);
        if done {
            say(&mut other, &Control::Done { messages: 0 });
        }
        say(&mut other, &Control::Excluded);
        assert_eq!(link.settle(), Err(WireError::Excluded { rank: 0, by: 1 }));
    }
}

#[test]
fn what_rank_0_has_written_counts_whoever_is_lost_meanwhile() {
    let (mut link, mut other) = two(0);
    say(&mut other, &Control::Done { messages: 0 });
    link.settle().unwrap();
    say(&mut other, &Control::Leave { complete: true });
    say(&mut other, &Control::Excluded);
    Box::new(link).finish().unwrap();
}

#[test]
fn a_rank_waits_until_rank_0_has_written() {
    let (link, mut first) = two(1);
    say(&mut first, &Control::Done { messages: 0 });
    // Rank 0 dies before it leaves.
    drop(first);
    let ended = Box::new(link).finish();
    assert_eq!(ended, Err(WireError::LostAtEnd { rank: 0 }));
}

#[test]
fn a_rank_that_rank_0_ended_without_has_no_part_in_the_result() {
    let (link, mut first) = two(1);
    say(&mut first, &Control::Done { messages: 0 });
    say(&mut first, &Control::Excluded);
    let ended = Box::new(link).finish();
    assert_eq!(ended, Err(WireError::Excluded { rank: 1, by: 0 }));
}

#[test]
fn a_rank_that_is_late_at_the_end_is_waited_for_longer() {
    let pulse = Pulse {
        period: 250_000_000,
        silence: 2_000_000_000,
    };
    let mut heartbeat = Heartbeat::new(0, 2, pulse, 0);
    heartbeat.be_patient();
    let mut polls = (1..100).map(|poll| poll * pulse.period);
    let lost = polls.find(|now| !heartbeat.due(*now, true).lost.is_empty());
    assert_eq!(lost, Some(7_000_000_000 + pulse.period));
}

proptest! {
    #[test]
    fn the_error_is_at_most_half_the_shortest_round_trip(
        offset in -1_000_000_000i64..1_000_000_000,
        trips in prop::collection::vec((0u64..100_000, 0u64..100_000), 1..20),
    ) {
        let mut comparison = Comparison::default();
        let mut now = 5_000_000_000;
        for &(there, back) in &trips {
            let answer = (now + there).checked_add_signed(-offset).unwrap();
            comparison.exchanged(now, answer, now + there + back);
            now += there + back + 1;
        }
        let shortest = trips.iter().map(|(there, back)| there + back).min().unwrap();
        prop_assert!((comparison.offset() - offset).unsigned_abs() <= shortest / 2 + 1);
    }
}

#[test]
fn what_is_encoded_is_decoded() {
    let all = [
        Control::Beat,
        Control::Done { messages: 300 },
        Control::Leave { complete: true },
        Control::Leave { complete: false },
        Control::Excluded,
        Control::Ping,
        Control::Pong { time: u64::MAX - 7 },
        Control::Offsets(Vec::new()),
        Control::Offsets(vec![0, i64::MIN, 3]),
    ];
    for message in all {
        assert_eq!(Control::decode(&message.encode()), Some(message));
    }
}

#[test]
fn other_bytes_are_refused() {
    let mut cut = Control::Pong { time: 1 }.encode();
    cut.pop();
    for bytes in [&[][..], &[99], &[BEAT, 0], &[PONG], &cut] {
        assert_eq!(Control::decode(bytes), None, "{bytes:?}");
    }
}

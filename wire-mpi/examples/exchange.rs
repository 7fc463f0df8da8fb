//! Messages between the ranks of an MPI run: `mpirun -n 3 exchange TASK WIRE`. Without
//! WIRE, the library is looked for where it is installed.
//!
//! * `exchange`: each rank sends random messages to all and checks what it receives.
//! * `busy`: the same, while the last rank does something else at first.
//! * `speed`: the latency of small messages and the bandwidth of large ones.
//! * `flow`: the bandwidth of large messages one after the other, in one direction and in both,
//!   by ranks that poll without a pause, rest, or do something else between two polls; beside
//!   it what one thread and two copy.
//! * `lose`: the last rank is killed; the others hear of it and go on without it.

use std::collections::VecDeque;
use std::error::Error;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::thread;
use std::time::{Duration, Instant};
use std::{env, process};

use pdawl_core::cluster::wire::environment::Launched;
use pdawl_core::cluster::wire::heartbeat::Pulse;
use pdawl_core::cluster::wire::{Arrived, PluginWire, Wire, WireError, join, memory};

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> ExitCode {
    // As in pdawl, the wire belongs to a thread that is not the main one.
    let ended = thread::scope(|scope| scope.spawn(|| run().map_err(|e| e.to_string())).join());
    match ended {
        Ok(Ok(())) => return ExitCode::SUCCESS,
        Ok(Err(error)) => eprintln!("{error}"),
        Err(_) => eprintln!("the thread has panicked"),
    }
    ExitCode::FAILURE
}

fn run() -> Outcome {
    let mut arguments = env::args().skip(1);
    let task = arguments
        .next()
        .ok_or("exchange, busy, speed, flow or lose")?;
    let file = arguments.next().map(PathBuf::from);
    let joined = match join(file.as_deref(), Pulse::default()) {
        // All ranks have this error, and one says it.
        Err(WireError::Absent(_)) if Launched::detect().is_some_and(|own| own.rank > 0) => {
            process::exit(1)
        }
        joined => joined?,
    };
    let mut wire = joined.ok_or("this process is alone; start it with mpirun")?;
    let all: Vec<usize> = (0..wire.size()).collect();
    match task.as_str() {
        "exchange" => exchange(&mut wire, &all, VecDeque::new())?,
        "busy" => {
            if wire.rank() + 1 == wire.size() {
                // Longer than the silence after which a rank is lost.
                thread::sleep(Duration::from_nanos(Pulse::default().silence) * 3 / 2);
            }
            exchange(&mut wire, &all, VecDeque::new())?;
        }
        "speed" => speed(&mut wire)?,
        "flow" => flow(&mut wire)?,
        "lose" => lose(&mut wire)?,
        other => return Err(format!("there is no task {other}").into()),
    }
    Ok(Box::new(wire).finish()?)
}

/// The messages from one rank to another, which both can make.
fn messages(from: usize, to: usize) -> VecDeque<Vec<u8>> {
    let mut random = fastrand::Rng::with_seed((from * 1000 + to) as u64);
    let message = |_| {
        let most = match random.u16(..) {
            0..100 => 3_000_000,
            100..2000 => 100_000,
            _ => 500,
        };
        let mut bytes = vec![0; random.usize(0..=most)];
        random.fill(&mut bytes);
        bytes
    };
    (0..3000).map(message).collect()
}

/// The next message, however long it takes.
fn receive(wire: &mut PluginWire) -> Result<(usize, Vec<u8>), Box<dyn Error>> {
    loop {
        match wire.poll()? {
            Some(Arrived::Message { from, bytes }) => return Ok((from, bytes)),
            Some(Arrived::Lost { rank, why }) => {
                return Err(format!("rank {rank} was lost: {why}").into());
            }
            Some(Arrived::Excluded { by }) => {
                return Err(format!("rank {by} takes this one for lost").into());
            }
            None => thread::yield_now(),
        }
    }
}

/// `early` has arrived before.
fn exchange(wire: &mut PluginWire, ranks: &[usize], mut early: VecDeque<Arrived>) -> Outcome {
    let rank = wire.rank();
    let mut expected: Vec<_> = (0..wire.size()).map(|from| messages(from, rank)).collect();
    let mut outgoing: Vec<_> = ranks.iter().map(|&to| (to, messages(rank, to))).collect();
    let mut missing = expected[rank].len() * ranks.len();
    let mut bytes = 0;
    let begin = Instant::now();
    while missing > 0 || outgoing.iter().any(|(_, queue)| !queue.is_empty()) {
        for (to, queue) in &mut outgoing {
            if let Some(message) = queue.pop_front() {
                wire.send(*to, message)?;
            }
        }
        let arrived = match early.pop_front() {
            None => wire.poll()?,
            early => early,
        };
        match arrived {
            Some(Arrived::Message { from, bytes: got }) => {
                bytes += got.len();
                missing -= 1;
                if expected[from].pop_front() != Some(got) {
                    return Err(format!("rank {rank}: a wrong message of rank {from}").into());
                }
            }
            Some(lost) => return Err(format!("rank {rank}: {lost:?}").into()),
            None => thread::yield_now(),
        }
    }
    wire.flush(Duration::from_secs(60))?;
    println!(
        "rank {rank} on {}: all of {} MB in order, {:.2} s; its clock is {} ns behind",
        wire.host_name(),
        bytes / 1_000_000,
        begin.elapsed().as_secs_f64(),
        wire.clock_offset(rank)
    );
    Ok(())
}

/// Ranks 0 and 1 send messages of one size to and fro.
fn speed(wire: &mut PluginWire) -> Outcome {
    let rank = wire.rank();
    for (size, rounds) in [(0, 10_000), (1000, 10_000), (100_000, 1000), (64 << 20, 10)] {
        if rank > 1 {
            continue;
        }
        let mut bytes = vec![1; size];
        let begin = Instant::now();
        for _ in 0..rounds {
            if rank == 0 {
                wire.send(1, bytes)?;
                bytes = receive(wire)?.1;
            } else {
                bytes = receive(wire)?.1;
                wire.send(0, bytes)?;
                bytes = Vec::new();
            }
        }
        if rank == 0 {
            let one_way = begin.elapsed().as_secs_f64() / f64::from(rounds) / 2.0;
            println!(
                "{size:>9} bytes: {:>9.2} us, {:>6.2} GB/s",
                one_way * 1e6,
                size as f64 / one_way / 1e9
            );
        }
    }
    Ok(())
}

/// Bytes of a large message, and how many are sent.
const LARGE: usize = 64 << 20;
const COUNT: usize = 32;

/// Ranks 0 and 1 send large messages, as fast as they leave.
fn flow(wire: &mut PluginWire) -> Outcome {
    let rank = wire.rank();
    if rank > 1 {
        return Ok(());
    }
    if rank == 0 {
        for threads in [1, 2] {
            println!("copied by {threads} threads: {:>6.2} GB/s", copied(threads));
        }
    }
    for manner in [Manner::Polls, Manner::Rests, Manner::Works] {
        for both in [false, true] {
            let sends = if rank == 0 || both { COUNT } else { 0 };
            let receives = if rank == 1 || both { COUNT } else { 0 };
            // All begin together.
            wire.send(1 - rank, Vec::new())?;
            receive(wire)?;
            let begin = Instant::now();
            let (mut sent, mut taken, mut received) = (0, 0, 0);
            while taken < sends || received < receives {
                // One is on its way while the next one is made.
                while sent < sends && sent - taken < 2 {
                    let mut bytes = memory::room(LARGE).ok_or("no memory")?;
                    bytes[sent] = 1;
                    wire.send(1 - rank, bytes)?;
                    sent += 1;
                }
                match polled(wire, manner)? {
                    Some((_, answer)) if answer.is_empty() => taken += 1,
                    Some((from, bytes)) => {
                        received += 1;
                        memory::keep(bytes);
                        wire.send(from, Vec::new())?;
                    }
                    None => {}
                }
            }
            let seconds = begin.elapsed().as_secs_f64();
            if rank == 0 {
                let directions = if both {
                    "both directions"
                } else {
                    "one direction"
                };
                let rate = (COUNT * LARGE) as f64 / seconds / 1e9;
                println!("{directions}, {}: {rate:>6.2} GB/s each", manner.words());
            }
        }
    }
    Ok(())
}

/// What a rank does while it waits.
#[derive(Clone, Copy)]
enum Manner {
    Polls,
    Rests,
    /// It polls each millisecond.
    Works,
}

impl Manner {
    fn words(self) -> &'static str {
        match self {
            Self::Polls => "polled without a pause",
            Self::Rests => "resting",
            Self::Works => "polled each millisecond",
        }
    }
}

/// A message, and the rank that has sent it.
type Received = (usize, Vec<u8>);

fn polled(wire: &mut PluginWire, manner: Manner) -> Result<Option<Received>, Box<dyn Error>> {
    match manner {
        Manner::Polls => thread::yield_now(),
        Manner::Rests => wire.rest(Duration::from_micros(20))?,
        Manner::Works => thread::sleep(Duration::from_millis(1)),
    }
    match wire.poll()? {
        Some(Arrived::Message { from, bytes }) => Ok(Some((from, bytes))),
        Some(other) => Err(format!("{other:?}").into()),
        None => Ok(None),
    }
}

/// What so many threads copy, in GB/s: as much as a large message, from memory and to memory
/// that are there.
fn copied(threads: usize) -> f64 {
    let (from, mut to) = (vec![1u8; LARGE], vec![2u8; LARGE]);
    let rounds = 8;
    let begin = Instant::now();
    for _ in 0..rounds {
        let part = LARGE / threads;
        thread::scope(|scope| {
            for (from, to) in from.chunks(part).zip(to.chunks_mut(part)) {
                scope.spawn(|| to.copy_from_slice(from));
            }
        });
    }
    (rounds * LARGE) as f64 / begin.elapsed().as_secs_f64() / 1e9
}

/// The last rank is killed while a large message to it is under way.
fn lose(wire: &mut PluginWire) -> Outcome {
    let (rank, last) = (wire.rank(), wire.size() - 1);
    if rank == last {
        let own = process::id().to_string();
        Command::new("kill").args(["-9", &own]).status()?;
    }
    let begin = Instant::now();
    let mut early = VecDeque::new();
    loop {
        wire.send(last, vec![0; 1000])?;
        match wire.poll()? {
            Some(Arrived::Lost { rank: lost, why }) if lost == last => {
                let after = begin.elapsed();
                println!("rank {rank} heard of the loss after {after:.1?}: {why}");
                break;
            }
            // Its sender has heard of the loss before.
            Some(message @ Arrived::Message { .. }) => early.push_back(message),
            Some(other) => return Err(format!("rank {rank}: {other:?}").into()),
            None => thread::sleep(Duration::from_millis(1)),
        }
    }
    exchange(wire, &(0..last).collect::<Vec<_>>(), early)
}

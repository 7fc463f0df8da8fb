//! A wire that moves whatever its user does.
//!
//! MPI moves messages only while it is called, and a driver that copies results, compiles
//! kernels or waits for a device calls nothing meanwhile: its messages would stand still, and
//! the other ranks would take it for lost. A thread of its own has the link and its transport
//! (the [`Attendant`]). It gets orders over a channel and gives what arrives over another one, so
//! neither waits for a call of the transport of the other, which may copy megabytes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Builder, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded, unbounded};

use super::{Arrived, Link, Transport, Wire, WireError};

/// A wire with a thread that attends to it.
pub struct Attended<T> {
    /// The thread ends when the orders do.
    orders: Option<Sender<Order<T>>>,
    thread: Option<JoinHandle<Link<T>>>,
    arrivals: Receiver<Result<Arrived, WireError>>,
    /// What was taken from there and not polled.
    taken: VecDeque<Result<Arrived, WireError>>,
    /// Whether the user waits for an arrival.
    waits: Arc<AtomicBool>,
    rank: usize,
    size: usize,
    host_name: String,
    epoch: Instant,
    offsets: Vec<i64>,
}

impl<T: Transport + 'static> Attended<T> {
    /// Attends to a link.
    ///
    /// # Errors
    /// When the system starts no thread.
    pub fn new(link: Link<T>) -> Result<Self, WireError> {
        let (rank, size, epoch) = (link.rank(), link.size(), link.epoch());
        let host_name = link.host_name().to_owned();
        let offsets = (0..size).map(|rank| link.clock_offset(rank)).collect();
        let (orders, ordered) = unbounded();
        let (arrived, arrivals) = unbounded();
        let waits = Arc::new(AtomicBool::new(false));
        let attendant = Attendant::new(link, ordered, arrived, Arc::clone(&waits));
        let builder = Builder::new().name("pdawl wire".to_owned());
        let thread = builder.spawn(|| attendant.run());
        let thread = thread.map_err(|error| WireError::NoThread {
            why: error.to_string(),
        })?;
        Ok(Self {
            orders: Some(orders),
            thread: Some(thread),
            arrivals,
            taken: VecDeque::new(),
            waits,
            rank,
            size,
            host_name,
            epoch,
            offsets,
        })
    }

    /// Sets the flag when the run ends before it has begun: a rank is lost, or another one
    /// has sent something to this one, which is not rank 0. So a rank that opens its files and
    /// devices for long can give up. Without a flag, nothing is set any longer.
    ///
    /// # Errors
    /// When the wire has ended.
    pub fn watch(&mut self, alarm: Option<&'static AtomicBool>) -> Result<(), WireError> {
        self.have_done(move |link| {
            link.set_alarm(alarm);
            Ok(())
        })
    }

    /// Has the thread do something with the link, and waits until it is done.
    fn have_done(
        &self,
        work: impl FnOnce(&mut Link<T>) -> Result<(), WireError> + Send + 'static,
    ) -> Result<(), WireError> {
        let (done, is_done) = bounded(1);
        self.order(Order::Do(Box::new(move |link| {
            // Whoever has ordered it waits for it.
            let _ = done.send(work(link));
        })))?;
        is_done.recv().unwrap_or_else(|_| Err(self.ended()))
    }

    fn order(&self, order: Order<T>) -> Result<(), WireError> {
        let orders = self.orders.as_ref().ok_or_else(|| self.ended())?;
        orders.send(order).map_err(|_| self.ended())
    }

    fn ended(&self) -> WireError {
        WireError::Ended { rank: self.rank }
    }

    /// Drops all that nobody has polled.
    ///
    /// # Errors
    /// What went wrong meanwhile.
    fn drop_unread(&mut self) -> Result<(), WireError> {
        let mut unread = self.taken.drain(..).chain(self.arrivals.try_iter());
        unread.try_for_each(|arrived| arrived.map(drop))
    }
}

impl<T> Attended<T> {
    /// Ends the thread, when it has done all orders. The link, unless the thread has panicked.
    fn dismiss(&mut self) -> Option<Link<T>> {
        self.orders = None;
        // A panic there has been printed.
        self.thread.take()?.join().ok()
    }
}

impl<T: Transport + 'static> Wire for Attended<T> {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn host_name(&self) -> &str {
        &self.host_name
    }

    fn send(&mut self, to: usize, bytes: Vec<u8>) -> Result<(), WireError> {
        let size = self.size;
        match to < size {
            true => self.order(Order::Send { to, bytes }),
            false => Err(WireError::NoRank { rank: to, size }),
        }
    }

    fn poll(&mut self) -> Result<Option<Arrived>, WireError> {
        if let Some(taken) = self.taken.pop_front() {
            return taken.map(Some);
        }
        match self.arrivals.try_recv() {
            Ok(arrived) => arrived.map(Some),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(self.ended()),
        }
    }

    fn rest(&mut self, at_most: Duration) -> Result<(), WireError> {
        if self.taken.is_empty() {
            self.waits.store(true, Ordering::Relaxed);
            let arrived = self.arrivals.recv_timeout(at_most);
            self.waits.store(false, Ordering::Relaxed);
            self.taken.extend(arrived);
        }
        Ok(())
    }

    fn flush(&mut self, timeout: Duration) -> Result<(), WireError> {
        self.have_done(move |link| link.flush(timeout))
    }

    fn epoch(&self) -> Instant {
        self.epoch
    }

    fn clock_offset(&self, rank: usize) -> i64 {
        self.offsets[rank]
    }

    fn settle(&mut self) -> Result<(), WireError> {
        self.have_done(Link::settle)?;
        self.drop_unread()
    }

    /// The transport ends in the thread that calls this: MPI wants to end where it began.
    fn finish(mut self: Box<Self>) -> Result<(), WireError> {
        let link = self.dismiss().ok_or_else(|| self.ended())?;
        self.drop_unread()?;
        Box::new(link).finish()
    }
}

impl<T> Drop for Attended<T> {
    fn drop(&mut self) {
        self.dismiss();
    }
}

// The thread that has the link: it does what the user orders, has the transport move, and
// hands over what arrives.

/// Something to be done with the link.
type Work<T> = Box<dyn FnOnce(&mut Link<T>) + Send>;

/// What the user wants to be done.
enum Order<T> {
    Send { to: usize, bytes: Vec<u8> },
    Do(Work<T>),
}

/// What the thread has.
struct Attendant<T> {
    link: Link<T>,
    orders: Receiver<Order<T>>,
    arrivals: Sender<Result<Arrived, WireError>>,
    waits: Arc<AtomicBool>,
    /// The link has failed, and the user knows. Only orders are done from then on: the
    /// user's last words, and the end.
    failed: bool,
}

impl<T: Transport> Attendant<T> {
    pub fn new(
        link: Link<T>,
        orders: Receiver<Order<T>>,
        arrivals: Sender<Result<Arrived, WireError>>,
        waits: Arc<AtomicBool>,
    ) -> Self {
        Self {
            link,
            orders,
            arrivals,
            waits,
            failed: false,
        }
    }

    /// Attends until nobody can order anything any longer.
    pub fn run(mut self) -> Link<T> {
        let mut pauses = Pauses::new(Instant::now());
        let mut next = None;
        loop {
            let mut happened = false;
            loop {
                let order = next.take().map_or_else(|| self.orders.try_recv(), Ok);
                match order {
                    Ok(order) => self.obey(order),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return self.link,
                }
                happened = true;
            }
            happened |= self.look();
            let state = State {
                happened,
                moves: !self.failed && self.link.is_moving(),
                waits: self.waits.load(Ordering::Relaxed),
            };
            match pauses.next(state, Instant::now()) {
                None => thread::yield_now(),
                // An order ends the pause; that there are no more is seen above.
                Some(pause) => next = self.orders.recv_timeout(pause).ok(),
            }
        }
    }

    fn obey(&mut self, order: Order<T>) {
        match order {
            Order::Send { to, bytes } => {
                let sent = self.link.send(to, bytes);
                self.note(sent);
            }
            Order::Do(work) => work(&mut self.link),
        }
    }

    /// Takes at most one event from the transport, and hands over what has arrived. Whether
    /// anything has.
    fn look(&mut self) -> bool {
        let moved = match self.failed {
            true => Ok(false),
            false => self.link.look(),
        };
        let moved = moved.unwrap_or_else(|error| {
            self.note(Err(error));
            true
        });
        while let Some(arrived) = self.link.take_arrived() {
            // A user that ends reads nothing any longer.
            let _ = self.arrivals.send(Ok(arrived));
        }
        moved
    }

    fn note(&mut self, done: Result<(), WireError>) {
        if let Err(error) = done {
            self.failed = true;
            let _ = self.arrivals.send(Err(error));
        }
    }
}

/// How long the thread looks without a pause after something has happened. An answer over a
/// fast network comes within this time.
const AWAKE: Duration = Duration::from_micros(100);

/// How long it does while the user waits for an arrival, and so computes nothing.
const PATIENT: Duration = Duration::from_millis(20);

/// The shortest pause. It leaves its core to others.
const SHORTEST: Duration = Duration::from_micros(20);

/// The longest pause. MPI wakes nobody, so an arrival after a long silence comes later by
/// this.
const LONGEST: Duration = Duration::from_micros(800);

/// Pauses get longer with the time in which nothing has happened, and are this part of it:
/// what is waited for comes later by no more.
const PART: u32 = 64;

/// What the thread finds.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// There was an order, or something has arrived.
    pub happened: bool,
    /// A message has left or arrived in part, and moves only while the transport is called.
    pub moves: bool,
    /// The user waits for an arrival.
    pub waits: bool,
}

/// The pauses of a thread.
struct Pauses {
    /// Since when nothing has happened.
    quiet_since: Instant,
}

impl Pauses {
    pub fn new(now: Instant) -> Self {
        Self { quiet_since: now }
    }

    /// The next pause, if there is one.
    pub fn next(&mut self, state: State, now: Instant) -> Option<Duration> {
        if state.happened || state.moves {
            self.quiet_since = now;
        }
        let quiet = now.saturating_duration_since(self.quiet_since);
        let awake = if state.waits { PATIENT } else { AWAKE };
        (quiet >= awake).then(|| (quiet / PART).clamp(SHORTEST, LONGEST))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;
    use std::thread;

    use super::super::heartbeat::Pulse;
    use super::super::local::Local;
    use super::super::{Channel, Event};
    use super::*;
    use crate::cluster::wire::link::Control;

    const PULSE: Pulse = Pulse {
        period: 1_000_000,
        // Nobody is lost in this test.
        silence: u64::MAX,
    };

    fn pair() -> (Local, Attended<Local>) {
        let mut ranks = Local::ranks(2, None).into_iter();
        let (Some(first), Some(second)) = (ranks.next(), ranks.next()) else {
            panic!("two ranks");
        };
        let link = Link::of_one_clock(second, Instant::now(), Some(PULSE));
        (first, Attended::new(link).unwrap())
    }

    fn next_arrival<T: Transport + 'static>(wire: &mut Attended<T>) -> Result<Arrived, WireError> {
        loop {
            if let Some(arrived) = wire.poll()? {
                return Ok(arrived);
            }
            thread::yield_now();
        }
    }

    fn next(transport: &mut Local) -> Event {
        loop {
            if let Some(event) = transport.poll().unwrap() {
                return event;
            }
            thread::yield_now();
        }
    }

    #[test]
    fn beats_are_sent_and_messages_kept_while_nobody_polls() {
        let (mut other, mut wire) = pair();
        other.send(1, Channel::Data, vec![1]).unwrap();
        other
            .send(1, Channel::Control, Control::Ping.encode())
            .unwrap();
        // The answer comes although nobody polls, and beats come before and after it.
        let mut kinds = Vec::new();
        while kinds.len() < 3 || !kinds.contains(&"answer") {
            let Event::Message { bytes, .. } = next(&mut other) else {
                panic!("no message");
            };
            kinds.push(match Control::decode(&bytes) {
                Some(Control::Beat) => "beat",
                Some(Control::Pong { .. }) => "answer",
                other => panic!("{other:?}"),
            });
        }
        let message = Arrived::Message {
            from: 0,
            bytes: vec![1],
        };
        assert_eq!(next_arrival(&mut wire), Ok(message));
    }

    /// A rank that prepares its part, and what the other one does meanwhile.
    fn is_raised(alarm: &'static AtomicBool, meanwhile: impl FnOnce(Local)) {
        let (other, mut wire) = pair();
        wire.watch(Some(alarm)).unwrap();
        assert!(!alarm.load(Ordering::Relaxed));
        meanwhile(other);
        while !alarm.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        // What raised it is reported afterwards.
        wire.watch(None).unwrap();
        assert!(next_arrival(&mut wire).is_ok());
    }

    #[test]
    fn a_rank_that_prepares_its_part_notices_that_the_run_ends() {
        static LOST: AtomicBool = AtomicBool::new(false);
        is_raised(&LOST, drop);
        static TOLD: AtomicBool = AtomicBool::new(false);
        is_raised(&TOLD, |mut other| {
            other.send(1, Channel::Data, vec![1]).unwrap();
            std::mem::forget(other);
        });
        static EXCLUDED: AtomicBool = AtomicBool::new(false);
        is_raised(&EXCLUDED, |mut other| {
            let message = Control::Excluded.encode();
            other.send(1, Channel::Control, message).unwrap();
            std::mem::forget(other);
        });
    }

    #[test]
    fn what_goes_wrong_meanwhile_is_reported_once_and_last_words_are_sent() {
        let (mut other, mut wire) = pair();
        other.send(1, Channel::Control, vec![255]).unwrap();
        let arrived = next_arrival(&mut wire);
        assert_eq!(arrived, Err(WireError::Unknown { from: 0 }));
        assert_eq!(wire.poll(), Ok(None));
        wire.send(0, vec![7]).unwrap();
        wire.flush(Duration::from_secs(60)).unwrap();
        loop {
            let Event::Message { channel, bytes, .. } = next(&mut other) else {
                panic!("no message");
            };
            if channel == Channel::Data {
                break assert_eq!(bytes, [7]);
            }
        }
    }

    /// A transport that moves a byte of a message with each poll, as MPI moves a piece.
    struct Slow {
        local: Local,
        /// Messages that leave, and how many polls that still takes.
        leaving: VecDeque<(usize, usize, Channel, Vec<u8>)>,
    }

    impl Transport for Slow {
        fn rank(&self) -> usize {
            self.local.rank()
        }

        fn size(&self) -> usize {
            self.local.size()
        }

        fn host_name(&self) -> &str {
            self.local.host_name()
        }

        fn send(&mut self, to: usize, channel: Channel, bytes: Vec<u8>) -> Result<(), WireError> {
            self.leaving.push_back((bytes.len(), to, channel, bytes));
            Ok(())
        }

        fn poll(&mut self) -> Result<Option<Event>, WireError> {
            if let Some((left, ..)) = self.leaving.front_mut() {
                *left = left.saturating_sub(1);
            }
            if let Some((_, to, channel, bytes)) =
                self.leaving.pop_front_if(|(left, ..)| *left == 0)
            {
                self.local.send(to, channel, bytes)?;
            }
            self.local.poll()
        }

        fn unsent(&self) -> usize {
            self.leaving.len()
        }

        fn lose(&mut self, rank: usize) {
            self.local.lose(rank);
        }

        fn close(&mut self, complete: bool) -> Result<(), WireError> {
            self.local.close(complete)
        }
    }

    #[test]
    fn a_message_leaves_while_its_sender_does_something_else() {
        let mut ranks = Local::ranks(2, None).into_iter();
        let (Some(mut first), Some(second)) = (ranks.next(), ranks.next()) else {
            panic!("two ranks");
        };
        let slow = Slow {
            local: second,
            leaving: VecDeque::new(),
        };
        let link = Link::of_one_clock(slow, Instant::now(), None);
        let mut wire = Attended::new(link).unwrap();
        wire.send(0, vec![3; 1000]).unwrap();
        // The sender calls nothing; it waits for the receiver.
        let Event::Message { bytes, .. } = next(&mut first) else {
            panic!("no message");
        };
        assert_eq!(bytes, [3; 1000]);
        first.send(1, Channel::Data, vec![4]).unwrap();
        assert!(next_arrival(&mut wire).is_ok());
    }

    #[test]
    fn an_arrival_ends_a_rest() {
        const DAYS: Duration = Duration::from_secs(1 << 20);
        let (mut other, mut wire) = pair();
        for byte in 0..20 {
            other.send(1, Channel::Data, vec![byte]).unwrap();
            wire.rest(DAYS).unwrap();
            let bytes = vec![byte];
            assert_eq!(wire.poll(), Ok(Some(Arrived::Message { from: 0, bytes })));
        }
    }

    #[test]
    fn what_was_not_polled_is_dropped_at_the_end() {
        let mut ranks = Local::ranks(2, None).into_iter().map(|local| {
            Box::new(Attended::new(Link::of_one_clock(local, Instant::now(), None)).unwrap())
        });
        let (Some(mut first), Some(mut second)) = (ranks.next(), ranks.next()) else {
            panic!("two ranks");
        };
        first.send(1, vec![1]).unwrap();
        second.rest(Duration::from_secs(60)).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| first.settle().unwrap());
            second.settle().unwrap();
        });
        assert_eq!(second.poll(), Ok(None));
        thread::scope(|scope| {
            scope.spawn(|| first.finish().unwrap());
            second.finish().unwrap();
        });
    }

    const QUIET: State = State {
        happened: false,
        moves: false,
        waits: false,
    };

    /// The pauses after something has happened, until so much time is over.
    fn pauses(state: State, end: Duration) -> Vec<Duration> {
        let begin = Instant::now();
        let mut pauses = Pauses::new(begin);
        let (mut now, mut all) = (begin, Vec::new());
        while now < begin + end {
            let pause = pauses.next(state, now);
            all.extend(pause);
            now += pause.unwrap_or(Duration::from_micros(1));
        }
        all
    }

    #[test]
    fn there_is_no_pause_while_a_message_moves() {
        let moves = State {
            moves: true,
            ..QUIET
        };
        assert_eq!(pauses(moves, Duration::from_millis(50)), []);
    }

    #[test]
    fn what_comes_after_a_silence_is_late_by_a_small_part_of_it() {
        let all = pauses(QUIET, Duration::from_secs(10));
        assert_eq!(all[0], SHORTEST);
        let mut quiet = AWAKE;
        for pause in &all {
            assert!(
                *pause <= (quiet / PART).max(SHORTEST),
                "{pause:?} after {quiet:?}"
            );
            quiet += *pause;
        }
        // A thread that polls 1250 times a second burns no core.
        assert_eq!(all.last(), Some(&LONGEST));
        assert!(all.len() < 13_000, "{}", all.len());
    }

    #[test]
    fn a_user_that_waits_is_answered_without_a_pause_at_first() {
        let waits = State {
            waits: true,
            ..QUIET
        };
        assert_eq!(pauses(waits, PATIENT), []);
        assert!(!pauses(waits, PATIENT * 2).is_empty());
    }
}

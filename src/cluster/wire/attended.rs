//! A wire that lives on while its user does something long.
//!
//! A driver that compiles kernels or checks a result polls nothing for seconds, and the
//! other ranks would take it for lost. A second thread attends to the wire then: it keeps
//! what arrives and sends beats. Only one thread uses the transport at a time.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam_channel::{RecvTimeoutError, Sender, bounded};

use super::heartbeat::Pulse;
use super::{Arrived, Link, Transport, Wire, WireError};

/// A wire with a thread that attends to it.
pub struct Attended<T> {
    shared: Arc<Mutex<Shared<T>>>,
    /// The thread and its end. Nothing is ever sent to it.
    attendant: Option<(Sender<()>, JoinHandle<()>)>,
    rank: usize,
    size: usize,
    host_name: String,
    epoch: Instant,
    offsets: Vec<i64>,
}

struct Shared<T> {
    /// Nothing when the wire has ended.
    link: Option<Link<T>>,
    /// What went wrong while the thread attended.
    error: Option<WireError>,
}

impl<T: Transport + 'static> Attended<T> {
    /// Attends to a link whose ranks have this pulse.
    pub fn new(link: Link<T>, pulse: Pulse) -> Result<Self, WireError> {
        let (rank, size, epoch) = (link.rank(), link.size(), link.epoch());
        let host_name = link.host_name().to_owned();
        let offsets = (0..size).map(|rank| link.clock_offset(rank)).collect();
        let shared = Arc::new(Mutex::new(Shared {
            link: Some(link),
            error: None,
        }));
        // Twice in a period, so that no rank waits longer than one and a half for a beat.
        let interval = Duration::from_nanos(pulse.period / 2);
        let (stop, stopped) = bounded(0);
        let attended = shared.clone();
        let attendant = Builder::new().name("pdawl wire".to_owned()).spawn(move || {
            while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                lock(&attended).attend();
            }
        });
        let attendant = attendant.map_err(|error| WireError::NoThread {
            why: error.to_string(),
        })?;
        Ok(Self {
            shared,
            attendant: Some((stop, attendant)),
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
    /// When the wire has failed meanwhile.
    pub fn watch(&mut self, alarm: Option<&'static AtomicBool>) -> Result<(), WireError> {
        self.with(|link| {
            link.set_alarm(alarm);
            Ok(())
        })
    }

    fn with<R>(
        &self,
        work: impl FnOnce(&mut Link<T>) -> Result<R, WireError>,
    ) -> Result<R, WireError> {
        let mut shared = lock(&self.shared);
        match (shared.error.take(), &mut shared.link) {
            (Some(error), _) => Err(error),
            (None, Some(link)) => work(link),
            (None, None) => Err(WireError::Ended { rank: self.rank }),
        }
    }
}

impl<T> Attended<T> {
    /// Ends the thread.
    fn dismiss(&mut self) {
        if let Some((stop, attendant)) = self.attendant.take() {
            drop(stop);
            // A panic there has been printed, and the next call of the wire meets its cause.
            let _ = attendant.join();
        }
    }
}

fn lock<T>(shared: &Mutex<Shared<T>>) -> MutexGuard<'_, Shared<T>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T: Transport> Shared<T> {
    fn attend(&mut self) {
        if let (Some(link), None) = (&mut self.link, &self.error) {
            self.error = link.attend().err();
        }
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
        self.with(|link| link.send(to, bytes))
    }

    fn poll(&mut self) -> Result<Option<Arrived>, WireError> {
        self.with(Link::poll)
    }

    fn rest(&mut self, at_most: Duration) -> Result<(), WireError> {
        self.with(|link| link.rest(at_most))
    }

    fn is_sending(&self) -> bool {
        lock(&self.shared)
            .link
            .as_ref()
            .is_some_and(Wire::is_sending)
    }

    fn flush(&mut self, timeout: Duration) -> Result<(), WireError> {
        self.with(|link| link.flush(timeout))
    }

    fn epoch(&self) -> Instant {
        self.epoch
    }

    fn clock_offset(&self, rank: usize) -> i64 {
        self.offsets[rank]
    }

    fn settle(&mut self) -> Result<(), WireError> {
        self.with(Link::settle)
    }

    fn finish(mut self: Box<Self>) -> Result<(), WireError> {
        self.dismiss();
        let mut shared = lock(&self.shared);
        match (shared.error.take(), shared.link.take()) {
            (Some(error), _) => Err(error),
            (None, Some(link)) => Box::new(link).finish(),
            (None, None) => Ok(()),
        }
    }
}

impl<T> Drop for Attended<T> {
    fn drop(&mut self) {
        self.dismiss();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;
    use std::thread;

    use super::super::control::Control;
    use super::super::local::Local;
    use super::super::{Channel, Event};
    use super::*;

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
        (first, Attended::new(link, PULSE).unwrap())
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
        assert_eq!(wire.poll(), Ok(Some(message)));
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
        // What raised it is told afterwards.
        wire.watch(None).unwrap();
        assert!(wire.poll().unwrap().is_some());
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
    fn what_goes_wrong_meanwhile_is_told_at_the_next_call() {
        let (mut other, mut wire) = pair();
        other.send(1, Channel::Control, vec![255]).unwrap();
        while lock(&wire.shared).error.is_none() {
            thread::yield_now();
        }
        assert_eq!(wire.poll(), Err(WireError::Unknown { from: 0 }));
    }
}

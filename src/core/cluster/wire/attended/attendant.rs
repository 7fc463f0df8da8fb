//! The thread that has the link: it does what the user orders, has the transport move, and
//! hands over what arrives.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, TryRecvError};

use super::super::{Arrived, Link, Transport, Wire, WireError};
use super::pauses::{Pauses, State};

/// Something to be done with the link.
type Work<T> = Box<dyn FnOnce(&mut Link<T>) + Send>;

/// What the user wants to be done.
pub(super) enum Order<T> {
    Send { to: usize, bytes: Vec<u8> },
    Do(Work<T>),
}

/// What the thread has.
pub(super) struct Attendant<T> {
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

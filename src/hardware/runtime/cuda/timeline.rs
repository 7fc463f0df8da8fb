//! Events' times on one clock of their device.
//!
//! CUDA only tells the milliseconds between two events, as an `f32`. Over a second that is
//! exact to 60 ns, over an hour to 0.25 ms. So the event from which times are counted is
//! renewed.

use std::sync::Arc;

use super::error::Failure;
use super::handle::Event;

/// After so many nanoseconds later times are counted from a later event.
const RENEWAL: f64 = 0.5e9;

/// The time of the first event, so that events shortly before it have times, too.
const BEGIN: f64 = 1e9;

/// A device's clock.
pub(super) struct Timeline {
    /// An event that has ended, and its time.
    from: (Arc<Event>, f64),
}

impl Timeline {
    /// Counts from this event, which has ended.
    pub(super) fn new(first: Arc<Event>) -> Self {
        Self {
            from: (first, BEGIN),
        }
    }

    /// An ended event's nanoseconds.
    pub(super) fn stamp(&mut self, event: &Arc<Event>) -> Result<u64, Failure> {
        let (from, time) = &self.from;
        let since = event.since(from)?;
        let at = time + since;
        if since > RENEWAL {
            self.from = (Arc::clone(event), at);
        }
        Ok(at.max(0.0) as u64)
    }
}

//! What is enqueued for a component, kept from run to run: its command queues
//! follow from its copies alone, and these are mostly the same.

use std::cell::RefCell;

use super::heard::heard;
use crate::graph::{CommandQueues, Components, DatumId, Place, Planned, TaskGraph, Transfers};

/// A component's command queues, with what follows from them.
pub(super) struct Score {
    pub queues: CommandQueues,
    /// By command, in the order of [`CommandQueues::order`]: what it waits for,
    /// and whether its end is heard of.
    pub waits: Vec<Vec<Place>>,
    pub heard: Vec<bool>,
    /// Whether there are no copies, on a device with memory of its own.
    pub launches_only: bool,
    /// Queues of a device that it is spread over.
    width: usize,
    /// What was asked of the copies, and what the answers were.
    asked: Vec<(Question, bool)>,
}

/// A question to [`Transfers`].
#[derive(Clone, Copy)]
enum Question {
    Write(DatumId),
    Read(DatumId),
}

/// Notes down what is asked.
struct Asked<'a> {
    transfers: &'a dyn Transfers,
    asked: RefCell<Vec<(Question, bool)>>,
}

impl Transfers for Asked<'_> {
    fn write(&self, datum: DatumId) -> bool {
        let answer = self.transfers.write(datum);
        self.asked
            .borrow_mut()
            .push((Question::Write(datum), answer));
        answer
    }

    fn read(&self, datum: DatumId) -> bool {
        let answer = self.transfers.read(datum);
        self.asked
            .borrow_mut()
            .push((Question::Read(datum), answer));
        answer
    }
}

impl Score {
    /// The score of a component.
    pub fn new(
        graph: &TaskGraph,
        components: &Components,
        component: usize,
        width: usize,
        ranks: &[f64],
        shares: bool,
        transfers: &dyn Transfers,
    ) -> Self {
        let asking = Asked {
            transfers,
            asked: RefCell::default(),
        };
        let queues = CommandQueues::new(graph, components, component, width, ranks, &asking);
        let waits = queues.waits();
        let launch = |command: &Planned| matches!(command, Planned::NdRange(_));
        Self {
            launches_only: !shares && queues.queues.iter().flatten().all(launch),
            heard: heard(graph, components, &queues, &waits),
            waits,
            queues,
            width,
            asked: asking.asked.into_inner(),
        }
    }

    /// A score of these queues alone.
    #[cfg(test)]
    pub fn of(queues: CommandQueues) -> Self {
        Self {
            queues,
            waits: Vec::new(),
            heard: Vec::new(),
            launches_only: true,
            width: 1,
            asked: Vec::new(),
        }
    }

    /// Whether it is the score for these copies, too: the same questions would be
    /// asked, as long as the answers are the same.
    pub fn fits(&self, width: usize, transfers: &dyn Transfers) -> bool {
        let same = |(question, answer): &(Question, bool)| match question {
            Question::Write(datum) => transfers.write(*datum) == *answer,
            Question::Read(datum) => transfers.read(*datum) == *answer,
        };
        self.width == width && self.asked.iter().all(same)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::KernelId;
    use crate::graph::testbed::figure_6;

    /// Whether this datum, and no other, is written.
    struct Only(Option<DatumId>);

    impl Transfers for Only {
        fn write(&self, datum: DatumId) -> bool {
            self.0 == Some(datum)
        }

        fn read(&self, _datum: DatumId) -> bool {
            false
        }
    }

    #[test]
    fn a_score_fits_the_copies_it_was_made_for() {
        let graph = figure_6();
        let parts = [0..1, 1..6, 6..7].map(|range| range.map(KernelId).collect());
        let components = Components::new(&graph, &parts).unwrap();
        let of = |only: &Only| Score::new(&graph, &components, 1, 2, &[], false, only);
        // b5, the fourth datum, comes from the host.
        let (plain, copying) = (Only(None), Only(Some(DatumId(3))));
        let (score, other) = (of(&plain), of(&copying));
        assert!(score.fits(2, &plain) && !score.fits(3, &plain));
        assert!(!score.fits(2, &copying));
        assert!(other.fits(2, &copying) && !other.fits(2, &plain));
        assert!(score.launches_only && !other.launches_only);
        // What the component neither reads nor makes is none of its concern.
        assert!(score.fits(2, &Only(Some(DatumId(graph.data().len())))));
    }
}

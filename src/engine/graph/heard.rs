//! Of which of a component's commands the host hears the end.
//!
//! E_Q says what waits for what; what it costs to be waited for is another
//! matter. In a queue commands are in order, so the end of one tells of all
//! before it, and most kernels need no event of their own. This is the one place
//! that decides which do.

use crate::graph::{CommandQueues, Components, Place, Planned, TaskGraph};

/// By command, in the order of [`CommandQueues::order`]: whether its end is heard
/// of. That is every copy; and a kernel that another queue waits for, that
/// another component waits for, or that is the last in its queue.
pub(super) fn heard(
    graph: &TaskGraph,
    components: &Components,
    made: &CommandQueues,
    waits: &[Vec<Place>],
) -> Vec<bool> {
    let waited = |place: &Place| waits.iter().flatten().any(|before| before == place);
    let heard = |place: &Place| match made.at(*place) {
        Planned::Write(..) | Planned::Read(..) => true,
        Planned::NdRange(kernel) => {
            let own = components.of(kernel);
            let mut after = graph.successors(kernel).iter();
            place.position + 1 == made.queues[place.queue].len()
                || after.any(|next| components.of(*next) != own)
                || waited(place)
        }
    };
    made.order.iter().map(heard).collect()
}

//! What of a simulated cluster was busy for the greatest part of a run.

use super::node::Node;
use super::{Busiest, Resource};
use crate::runtime::sim::bandwidth_sharing::{self, Fluid};
use crate::time::Nanos;

/// The busiest of all devices, links and drivers of a run that took so many seconds; none
/// if it took no time. Of equally busy ones it is the first.
pub(super) fn busiest(
    nodes: &[Node],
    fluid: &Fluid,
    switch: Option<bandwidth_sharing::Resource>,
    seconds: f64,
) -> Option<Busiest> {
    let all = nodes.iter().enumerate().flat_map(|(rank, node)| {
        let shares_link = node.out == node.into;
        of_node(rank as u32, node).chain([
            (Resource::LinkOut(rank as u32), fluid.seconds(node.out)),
            (
                Resource::LinkIn(rank as u32),
                if shares_link {
                    0.0
                } else {
                    fluid.seconds(node.into)
                },
            ),
        ])
    });
    let switch = switch.map(|switch| (Resource::Switch, fluid.seconds(switch)));
    most(all.chain(switch)).map(|(resource, busy)| Busiest {
        resource,
        // A kernel whose result is not wanted any more may end after the run.
        share: (busy / seconds).min(1.0),
    })
}

/// The first of those with the greatest value above 0.
fn most(all: impl Iterator<Item = (Resource, f64)>) -> Option<(Resource, f64)> {
    let busy = all.filter(|(_, seconds)| *seconds > 0.0);
    busy.reduce(|most, other| if other.1 > most.1 { other } else { most })
}

/// The devices and the driver of a node, with the seconds in which each was busy.
fn of_node(rank: u32, node: &Node) -> impl Iterator<Item = (Resource, f64)> {
    let seconds = |ns: u64| ns as f64 * 1e-9;
    let devices = node.devices.iter().flat_map(move |device| {
        let name = || device.info.name.clone();
        let [copies_in, copies_out] = device.copying;
        [
            (Resource::Device(rank, name()), seconds(device.busy)),
            (
                Resource::DeviceLink(rank, name()),
                seconds(copies_in.max(copies_out)),
            ),
        ]
    });
    let handling = node.handling.iter().copied().fold(0, Nanos::max);
    devices.chain([(Resource::Driver(rank), seconds(handling))])
}

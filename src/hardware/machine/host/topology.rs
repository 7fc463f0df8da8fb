//! The positions of logical cores in sockets and physical cores, and which cores to
//! take when not all are wanted.

use std::fmt;
use std::str::FromStr;

use super::{cpu, parse};

/// Where the workers of a pool go when it has fewer than the machine has cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Placement {
    /// Close together: all hardware threads of a core, then the socket's other
    /// cores, then the next socket.
    Compact,
    /// Far apart: sockets in turn, and second hardware threads last.
    Spread,
}

impl Placement {
    pub const ALL: [Self; 2] = [Self::Compact, Self::Spread];
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Compact => "compact",
            Self::Spread => "spread",
        })
    }
}

impl FromStr for Placement {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let named = |placement: &Self| placement.to_string() == text;
        Self::ALL.into_iter().find(named).ok_or(())
    }
}

/// A logical core and its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreLocation {
    /// Its number, as the system counts.
    pub core: usize,
    /// The socket's number.
    pub socket: usize,
    /// The least number of the logical cores on the same physical core.
    pub physical: usize,
}

/// The locations of some logical cores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    locations: Vec<CoreLocation>,
}

impl Topology {
    pub fn new(locations: Vec<CoreLocation>) -> Self {
        Self { locations }
    }

    /// Reads the kernel's files. A core without any counts as a physical core in
    /// socket 0.
    pub fn detect(cores: &[usize]) -> Self {
        let location = |core: &usize| {
            let number = |text: Option<String>| text?.trim().parse().ok();
            let siblings = cpu(*core, "topology/thread_siblings_list");
            CoreLocation {
                core: *core,
                socket: number(cpu(*core, "topology/physical_package_id")).unwrap_or(0),
                physical: siblings
                    .and_then(|list| parse::list(&list)?.into_iter().min())
                    .unwrap_or(*core),
            }
        };
        Self::new(cores.iter().map(location).collect())
    }

    /// The topology of a described machine: `cores` physical cores, numbered socket by
    /// socket.
    pub fn described(sockets: u32, cores: u32) -> Self {
        let each = cores.div_ceil(sockets.max(1)).max(1) as usize;
        let location = |core| CoreLocation {
            core,
            socket: core / each,
            physical: core,
        };
        Self::new((0..cores as usize).map(location).collect())
    }

    /// Whether placements differ: several sockets, or several hardware threads
    /// on a core.
    pub fn is_uneven(&self) -> bool {
        let first = self.locations.first();
        self.locations.iter().any(|location| {
            first.is_some_and(|f| f.socket != location.socket) || location.core != location.physical
        })
    }

    /// Logical cores.
    pub fn cores(&self) -> usize {
        self.locations.len()
    }

    /// The logical cores' numbers.
    pub fn numbers(&self) -> Vec<usize> {
        self.locations
            .iter()
            .map(|location| location.core)
            .collect()
    }

    /// Takes `count` of `free`, or all of them; `None` takes the first. They
    /// come back with neighbours next to each other.
    pub fn take(&self, count: usize, placement: Option<Placement>, free: &[usize]) -> Vec<usize> {
        let Some(placement) = placement else {
            return free.iter().copied().take(count).collect();
        };
        let mut locations: Vec<CoreLocation> =
            free.iter().map(|core| self.location(*core)).collect();
        locations.sort_by_key(|location| (location.socket, location.physical, location.core));
        let mut taken = match placement {
            Placement::Compact => locations,
            Placement::Spread => spread(&locations),
        };
        taken.truncate(count);
        taken.sort_by_key(|location| (location.socket, location.physical, location.core));
        taken.iter().map(|location| location.core).collect()
    }

    /// The number of sockets of these cores.
    pub fn sockets_of(&self, cores: &[usize]) -> usize {
        let mut sockets: Vec<usize> = cores
            .iter()
            .map(|core| self.location(*core).socket)
            .collect();
        sockets.sort_unstable();
        sockets.dedup();
        sockets.len()
    }

    fn location(&self, core: usize) -> CoreLocation {
        let known = self.locations.iter().find(|location| location.core == core);
        known.copied().unwrap_or(CoreLocation {
            core,
            socket: 0,
            physical: core,
        })
    }
}

/// Sorted locations in the order in which they are farthest apart: by the hardware
/// thread's rank on its core, by the core's rank in its socket, by socket.
fn spread(sorted: &[CoreLocation]) -> Vec<CoreLocation> {
    let rank = |location: &CoreLocation| {
        let before = sorted.iter().take_while(|other| *other != location);
        let mut cores: Vec<usize> = (before.clone())
            .filter(|other| other.socket == location.socket && other.physical != location.physical)
            .map(|other| other.physical)
            .collect();
        cores.dedup();
        let thread = before.filter(|other| other.physical == location.physical);
        (thread.count(), cores.len(), location.socket)
    };
    let mut order = sorted.to_vec();
    order.sort_by_cached_key(rank);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two sockets of four cores with two hardware threads each, numbered as
    /// Linux does: first threads of both sockets, then second threads.
    fn two_sockets() -> Topology {
        let location = |core: usize| CoreLocation {
            core,
            socket: core % 8 / 4,
            physical: core % 8,
        };
        Topology::new((0..16).map(location).collect())
    }

    #[test]
    fn compact_fills_cores_and_then_sockets() {
        let topology = two_sockets();
        let take = |n| topology.take(n, Some(Placement::Compact), &topology.numbers());
        assert_eq!(take(1), [0]);
        assert_eq!(take(2), [0, 8]);
        assert_eq!(take(3), [0, 8, 1]);
        assert_eq!(take(9), [0, 8, 1, 9, 2, 10, 3, 11, 4]);
        assert_eq!(topology.sockets_of(&take(8)), 1);
        assert_eq!(topology.sockets_of(&take(9)), 2);
    }

    #[test]
    fn spread_uses_every_socket_and_core_before_second_threads() {
        let topology = two_sockets();
        let take = |n| topology.take(n, Some(Placement::Spread), &topology.numbers());
        assert_eq!(take(2), [0, 4]);
        assert_eq!(take(3), [0, 1, 4]);
        assert_eq!(take(8), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(take(9), [0, 8, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(take(99).len(), 16);
        for n in 2..=16 {
            assert_eq!(topology.sockets_of(&take(n)), 2);
        }
    }

    #[test]
    fn only_free_cores_are_taken() {
        let topology = two_sockets();
        let free = [2, 3, 6, 10, 14];
        let take = |n, placement| topology.take(n, placement, &free);
        assert_eq!(take(3, Some(Placement::Compact)), [2, 10, 3]);
        assert_eq!(take(3, Some(Placement::Spread)), [2, 3, 6]);
        assert_eq!(take(3, None), [2, 3, 6]);
        assert_eq!(take(2, None), [2, 3]);
    }

    #[test]
    fn where_all_cores_are_alike_placements_agree() {
        let topology = Topology::described(1, 8);
        assert!(!topology.is_uneven());
        for n in 1..=8 {
            let take = |placement| topology.take(n, Some(placement), &topology.numbers());
            assert_eq!(take(Placement::Compact), take(Placement::Spread));
        }
        assert!(two_sockets().is_uneven());
        assert!(Topology::described(2, 8).is_uneven());
        let described = Topology::described(2, 9);
        assert_eq!(described.take(6, None, &described.numbers()).len(), 6);
        assert_eq!(described.sockets_of(&[0, 4]), 1);
        assert_eq!(described.sockets_of(&[0, 5]), 2);
    }

    #[test]
    fn this_machine_has_its_cores() {
        let cores = super::super::allowed_cores(None);
        let topology = Topology::detect(&cores);
        assert_eq!(topology.cores(), cores.len());
        let mut taken = topology.take(cores.len(), Some(Placement::Spread), &cores);
        taken.sort_unstable();
        assert_eq!(taken, cores);
    }

    #[test]
    fn placements_have_names() {
        for placement in Placement::ALL {
            assert_eq!(placement.to_string().parse(), Ok(placement));
        }
        assert_eq!("wide".parse::<Placement>(), Err(()));
    }
}

//! What a simulated node's devices have of the spaces in memory of their own: what subtasks
//! have read there, and results that no other device and no other node has needed yet.

use std::collections::HashMap;

use crate::cluster::space::{Block, Directory, Part, SpaceId, Spaces};

/// The place in the run of the task that wrote elements; 0 of those with first contents.
type Version = u64;

/// Which task has written the elements of spaces last.
#[derive(Default)]
pub struct Versions {
    spaces: HashMap<SpaceId, Directory<Version>>,
}

impl Versions {
    /// A task has written a part.
    pub fn wrote(&mut self, part: &Part, version: Version) {
        let space = self.spaces.entry(part.space).or_default();
        space.set(&part.block, version);
    }

    /// How many elements of a block have not been written after a version.
    fn current(&self, space: SpaceId, block: &Block, version: Version) -> u64 {
        let written = self.spaces.get(&space).map(|space| space.holders(block));
        let later = written
            .into_iter()
            .flatten()
            .filter(|(_, of)| *of > version);
        let later: u64 = later.map(|(piece, _)| piece.elements()).sum();
        block.elements() - later
    }
}

/// A device's own memory.
struct Own {
    capacity: u64,
    bytes: u64,
    spaces: HashMap<SpaceId, Directory<Version>>,
}

/// Where a node's result is.
#[derive(Clone, Copy)]
struct Made {
    /// The device that alone has it; none if host memory has it.
    only: Option<usize>,
    version: Version,
}

/// Bytes that are copied before something can be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copies {
    /// From devices to host memory: a device, and bytes.
    pub back: Vec<(usize, u64)>,
    /// To the device that reads them.
    pub write: u64,
}

impl Copies {
    fn back(&mut self, device: usize, bytes: u64) {
        match self.back.iter_mut().find(|(of, _)| *of == device) {
            Some((_, all)) => *all += bytes,
            None => self.back.push((device, bytes)),
        }
    }
}

/// What the devices of a node have. A device whose memory is full forgets all; a real one makes
/// room block by block.
pub struct Resident {
    /// By device; none for one that computes in host memory.
    devices: Vec<Option<Own>>,
    results: HashMap<SpaceId, Directory<Made>>,
}

impl Resident {
    /// Devices with so many bytes of own memory, if they have any, in which nothing is.
    pub fn new(capacities: impl IntoIterator<Item = Option<u64>>) -> Self {
        let own = |capacity| Own {
            capacity,
            bytes: 0,
            spaces: HashMap::new(),
        };
        let devices = capacities.into_iter();
        Self {
            devices: devices.map(|capacity| capacity.map(own)).collect(),
            results: HashMap::new(),
        }
    }

    /// All is forgotten.
    pub fn clear(&mut self) {
        *self = Self::new(self.devices.iter().map(|own| Some(own.as_ref()?.capacity)));
    }

    /// Whether anything can be elsewhere than in host memory.
    fn is_apart(&self) -> bool {
        self.devices.iter().any(Option::is_some)
    }

    /// Bytes that a device lacks of parts.
    pub fn lacks(
        &self,
        device: usize,
        parts: &[Part],
        (versions, spaces): (&Versions, &Spaces),
    ) -> u64 {
        let Some(own) = &self.devices[device] else {
            let mut all = 0;
            for part in parts {
                self.only_on_devices(part, versions, |_, elements, _| {
                    all += elements * spaces.extent(part.space).element;
                });
            }
            return all;
        };
        let lacks = |part: &Part| own.lacks(part, versions) * spaces.extent(part.space).element;
        parts.iter().map(lacks).sum()
    }

    /// A device reads parts, as the tasks until `now` have left them.
    pub fn read(
        &mut self,
        device: usize,
        parts: &[Part],
        now: Version,
        known: (&Versions, &Spaces),
    ) -> Copies {
        let mut copies = Copies::default();
        if !self.is_apart() {
            return copies;
        }
        let (versions, spaces) = known;
        self.make_room(device, parts, known, &mut copies);
        for part in parts {
            let lacks = match &self.devices[device] {
                Some(own) => own.lacks(part, versions),
                None => part.block.elements(),
            };
            if lacks > 0 {
                self.bring_to_host(part, Some(device), known, &mut copies);
            }
            if let Some(own) = &mut self.devices[device] {
                copies.write += lacks * spaces.extent(part.space).element;
                own.has(part, now, spaces);
            }
        }
        copies
    }

    /// A device has written parts in a task.
    pub fn wrote(&mut self, device: usize, parts: &[Part], version: Version, spaces: &Spaces) {
        if !self.is_apart() {
            return;
        }
        for part in parts {
            let own = self.devices[device].as_mut();
            let only = own.is_some().then_some(device);
            if let Some(own) = own {
                own.has(part, version, spaces);
            }
            let results = self.results.entry(part.space).or_default();
            results.set(&part.block, Made { only, version });
        }
    }

    /// Host memory gets parts that only devices have.
    pub fn leave(&mut self, parts: &[Part], known: (&Versions, &Spaces)) -> Copies {
        let mut copies = Copies::default();
        if self.is_apart() {
            for part in parts {
                self.bring_to_host(part, None, known, &mut copies);
            }
        }
        copies
    }

    /// Calls `each` with a device, a number of elements and a block of what only devices have
    /// of a part.
    fn only_on_devices(
        &self,
        part: &Part,
        versions: &Versions,
        mut each: impl FnMut(usize, u64, (Block, Version)),
    ) {
        let Some(results) = self.results.get(&part.space) else {
            return;
        };
        for (piece, result) in results.holders(&part.block) {
            let Some(device) = result.only else {
                continue;
            };
            let elements = versions.current(part.space, &piece, result.version);
            if elements > 0 {
                each(device, elements, (piece, result.version));
            }
        }
    }

    /// Host memory gets what only other devices than `but` have of a part.
    fn bring_to_host(
        &mut self,
        part: &Part,
        but: Option<usize>,
        (versions, spaces): (&Versions, &Spaces),
        copies: &mut Copies,
    ) {
        let element = spaces.extent(part.space).element;
        let mut copied = Vec::new();
        self.only_on_devices(part, versions, |device, elements, piece| {
            if Some(device) != but {
                copies.back(device, elements * element);
                copied.push(piece);
            }
        });
        let results = self.results.entry(part.space).or_default();
        for (piece, version) in copied {
            let only = None;
            results.set(&piece, Made { only, version });
        }
    }

    /// A device forgets all, if it has no room for parts. Its results go to host memory.
    fn make_room(
        &mut self,
        device: usize,
        parts: &[Part],
        (versions, spaces): (&Versions, &Spaces),
        copies: &mut Copies,
    ) {
        let Some(own) = &mut self.devices[device] else {
            return;
        };
        let new = |part: &Part| own.new_elements(part) * spaces.extent(part.space).element;
        let wanted: u64 = parts.iter().map(new).sum();
        if own.bytes + wanted <= own.capacity || own.bytes == 0 {
            return;
        }
        own.bytes = 0;
        own.spaces.clear();
        let all: Vec<SpaceId> = self.results.keys().copied().collect();
        for space in all {
            let block = spaces.extent(space).whole();
            let element = spaces.extent(space).element;
            let part = Part { space, block };
            let mut copied = Vec::new();
            self.only_on_devices(&part, versions, |of, elements, piece| {
                if of == device {
                    copies.back(device, elements * element);
                    copied.push(piece);
                }
            });
            let results = self.results.entry(space).or_default();
            for (piece, version) in copied {
                let only = None;
                results.set(&piece, Made { only, version });
            }
        }
    }
}

impl Own {
    /// Elements of a part that are not here, or not as they are now.
    fn lacks(&self, part: &Part, versions: &Versions) -> u64 {
        let held = self.spaces.get(&part.space);
        let held = held.into_iter().flat_map(|of| of.holders(&part.block));
        let current = held.map(|(piece, version)| versions.current(part.space, &piece, version));
        part.block.elements() - current.sum::<u64>()
    }

    /// Elements of a part that have no place here.
    fn new_elements(&self, part: &Part) -> u64 {
        let held = self.spaces.get(&part.space);
        let held = held.into_iter().flat_map(|of| of.holders(&part.block));
        part.block.elements() - held.map(|(piece, _)| piece.elements()).sum::<u64>()
    }

    /// A part is here.
    fn has(&mut self, part: &Part, version: Version, spaces: &Spaces) {
        self.bytes += self.new_elements(part) * spaces.extent(part.space).element;
        let space = self.spaces.entry(part.space).or_default();
        space.set(&part.block, version);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::space::Extent;

    /// A space of 100 elements of 8 bytes in a row.
    fn space() -> (Spaces, SpaceId) {
        let mut spaces = Spaces::default();
        let extent = Extent {
            rows: 1,
            columns: 100,
            element: 8,
        };
        let space = spaces.add(extent, []);
        (spaces, space)
    }

    fn copies(back: &[(usize, u64)], write: u64) -> Copies {
        Copies {
            back: back.to_vec(),
            write,
        }
    }

    /// A host, and two devices with memory.
    #[test]
    fn what_is_there_is_not_copied_again() {
        let (spaces, space) = space();
        let part = |begin, end| {
            let block = Block::new(0..1, begin..end);
            [Part { space, block }]
        };
        let mut versions = Versions::default();
        let mut node = Resident::new([None, Some(1 << 20), Some(1 << 20)]);
        let known = (&versions, &spaces);
        assert_eq!(node.read(0, &part(0, 100), 0, known), copies(&[], 0));
        assert_eq!(node.lacks(1, &part(0, 10), known), 80);
        assert_eq!(node.read(1, &part(0, 10), 0, known), copies(&[], 80));
        assert_eq!(node.read(1, &part(5, 15), 0, known), copies(&[], 40));
        assert_eq!(node.lacks(1, &part(0, 15), known), 0);
        // The first task writes elements on both devices, and they stay there.
        node.wrote(1, &part(0, 10), 1, &spaces);
        node.wrote(2, &part(10, 20), 1, &spaces);
        for part in [part(0, 10), part(10, 20)] {
            versions.wrote(&part[0], 1);
        }
        let known = (&versions, &spaces);
        assert_eq!(node.lacks(0, &part(0, 20), known), 160);
        // A device gets its neighbour's element through host memory, once.
        assert_eq!(node.read(1, &part(0, 11), 1, known), copies(&[(2, 8)], 8));
        assert_eq!(node.read(1, &part(0, 11), 1, known), copies(&[], 0));
        // It has the old ones of the other elements.
        assert_eq!(node.lacks(1, &part(0, 20), known), 72);
        // Another node asks for all: what the host has stays where it is.
        let both = node.leave(&part(0, 20), known);
        assert_eq!(both, copies(&[(1, 80), (2, 72)], 0));
        assert_eq!(node.leave(&part(0, 20), known), Copies::default());
        assert_eq!(node.read(0, &part(0, 20), 1, known), Copies::default());
        // What another node has written since is copied, and what it overwrote is not.
        node.wrote(1, &part(0, 10), 2, &spaces);
        versions.wrote(&part(0, 10)[0], 2);
        versions.wrote(&part(0, 4)[0], 3);
        let known = (&versions, &spaces);
        assert_eq!(node.read(2, &part(0, 10), 3, known), copies(&[(1, 48)], 80));
    }

    #[test]
    fn a_full_memory_forgets_all_and_gives_its_results_back() {
        let (spaces, space) = space();
        let part = |begin, end| {
            let block = Block::new(0..1, begin..end);
            [Part { space, block }]
        };
        let mut versions = Versions::default();
        let mut node = Resident::new([Some(400)]);
        node.wrote(0, &part(0, 10), 1, &spaces);
        versions.wrote(&part(0, 10)[0], 1);
        let known = (&versions, &spaces);
        assert_eq!(node.read(0, &part(10, 50), 1, known), copies(&[], 320));
        assert_eq!(node.lacks(0, &part(0, 50), known), 0);
        let full = node.read(0, &part(60, 65), 1, known);
        assert_eq!(full, copies(&[(0, 80)], 40));
        assert_eq!(node.lacks(0, &part(0, 50), known), 400);
        // More than it has room for is copied all the same.
        assert_eq!(node.read(0, &part(0, 100), 1, known), copies(&[], 800));
        node.clear();
        assert_eq!(node.lacks(0, &part(0, 50), known), 400);
    }
}

//! Max-min fair shares, by progressive filling.
//!
//! A *flow* demands so much of each of some resources at a share of 1, which is the most that
//! it can have. The shares of all flows rise together until a resource is full; its flows keep
//! their share, and the others' go on rising.

/// A fraction by which resources that are full at once may differ, against rounding.
const TIE: f64 = 1e-12;

/// The part of a demand below which what is left of it is summed up anew: differences of
/// large numbers are inexact.
const INEXACT: f64 = 1e-3;

#[derive(Clone, Copy, Debug)]
struct Room {
    /// What no flow has yet.
    free: f64,
    /// The demand at a share of 1 of the flows that still rise, and when it was last summed.
    demand: f64,
    summed: f64,
    /// How many of them there are.
    rising: u32,
    /// Where its flows begin among those of all resources.
    first: u32,
}

impl Room {
    /// The share at which it is full.
    fn level(&self) -> Option<f64> {
        (self.rising > 0 && self.demand > 0.0).then(|| self.free.max(0.0) / self.demand)
    }
}

/// Flows and the resources that they share, whose memory is used again and again.
#[derive(Clone, Debug, Default)]
pub struct Filling {
    rooms: Vec<Room>,
    /// What each flow demands: a resource and an amount, flow after flow.
    demands: Vec<(u32, f64)>,
    /// By flow, the end of its demands.
    ends: Vec<u32>,
    shares: Vec<f64>,
    /// The flows of each resource, resource after resource.
    users: Vec<u32>,
    full: Vec<u32>,
}

/// The share of a flow that still rises.
const RISING: f64 = -1.0;

impl Filling {
    /// Forgets all flows and resources.
    pub fn clear(&mut self) {
        self.rooms.clear();
        self.demands.clear();
        self.ends.clear();
    }

    /// Adds a resource. They are numbered from 0.
    pub fn resource(&mut self, capacity: f64) {
        self.rooms.push(Room {
            free: capacity,
            demand: 0.0,
            summed: 0.0,
            rising: 0,
            first: 0,
        });
    }

    /// Adds a flow, by what it demands of resources at a share of 1.
    pub fn flow(&mut self, demands: impl IntoIterator<Item = (usize, f64)>) {
        for (resource, amount) in demands {
            let room = &mut self.rooms[resource];
            room.demand += amount;
            room.rising += 1;
            self.demands.push((resource as u32, amount));
        }
        self.ends.push(self.demands.len() as u32);
    }

    /// The share of each flow, from 0 to 1, in the order in which they were added.
    pub fn fill(&mut self) -> &[f64] {
        self.list_users();
        self.shares.clear();
        self.shares.resize(self.ends.len(), RISING);
        loop {
            let levels = self.rooms.iter().filter_map(Room::level);
            let level = levels.fold(1.0, f64::min);
            if level >= 1.0 {
                break;
            }
            let rooms = self.rooms.iter().enumerate();
            let is_full = |room: &Room| room.level().is_some_and(|of| of <= level * (1.0 + TIE));
            let full = rooms.filter(|(_, room)| is_full(room));
            self.full.clear();
            self.full.extend(full.map(|(resource, _)| resource as u32));
            for place in 0..self.full.len() {
                self.freeze(self.full[place] as usize, level);
            }
        }
        for share in self.shares.iter_mut().filter(|share| **share == RISING) {
            *share = 1.0;
        }
        &self.shares
    }

    /// The flows of each resource.
    fn list_users(&mut self) {
        let mut first = 0;
        for room in &mut self.rooms {
            room.first = first;
            first += room.rising;
            room.summed = room.demand;
        }
        self.users.clear();
        self.users.resize(first as usize, 0);
        let mut begin = 0;
        for (flow, end) in self.ends.iter().enumerate() {
            for (resource, _) in &self.demands[begin as usize..*end as usize] {
                let room = &mut self.rooms[*resource as usize];
                self.users[room.first as usize] = flow as u32;
                room.first += 1;
            }
            begin = *end;
        }
        for room in &mut self.rooms {
            room.first -= room.rising;
        }
    }

    fn demands_of(&self, flow: u32) -> std::ops::Range<usize> {
        let begin = match flow {
            0 => 0,
            flow => self.ends[flow as usize - 1],
        };
        begin as usize..self.ends[flow as usize] as usize
    }

    /// The flows of a resource get this share.
    fn freeze(&mut self, resource: usize, level: f64) {
        let users = self.users_of(resource);
        for user in users {
            let flow = self.users[user];
            if self.shares[flow as usize] != RISING {
                continue;
            }
            self.shares[flow as usize] = level;
            for demand in self.demands_of(flow) {
                let (of, amount) = self.demands[demand];
                let room = &mut self.rooms[of as usize];
                room.free -= amount * level;
                room.demand -= amount;
                room.rising -= 1;
                if room.rising > 0 && room.demand < INEXACT * room.summed {
                    self.sum(of as usize);
                }
            }
        }
    }

    fn users_of(&self, resource: usize) -> std::ops::Range<usize> {
        let first = self.rooms[resource].first as usize;
        let next = self.rooms.get(resource + 1);
        first..next.map_or(self.users.len(), |room| room.first as usize)
    }

    /// Sums up the demand of the flows of a resource that still rise.
    fn sum(&mut self, resource: usize) {
        let mut sum = 0.0;
        let mut last = None;
        for user in self.users_of(resource) {
            let flow = self.users[user];
            // A flow that demands it twice is here twice.
            if self.shares[flow as usize] == RISING && last != Some(flow) {
                let demands = &self.demands[self.demands_of(flow)];
                let of_it = demands.iter().filter(|(of, _)| *of as usize == resource);
                sum += of_it.map(|(_, amount)| amount).sum::<f64>();
            }
            last = Some(flow);
        }
        let room = &mut self.rooms[resource];
        (room.demand, room.summed) = (sum, sum);
    }
}

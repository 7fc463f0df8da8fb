//! Which devices take part: those with which a step is expected to be fastest, and the fewest of
//! them. A device that takes part costs the others something: results that pass from one to
//! another, and barriers with the host. One that holds all units has neither, and its steps
//! follow one another as fast as they are computed or enqueued. So do those of several devices
//! that hold all units and copy to each other directly.

use super::Dawl;
use super::partition::Partition;
use super::shares::DISTINCT;
use crate::balance::parts::{MARGINAL, fewest, parts};

/// Results that others read in each step are many from this part of all units' data on. Edges
/// of a stencil are fewer, the vector of a product is more.
const MANY: f64 = 0.01;
/// A device may be so many times as fast as a short probe shows.
const ROUGH: f64 = 2.0;

/// The step after which parts are compared again that were expected to take less than this part of
/// what it took.
const SECOND: u32 = 1;
const DISAPPOINTED: f64 = 0.8;

/// Devices that compute in the host's memory share it if they are as fast as this part of it.
const SATURATED: f64 = 0.9;

/// Steps for which no other device is tried beside those that probes have shown to be best.
const ALONE_FOR: u32 = 512;

/// Whether each device works.
pub(super) type Part = Vec<bool>;

/// A part, its plan, and the expected seconds of a step with its share of moves.
struct Estimated {
    part: Part,
    plan: Partition,
    seconds: f64,
}

/// The fewest devices with which a step is nearly as fast as with the best.
fn best_of(mut parts: Vec<Estimated>) -> Option<Estimated> {
    let sizes = parts
        .iter()
        .map(|of| (working(&of.part).count(), of.seconds));
    fewest(sizes).map(|best| parts.swap_remove(best))
}

impl Dawl {
    /// Takes the devices of the best part, before `step`, where all were probed.
    pub(super) fn choose_part(&mut self, step: u32) {
        let is_probed = working(&self.at_work()).all(|d| self.enqueue[d].is_some());
        let estimates = match is_probed {
            true => self.estimates(step, |_| 1.0),
            false => Vec::new(),
        };
        if step == 0 {
            let expected = estimates.iter();
            self.considered = expected
                .map(|of| (working(&of.part).collect(), of.seconds))
                .collect();
        }
        let Some(Estimated { part, .. }) = best_of(estimates) else {
            return;
        };
        let others = (0..part.len()).filter(|d| !part[*d]);
        others.for_each(|d| self.active.leave_out(d));
        let all_hold = self.lone_holder(&part).is_some() || self.all_hold(&part);
        self.alone = all_hold && self.knows_all();
        if self.alone {
            let until = step.saturating_add(ALONE_FOR);
            (0..self.devices.len()).for_each(|device| self.active.rest(device, until));
        }
    }

    /// Whether the second step took so much longer than was expected with another part that all are
    /// to be compared again, by what is known now. It is asked once.
    pub(super) fn is_disappointed(&self, step: u32, seconds: f64) -> bool {
        if step != SECOND || self.guide.is_some() || self.active.trial.is_some() {
            return false;
        }
        let works = self.at_work();
        let others =
            (self.considered.iter()).filter(|(part, _)| !working(&works).eq(part.iter().copied()));
        let least = others.map(|(_, expected)| *expected).reduce(f64::min);
        least.is_some_and(|least| least < DISAPPOINTED * seconds)
    }

    /// Whether a part is best even if the other devices are as fast as rough probes may hide: one
    /// device, or devices that hold all units, since a pool's share needs better probes.
    pub(super) fn has_certain_part(&self) -> bool {
        let best = |faster: &dyn Fn(usize) -> f64| best_of(self.estimates(0, faster));
        let Some(Estimated {
            part, plan: step, ..
        }) = best(&|_| 1.0)
        else {
            return false;
        };
        let faster = |d: usize| match part[d] {
            true => 1.0,
            false => self.rough(d, &part),
        };
        let perhaps = best(&faster);
        let is_best =
            perhaps.is_some_and(|other| step.seconds <= (1.0 + MARGINAL) * other.plan.seconds);
        let holds = |d: usize| self.capacity(d) > 0;
        let has_pool = working(&part).count() > 1 && !working(&part).all(holds);
        is_best && !has_pool && self.is_unstreamed(&step.held, &step.pooled)
    }

    /// A step of the rest of the run with each part of the devices at work, units that move to them
    /// before `step` included, if devices were `faster` than estimated.
    fn estimates(&self, step: u32, faster: impl Fn(usize) -> f64) -> Vec<Estimated> {
        let left = f64::from(self.steps.saturating_sub(step).max(1));
        let at_work = self.at_work();
        let (mut own, others): (Vec<usize>, Vec<usize>) =
            working(&at_work).partition(|d| self.devices[*d].capacity.is_some());
        let memory = self.memory.filter(|_| others.len() > 1);
        own.sort_by(|one, other| self.held_rate(*other).total_cmp(&self.held_rate(*one)));
        let parts = parts(&own, &others, |_, _| false).into_iter().map(|part| {
            let part: Part = (0..at_work.len()).map(|d| part.contains(&d)).collect();
            let unshared = memory.map_or(1.0, |memory| self.unshared(&part, memory));
            let faster = |d: usize| match self.devices[d].capacity {
                Some(_) => faster(d),
                None => unshared * faster(d),
            };
            let mut plan = self.at_rates(&part, &faster)?;
            // Several devices that compute in the host's memory are as fast together as that is.
            let pooled = plan.pooled.iter().sum::<u64>() as f64;
            let least = memory.map_or(0.0, |rate| pooled / rate);
            plan.seconds = plan.seconds.max(least);
            let moving = self.moving(&plan.held) + self.moving_back(&part, pooled);
            let seconds = plan.seconds + moving / left;
            Some(Estimated {
                part,
                plan,
                seconds,
            })
        });
        parts.flatten().collect()
    }

    /// Half of the seconds of moving a pool's units to devices that could hold all, where units are
    /// uneven: what its share was expected to gain may or may not come true.
    fn moving_back(&self, part: &Part, pooled: f64) -> f64 {
        let holders = working(part).filter(|d| self.capacity(*d) > 0);
        let link = holders.map(|d| self.link(d)).fold(0.0, f64::max);
        match !self.even && self.can_hold_all(part) && link > 0.0 {
            true => pooled / link / 2.0,
            false => 0.0,
        }
    }

    /// How many times as fast as in the part at work a device may be in this one that computes in
    /// the host's memory: others that compute there and leave it this part were measured with it, and
    /// all together were as fast as that memory.
    fn unshared(&self, part: &Part, memory: f64) -> f64 {
        let rate = |part: &Part| -> f64 {
            let sharing = working(part).filter(|d| self.devices[*d].capacity.is_none());
            sharing.map(|d| self.pool_rate(d, false)).sum()
        };
        let (all, own) = (rate(&self.at_work()), rate(part));
        match own > 0.0 && all >= SATURATED * memory {
            true => all / own,
            false => 1.0,
        }
    }

    /// How many times as fast as probed a device may be beside a part: a kernel on one of
    /// several devices of a kind, of which each was probed several times, tells more.
    fn rough(&self, device: usize, part: &Part) -> f64 {
        let kind = self.devices[device].kind;
        let is_alike = |d: usize| self.devices[d].kind == kind;
        let spread = |d: usize| self.rates[d].held.uncertainty();
        let widest = working(part).map(spread).fold(0.0, f64::max);
        match working(part).all(is_alike) && self.capacity(device) > 0 {
            true if spread(device) > 0.0 => 1.0 + DISTINCT * widest.hypot(spread(device)),
            _ => ROUGH,
        }
    }

    /// Seconds of a step in which a device computes nothing, in a part of which devices perhaps
    /// hold all units (`holding`): as measured with the present plan or as supposed with all
    /// devices, but with the exchange of results that the part has.
    pub(super) fn overhead_in(&self, part: &Part, device: usize, holding: bool) -> f64 {
        let known = self.rates[device].overhead(holding);
        let reference = self.reference(holding, known.observed().is_some());
        let seconds = known.value().unwrap_or(0.0) - self.exchange(&reference, device);
        (seconds + self.exchange(part, device)).max(0.0)
    }

    /// The part of which an overhead is known: that of the present plan if it was `observed`,
    /// else all devices, or all that hold units.
    pub(super) fn reference(&self, holding: bool, observed: bool) -> Part {
        let works = |d: usize| match (observed, self.plan.held.is_empty()) {
            (true, false) => self.plan.held[d] + self.plan.pooled[d] > 0,
            _ => !holding || self.capacity(d) > 0,
        };
        (0..self.devices.len()).map(works).collect()
    }

    /// Seconds of a step in which a device gets and gives what it and others read of each
    /// other's results: directly among devices that hold all units and can, else through host
    /// memory, after its kernels and before them.
    pub(super) fn exchange(&self, part: &Part, device: usize) -> f64 {
        let holders = working(part).filter(|d| self.capacity(*d) > 0).count();
        let has_pool = working(part).any(|d| self.capacity(d) == 0) || !self.can_hold_all(part);
        let others = (holders + usize::from(has_pool)).saturating_sub(1);
        let latency = self.devices[device].latency;
        // What steps that need a barrier sum goes there and back.
        let summing = match self.runs_ahead {
            true => 0.0,
            false => 2.0 * latency,
        };
        if others == 0 || self.published == 0.0 || self.capacity(device) == 0 {
            return summing;
        }
        // All others' results, or its neighbours' edges.
        let (copies, sent, received) = match self.publishes_many() {
            true => {
                let all = self.published / 0.9;
                let own = all / (others + 1) as f64;
                (others as f64, own, all - own)
            }
            false => {
                let neighbours = others.min(2) as f64;
                let edges = neighbours * self.published;
                (neighbours, edges, edges)
            }
        };
        let latency = copies * latency;
        match self.direct.filter(|_| !has_pool) {
            Some(direct) => summing + latency + received / direct,
            None => {
                let volume = sent + received;
                let bus = self.bus.map_or(0.0, |bus| holders as f64 * volume / bus);
                summing + 2.0 * latency + (volume / self.link(device)).max(bus)
            }
        }
    }

    fn publishes_many(&self) -> bool {
        self.published > MANY * self.units as f64
    }

    /// Whether devices that hold all units may be better without a pool: they copy to each other
    /// directly, or a pool wants many of their results in host memory.
    pub(super) fn may_hold_alone(&self) -> bool {
        self.direct.is_some() || self.publishes_many()
    }

    fn can_hold_all(&self, part: &Part) -> bool {
        let capacity = working(part).map(|d| self.capacity(d));
        capacity.fold(0, u64::saturating_add) >= self.units
    }

    /// Whether these devices are several that hold all units, and may be better without a pool.
    pub(super) fn all_hold(&self, part: &Part) -> bool {
        let holds = |d: usize| self.capacity(d) > 0;
        let several = working(part).count() > 1;
        self.may_hold_alone() && several && working(part).all(holds) && self.can_hold_all(part)
    }

    /// Whether the planned devices hold all units and need no barrier.
    pub(super) fn needs_no_barrier(&self) -> bool {
        let holders = self.plan.held.iter().filter(|held| **held > 0).count();
        let none_waits = holders == 1 || self.direct.is_some();
        self.runs_ahead && none_waits && self.plan.held.iter().sum::<u64>() == self.units
    }

    /// The only device of a part, if it can hold all units and needs no barrier.
    pub(super) fn lone_holder(&self, part: &Part) -> Option<usize> {
        let mut working = working(part);
        let lone = working.next().filter(|_| working.next().is_none());
        lone.filter(|d| self.runs_ahead && self.capacity(*d) >= self.units)
    }

    /// Seconds of enqueueing a step without a barrier: launches, and the copies of two edges
    /// between neighbours, which take about as long. In other steps, enqueueing overlaps or is
    /// part of the overhead.
    pub(super) fn enqueued(&self, partition: &Partition) -> f64 {
        let held = &partition.held;
        let holders: Vec<usize> = (0..held.len()).filter(|d| held[*d] > 0).collect();
        let of = |d: &usize| self.enqueue[*d].unwrap_or(0.0);
        match (holders.as_slice(), self.direct) {
            ([device], _) if held[*device] == self.units => of(device),
            ([_, neighbours @ ..], Some(_)) if held.iter().sum::<u64>() == self.units => {
                let launches: f64 = holders.iter().map(of).sum();
                launches + 2.0 * neighbours.iter().map(of).sum::<f64>()
            }
            _ => 0.0,
        }
    }

    /// Units that a device can hold.
    fn capacity(&self, device: usize) -> u64 {
        self.devices[device].capacity.unwrap_or(0)
    }

    /// The devices that work now.
    pub(super) fn at_work(&self) -> Part {
        let all = 0..self.devices.len();
        all.map(|device| self.active.works(device)).collect()
    }

    /// The same once a device has joined or left them.
    pub(super) fn with_other(&self, device: usize) -> Part {
        let mut part = self.at_work();
        part[device] = !part[device];
        part
    }
}

/// The devices of a part.
fn working(part: &Part) -> impl Iterator<Item = usize> {
    (0..part.len()).filter(|device| part[*device])
}

#[cfg(test)]
mod tests {
    use super::Part;
    use crate::balance::fixtures::{Machine, cpu, gpu, real_cpu, real_gpu, setup};
    use crate::balance::{Balancer, Dawl, DeviceView, Overhead, Probe, ProbeKind, Setup};

    /// A CPU and two GPUs with links of a unit a second and latencies of 2 s.
    fn three() -> Setup {
        let gpu = DeviceView {
            latency: 2.0,
            ..gpu(1000, 1e-6)
        };
        Setup {
            published: 3.0,
            ..setup(1000, vec![cpu(), gpu.clone(), gpu])
        }
    }

    fn part(works: [u8; 3]) -> Part {
        works.iter().map(|works| *works > 0).collect()
    }

    #[test]
    fn neighbours_exchange_edges_through_the_host_or_directly() {
        let exchange = |setup: &Setup, works| Dawl::new(setup).exchange(&part(works), 1);
        let through = three();
        // An edge out and one in, each after its latency; two edges of a device in between.
        assert_eq!(exchange(&through, [0, 1, 1]), 2.0 * 2.0 + 6.0);
        assert_eq!(exchange(&through, [1, 1, 1]), 2.0 * (2.0 * 2.0) + 12.0);
        let slow = Setup {
            bus: Some(0.5),
            ..three()
        };
        assert_eq!(exchange(&slow, [0, 1, 1]), 2.0 * 2.0 + 2.0 * 6.0 / 0.5);
        let direct = Setup {
            direct: Some(6.0),
            ..three()
        };
        assert_eq!(exchange(&direct, [0, 1, 1]), 2.0 + 0.5);
        assert_eq!(exchange(&direct, [1, 1, 0]), 2.0 * 2.0 + 6.0);
    }

    #[test]
    fn a_device_alone_exchanges_only_what_a_barrier_sums() {
        let mut setup = three();
        assert_eq!(Dawl::new(&setup).exchange(&part([0, 1, 0]), 1), 0.0);
        setup.runs_ahead = false;
        assert_eq!(Dawl::new(&setup).exchange(&part([0, 1, 0]), 1), 4.0);
    }

    #[test]
    fn vectors_pass_whole() {
        let setup = Setup {
            published: 90.0,
            direct: Some(10.0),
            ..three()
        };
        // Of 100 units' worth, the half of the other, directly; or own half out and the half in.
        let dawl = Dawl::new(&setup);
        assert!((dawl.exchange(&part([0, 1, 1]), 1) - (2.0 + 5.0)).abs() < 1e-9);
        assert!((dawl.exchange(&part([1, 1, 0]), 1) - (4.0 + 100.0)).abs() < 1e-9);
    }

    #[test]
    fn a_part_that_was_thought_much_faster_than_it_is_is_left() {
        let devices = vec![real_cpu(1.0), real_gpu(1000, 0.5, 5.0)];
        let machine = Machine::new(1000, devices);
        let mut dawl = Dawl::new(&machine.setup());
        for (device, kind, rate) in [(0, ProbeKind::Alone, 1e6), (1, ProbeKind::Held, 80e6)] {
            probe(&mut dawl, (device, kind), rate, 1e-5);
        }
        let mut first = dawl.clone();
        assert_eq!(first.plan(0).held, [0, 1000]);
        let times = machine.run(&mut dawl);
        // On the GPU alone a step takes 2000 us, on the CPU 1000.
        assert!(times[0] > 1900.0, "{times:?}");
        assert!(times[5..].iter().all(|time| *time < 1050.0), "{times:?}");
    }

    #[test]
    fn only_a_disappointing_second_step_opens_the_choice() {
        let mut dawl = Dawl::new(&three()).among(&[1]);
        dawl.considered = vec![(vec![1], 10.0), (vec![0], 12.0)];
        assert!(dawl.is_disappointed(1, 15.1) && !dawl.is_disappointed(1, 14.9));
        assert!(!dawl.is_disappointed(0, 99.0) && !dawl.is_disappointed(2, 99.0));
        dawl.considered.truncate(1);
        assert!(!dawl.is_disappointed(1, 99.0));
    }

    /// Notes a probe of so many units a second, and an overhead.
    fn probe(dawl: &mut Dawl, (device, kind): (usize, ProbeKind), rate: f64, barrier: f64) {
        dawl.overhead(&Overhead {
            device,
            barrier,
            enqueue: 0.0,
        });
        dawl.probed(&Probe {
            device,
            kind,
            units: 100,
            more_launches: 0,
            seconds: 100.0 / rate,
            again: false,
        });
    }

    /// The devices that work in the first step of a run by probes: GPUs of so many units a second,
    /// a slow CPU.
    fn chosen(setup: &Setup, rate: f64) -> Vec<bool> {
        let mut dawl = Dawl::new(setup);
        for device in 0..3 {
            let (kind, rate) = match device {
                0 => (ProbeKind::Alone, 1e-3 * rate),
                _ => (ProbeKind::Held, rate),
            };
            probe(&mut dawl, (device, kind), rate, 0.1);
        }
        let plan = dawl.plan(0);
        (plan.held.iter().zip(&plan.pooled))
            .map(|(held, pooled)| held + pooled > 0)
            .collect()
    }

    #[test]
    fn devices_that_share_a_memory_are_as_fast_together_as_it_is() {
        let works = |memory: Option<f64>, rates: [f64; 2]| {
            let mut dawl = Dawl::new(&Setup {
                memory,
                ..setup(1000, vec![cpu(), cpu()])
            });
            for (device, rate) in rates.into_iter().enumerate() {
                probe(&mut dawl, (device, ProbeKind::Alone), rate, 1e-3);
            }
            [0, 1].map(|device| dawl.plan(0).pooled[device] > 0)
        };
        // The memory is busy with both: each has all of it where it is alone.
        assert_eq!(works(Some(10.0), [5.0, 5.0]), [true, false]);
        // It is not, or nobody knows it.
        assert_eq!(works(Some(20.0), [5.0, 5.0]), [true, true]);
        assert_eq!(works(None, [5.0, 5.0]), [true, true]);
    }

    #[test]
    fn a_pool_gets_uneven_units_if_its_gain_outlasts_half_of_their_way_back() {
        let works = |even, steps| {
            let gpu = DeviceView {
                stream_limit: Some(1.0),
                ..gpu(1000, 1e-6)
            };
            let mut dawl = Dawl::new(&Setup {
                even,
                steps,
                ..setup(1000, vec![cpu(), gpu])
            });
            for (device, kind, rate) in [(0, ProbeKind::Alone, 10.0), (1, ProbeKind::Held, 100.0)] {
                probe(&mut dawl, (device, kind), rate, 1e-3);
            }
            dawl.plan(0).pooled[0] > 0
        };
        // It saves 0.9 of 10 s a step, and gets 91 units, which move at one a second.
        assert!(works(true, 40));
        assert!(!works(false, 40));
        assert!(works(false, 400));
    }

    #[test]
    fn another_device_takes_part_where_it_gains_more_than_the_exchange_costs() {
        // Alone 1000 s or 10 s; together half of it and 10.1 s more.
        assert_eq!(chosen(&three(), 1.0), [false, true, true]);
        assert_eq!(chosen(&three(), 100.0), [false, true, false]);
    }
}

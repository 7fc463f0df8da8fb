//! Partitions of a step's units with which all devices finish together: pure
//! functions from the devices' abilities to whole counts of held and pool units.

use crate::balance::apportion::largest_remainder;
use crate::balance::windows::SPARE;

/// A device's performance in a step, as measured or supposed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ability {
    /// Most units that it can hold; 0 for a device that computes on host memory.
    pub capacity: u64,
    /// Units a second of its kernels on held units. A streamed unit takes as much of
    /// the kernels' time as a held one.
    pub held_rate: f64,
    /// Seconds of each launch on held units beyond the first.
    pub launch: f64,
    /// Slots of the ring of held units; `None` where one launch is enough.
    pub slots: Option<u64>,
    /// Pool units a second (streamed, for a device with its own memory).
    pub pool_rate: f64,
    /// Seconds that a streamed unit takes of the kernels' time beyond those of a held
    /// unit.
    pub intrusion: f64,
    /// Seconds of a step in which it computes nothing.
    pub overhead: f64,
}

impl Ability {
    /// Held and pool units computed within `seconds`. The device fills its memory
    /// before it streams: streamed chunks need launches as a fuller ring does, and
    /// writes delay all of them.
    fn within(&self, seconds: f64) -> (f64, f64) {
        let held = (self.held_within(self.time(seconds))).min(self.capacity as f64);
        (held, self.streamed(seconds, held))
    }

    /// Pool units computed within `seconds` beside `held` units.
    fn streamed(&self, seconds: f64, held: f64) -> f64 {
        let time = self.time(seconds);
        let streamed = self.pool_rate * time;
        if self.capacity == 0 {
            return streamed;
        }
        let beside = (time - self.held_seconds(held)) / self.streamed_kernel();
        streamed.min(beside).max(0.0)
    }

    /// Seconds of the kernels' time that a streamed unit takes.
    fn streamed_kernel(&self) -> f64 {
        1.0 / self.held_rate + self.intrusion
    }

    /// Most units that it holds in a ring that still has a window for all of them.
    fn one_window(&self) -> f64 {
        self.slots.map_or(f64::INFINITY, |slots| {
            0.5 * slots.saturating_sub(SPARE) as f64
        })
    }

    /// Seconds of the kernels on held units, launches included. A ring of `s` slots
    /// leaves windows of `s - held` units, so there are `held / (s - held)` launches.
    fn held_seconds(&self, held: f64) -> f64 {
        if held <= 0.0 {
            return 0.0;
        }
        let kernels = held / self.held_rate;
        if held <= self.one_window() {
            return kernels;
        }
        let window = (2.0 * self.one_window() - held).max(1.0);
        kernels + self.launch * (held / window - 1.0)
    }

    /// Held units whose kernels take `time`: the inverse of `held_seconds`, a
    /// quadratic equation where there are several windows.
    fn held_within(&self, time: f64) -> f64 {
        let linear = self.held_rate * time;
        if linear <= self.one_window() || self.launch <= 0.0 {
            return linear;
        }
        let slots = 2.0 * self.one_window();
        let (launch, all) = (
            self.held_rate * self.launch,
            self.held_rate * (time + self.launch),
        );
        let sum = slots + launch + all;
        2.0 * all * slots / (sum + (sum * sum - 4.0 * all * slots).max(0.0).sqrt())
    }

    fn time(&self, seconds: f64) -> f64 {
        (seconds - self.overhead).max(0.0)
    }

    /// Seconds until it finishes `held` units of its own.
    fn held_until(&self, held: u64) -> f64 {
        match held {
            0 => 0.0,
            _ => self.overhead + self.held_seconds(held as f64),
        }
    }
}

/// A partition of a step's units, and the seconds that the step should take.
#[derive(Clone, Debug, PartialEq)]
pub struct Partition {
    pub held: Vec<u64>,
    pub pooled: Vec<u64>,
    pub seconds: f64,
}

/// The partition with which all devices finish together, that is, of the least `T`
/// with `sum of units within T >= units`. `None` if no device can compute anything.
pub fn finish_together(units: u64, abilities: &[Ability]) -> Option<Partition> {
    let done = |seconds: f64| {
        let all = abilities.iter().map(move |a| a.within(seconds));
        all.map(|(held, pooled)| held + pooled).sum()
    };
    let seconds = earliest(units, done)?;
    let (mut amounts, pooled): (Vec<f64>, Vec<f64>) =
        abilities.iter().map(|a| a.within(seconds)).unzip();
    amounts.extend(pooled);
    let mut held = largest_remainder(units, &amounts);
    let mut pooled = held.split_off(abilities.len());
    for (d, ability) in abilities.iter().enumerate() {
        // Rounding may pass a full memory by a unit.
        let over = held[d].saturating_sub(ability.capacity);
        held[d] -= over;
        pooled[d] += over;
    }
    Some(Partition {
        held,
        pooled,
        seconds,
    })
}

/// The best partition that moves no held unit. The devices that compute on host
/// memory take what they can while the held units are computed, and only the rest
/// is streamed. `None` if more is held than there is, or if no device can compute
/// the rest.
pub fn around_held(units: u64, held: &[u64], abilities: &[Ability]) -> Option<Partition> {
    let pool = units.checked_sub(held.iter().sum())?;
    let until = (abilities.iter().zip(held))
        .map(|(ability, held)| ability.held_until(*held))
        .fold(0.0, f64::max);
    let streamed = |d: usize, seconds: f64| abilities[d].streamed(seconds, held[d] as f64);
    let all = 0..abilities.len();
    let seconds = earliest(pool, |seconds| {
        all.clone().map(|d| streamed(d, seconds)).sum()
    })?;
    let seconds = seconds.max(until);
    let (mut on_host, mut beside) = (vec![0.0; held.len()], vec![0.0; held.len()]);
    for d in all {
        let amounts = match abilities[d].capacity {
            0 => &mut on_host,
            _ => &mut beside,
        };
        amounts[d] = streamed(d, seconds);
    }
    let by_host = (on_host.iter().sum::<f64>().round() as u64).min(pool);
    let by_host = if beside.iter().sum::<f64>() > 0.0 {
        by_host
    } else {
        pool
    };
    let pooled = largest_remainder(by_host, &on_host);
    let rest = pool - pooled.iter().sum::<u64>();
    let rest = largest_remainder(rest, &beside);
    Some(Partition {
        held: held.to_vec(),
        pooled: pooled.iter().zip(&rest).map(|(p, r)| p + r).collect(),
        seconds,
    })
}

/// Seconds at which the search for the least time begins, and the factor by which
/// it widens.
const SOON: f64 = 1e-6;
const WIDER: f64 = 8.0;
/// The relative error of its result, in seconds and in units.
const PRECISION: f64 = 1e-10;
/// Guesses that are enough for any function; most need five.
const MOST_GUESSES: u32 = 100;

/// The least seconds within which `units` are done, for a `done` that never falls;
/// `None` if they never are. By false position, since `done` is nearly linear
/// between a few corners.
fn earliest(units: u64, done: impl Fn(f64) -> f64) -> Option<f64> {
    let needed = units as f64;
    if units == 0 {
        return Some(0.0);
    }
    let (mut early, mut less) = (0.0, -needed);
    let (mut late, mut more) = (SOON, done(SOON) - needed);
    while more < 0.0 {
        (early, less) = (late, more);
        late *= WIDER;
        if late > 1e15 {
            return None;
        }
        more = done(late) - needed;
    }
    // Halve the value at the end that stays (the Illinois rule): a corner could
    // otherwise hold it there for many rounds.
    let (mut early_stayed, mut late_stayed) = (false, false);
    for _ in 0..MOST_GUESSES {
        if late - early <= PRECISION * late {
            break;
        }
        let straight = late - (late - early) * (more / (more - less));
        let is_between = straight > early && straight < late;
        // Where the function is constant, bisect.
        let guess = match is_between {
            true => straight,
            false => 0.5 * (early + late),
        };
        let over = done(guess) - needed;
        let is_it = over.abs() <= PRECISION * needed;
        // Where the function is constant, exactly enough may have been done before.
        if is_it && (over != 0.0 || done((1.0 - PRECISION) * guess) < needed) {
            return Some(guess);
        }
        if over < 0.0 {
            (early, less) = (guess, over);
            more *= if late_stayed { 0.5 } else { 1.0 };
            (early_stayed, late_stayed) = (false, true);
        } else {
            (late, more) = (guess, over);
            less *= if early_stayed { 0.5 } else { 1.0 };
            (early_stayed, late_stayed) = (true, false);
        }
    }
    Some(late)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ability() -> impl Strategy<Value = Ability> {
        (
            0u64..3,
            1u64..20_000,
            0.01f64..20.0,
            0.01f64..5.0,
            0.0f64..300.0,
            0.0f64..3.0,
        )
            .prop_map(
                |(kind, capacity, held_rate, pool_rate, overhead, launch)| Ability {
                    capacity: if kind == 0 { 0 } else { capacity },
                    held_rate,
                    launch: if kind == 2 { launch } else { 0.0 },
                    slots: (kind == 2).then_some(capacity + capacity / 47 + 1 + SPARE),
                    pool_rate,
                    intrusion: if kind == 2 { 0.1 * launch } else { 0.0 },
                    overhead,
                },
            )
    }

    #[test]
    fn a_device_that_takes_longer_to_start_than_the_rest_to_end_gets_nothing() {
        let quick = Ability {
            pool_rate: 100.0,
            ..Ability::default()
        };
        let late = Ability {
            overhead: 2.0,
            ..quick
        };
        let partition = finish_together(100, &[quick, late]).unwrap();
        assert_eq!(partition.pooled, [100, 0]);
    }

    #[test]
    fn a_full_memory_streams_only_what_the_others_leave() {
        let cpu = Ability {
            pool_rate: 10.0,
            ..Ability::default()
        };
        let gpu = Ability {
            capacity: 1000,
            held_rate: 100.0,
            pool_rate: 10.0,
            ..Ability::default()
        };
        // The memory is full at 10 s; when the rest is streamed, the kernels
        // that this takes are still done by 10.4 s.
        let partition = finish_together(1150, &[cpu, gpu]).unwrap();
        assert_eq!((partition.held[1], partition.pooled[1]), (1000, 45));
        assert_eq!(partition.pooled[0], 105);
        assert!((partition.seconds - 10.4545).abs() < 1e-3);
    }

    #[test]
    fn without_any_ability_there_is_no_division() {
        assert_eq!(finish_together(5, &[Ability::default(); 2]), None);
    }

    #[test]
    fn a_pool_that_the_host_does_in_time_is_not_streamed() {
        let cpu = Ability {
            pool_rate: 10.0,
            ..Ability::default()
        };
        let gpu = Ability {
            capacity: 1000,
            held_rate: 100.0,
            pool_rate: 10.0,
            ..Ability::default()
        };
        let in_time = around_held(1050, &[0, 1000], &[cpu, gpu]).unwrap();
        assert_eq!(in_time.pooled, [50, 0]);
        let late = around_held(1400, &[0, 1000], &[cpu, gpu]).unwrap();
        assert_eq!(late.pooled, [200, 200]);
        // The memory is half full: streaming takes the kernels' time.
        let half = around_held(1000, &[0, 500], &[cpu, gpu]).unwrap();
        assert_eq!(half.pooled, [250, 250]);
        assert_eq!(around_held(100, &[0, 500], &[cpu, gpu]), None);
    }

    proptest! {
        #[test]
        fn all_units_are_given_within_the_capacities_and_all_finish_together(
            units in 1u64..100_000,
            abilities in prop::collection::vec(ability(), 1..6),
        ) {
            let partition = finish_together(units, &abilities).unwrap();
            let sum: u64 = partition.held.iter().chain(&partition.pooled).sum();
            prop_assert_eq!(sum, units);
            for (d, a) in abilities.iter().enumerate() {
                prop_assert!(partition.held[d] <= a.capacity);
                // One unit more or less is the rounding.
                let time = (partition.seconds - a.overhead).max(0.0);
                let (held, streamed) = a.within(partition.seconds);
                prop_assert!((partition.held[d] as f64 - held).abs() <= 1.001);
                prop_assert!((partition.pooled[d] as f64 - streamed).abs() <= 1.001);
                if a.capacity == 0 {
                    prop_assert!((streamed - a.pool_rate * time).abs() <= 1e-9 * streamed);
                    continue;
                }
                if a.slots.is_none() {
                    // Launches cost nothing: in closed form.
                    let kernels = a.held_rate * time;
                    let least = kernels.min(a.capacity as f64);
                    prop_assert!((partition.held[d] as f64 - least).abs() <= 1.001);
                    let rest = (kernels - a.capacity as f64).clamp(0.0, a.pool_rate * time);
                    prop_assert!((partition.pooled[d] as f64 - rest).abs() <= 1.001);
                }
                let kernels = a.held_seconds(held) + streamed * a.streamed_kernel();
                prop_assert!(kernels <= time * (1.0 + 1e-9));
                prop_assert!(streamed <= a.pool_rate * time * (1.0 + 1e-9));
            }
        }

        #[test]
        fn what_is_held_within_a_time_takes_it(a in ability(), time in 0.0f64..10_000.0) {
            let held = a.held_within(time);
            prop_assume!(a.capacity == 0 || held <= a.capacity as f64);
            prop_assert!((a.held_seconds(held) - time).abs() <= 1e-9 * (1.0 + time));
        }

        #[test]
        fn more_work_takes_longer_and_another_device_never_hurts(
            units in 1u64..50_000,
            more in 1u64..50_000,
            abilities in prop::collection::vec(ability(), 2..6),
        ) {
            let seconds = |units, abilities: &[Ability]| finish_together(units, abilities).unwrap().seconds;
            let base = (1.0 - 2.0 * PRECISION) * seconds(units, &abilities);
            prop_assert!(seconds(units + more, &abilities) >= base);
            prop_assert!(seconds(units, &abilities[1..]) >= base);
        }

        #[test]
        fn the_seconds_are_the_least(
            units in 1u64..100_000,
            abilities in prop::collection::vec(ability(), 1..6),
            full in any::<bool>(),
        ) {
            let mut abilities = abilities;
            if full {
                // All that can be done is just enough, and nothing more later.
                abilities.iter_mut().for_each(|a| (a.capacity, a.pool_rate) = (0, 0.0));
                (abilities[0].capacity, abilities[0].slots) = (units, None);
            }
            let seconds = finish_together(units, &abilities).unwrap().seconds;
            let done = |seconds: f64| -> f64 {
                let each = abilities.iter().map(|a| a.within(seconds));
                each.map(|(held, pooled)| held + pooled).sum()
            };
            prop_assert!(done((1.0 + 2.0 * PRECISION) * seconds) >= units as f64);
            prop_assert!(done((1.0 - 1e-9) * seconds) < units as f64);
        }

        #[test]
        fn keeping_held_units_never_beats_moving_them(
            units in 1u64..50_000,
            kept in prop::collection::vec(0u64..=100, 6),
            mut abilities in prop::collection::vec(ability(), 1..6),
        ) {
            // Where launches cost nothing: else streaming could be better than
            // a fuller memory, and it is not tried.
            for a in &mut abilities {
                (a.launch, a.intrusion) = (0.0, 0.0);
            }
            let best = finish_together(units, &abilities).unwrap();
            let each = units / abilities.len() as u64;
            let held: Vec<u64> = (abilities.iter().zip(&kept))
                .map(|(a, kept)| a.capacity.min(each * kept / 100))
                .collect();
            let stay = around_held(units, &held, &abilities).unwrap();
            prop_assert_eq!(stay.held.iter().chain(&stay.pooled).sum::<u64>(), units);
            prop_assert!(stay.seconds >= best.seconds * (1.0 - 1e-9));
        }
    }
}

//! Shares with which all devices finish together: pure functions from what
//! each device can do to whole counts.

use crate::balance::division::largest_remainder;

/// What a device can do in a step, as measured or supposed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ability {
    /// Most units that it can hold; 0 for one that computes on host memory.
    pub capacity: u64,
    /// Held units a second.
    pub held_rate: f64,
    /// Pool units a second (streamed, for a device with its own memory).
    pub pool_rate: f64,
    /// Seconds of a step that it works on nothing.
    pub overhead: f64,
}

impl Ability {
    /// Held and pool units done within `seconds`. A device streams only when
    /// its memory is full, and then beside the kernels on what it holds.
    fn within(&self, seconds: f64) -> (f64, f64) {
        let time = (seconds - self.overhead).max(0.0);
        let capacity = self.capacity as f64;
        let held = (self.held_rate * time).min(capacity);
        let pooled = if held < capacity {
            0.0
        } else {
            self.pool_rate * time
        };
        (held, pooled)
    }

    /// When it is through with `held` units of its own.
    fn held_until(&self, held: u64) -> f64 {
        if held == 0 {
            return 0.0;
        }
        self.overhead + held as f64 / self.held_rate
    }

    /// The same device with nothing of its own.
    fn streaming(self) -> Self {
        Self {
            capacity: 0,
            ..self
        }
    }
}

/// Who holds and who does what, and the seconds that this should take.
#[derive(Clone, Debug, PartialEq)]
pub struct Division {
    pub held: Vec<u64>,
    pub pooled: Vec<u64>,
    pub seconds: f64,
}

/// The division with which all finish together. `None` if no device can do
/// anything.
pub fn finish_together(units: u64, abilities: &[Ability]) -> Option<Division> {
    let needed = units as f64;
    let all = |seconds: f64| -> f64 {
        (abilities.iter().map(|a| a.within(seconds)))
            .map(|(held, pooled)| held + pooled)
            .sum()
    };
    let mut late = 1e-9;
    while all(late) < needed {
        late *= 2.0;
        if late > 1e15 {
            return None;
        }
    }
    let mut early = 0.0;
    // 60 halvings of the interval reach the last bits of a double.
    for _ in 0..60 {
        let middle = 0.5 * (early + late);
        if all(middle) < needed {
            early = middle;
        } else {
            late = middle;
        }
    }
    // What can be done jumps when a memory becomes full: streaming starts.
    // Between just before and just after, the remainder decides.
    let (before, after) = (all(early), all(late));
    let fraction = if after > before {
        ((needed - before) / (after - before)).clamp(0.0, 1.0)
    } else {
        1.0
    };
    let between = |a: f64, b: f64| a + (b - a) * fraction;
    let mut amounts = Vec::with_capacity(2 * abilities.len());
    for pick in [|pair: (f64, f64)| pair.0, |pair: (f64, f64)| pair.1] {
        for ability in abilities {
            amounts.push(between(
                pick(ability.within(early)),
                pick(ability.within(late)),
            ));
        }
    }
    let mut held = largest_remainder(units, &amounts);
    let mut pooled = held.split_off(abilities.len());
    for (d, ability) in abilities.iter().enumerate() {
        // Rounding may pass a full memory by a unit.
        let over = held[d].saturating_sub(ability.capacity);
        held[d] -= over;
        pooled[d] += over;
    }
    Some(Division {
        held,
        pooled,
        seconds: late,
    })
}

/// The best that can be done without moving held units: the devices that
/// compute on host memory do what they can while the held units are computed,
/// and only what they leave is streamed.
pub fn around_held(units: u64, held: &[u64], abilities: &[Ability]) -> Option<Division> {
    let pool = units.checked_sub(held.iter().sum())?;
    let until = (abilities.iter().zip(held))
        .map(|(ability, held)| ability.held_until(*held))
        .fold(0.0, f64::max);
    let only = |streaming: bool| -> Vec<Ability> {
        (abilities.iter())
            .map(|a| match (a.capacity > 0) == streaming {
                true => a.streaming(),
                false => Ability::default(),
            })
            .collect()
    };
    let division = |pooled, seconds: f64| Division {
        held: held.to_vec(),
        pooled,
        seconds: seconds.max(until),
    };
    let on_host = finish_together(pool, &only(false));
    if let Some(on_host) = on_host.filter(|division| division.seconds <= until) {
        return Some(division(on_host.pooled, on_host.seconds));
    }
    let streamed: Vec<Ability> = abilities.iter().map(|a| a.streaming()).collect();
    let all = finish_together(pool, &streamed)?;
    if all.seconds > until {
        return Some(division(all.pooled, all.seconds));
    }
    let mut pooled: Vec<u64> = (only(false).iter())
        .map(|host| host.within(until).1.floor() as u64)
        .collect();
    let rest = pool.checked_sub(pooled.iter().sum())?;
    let rest = finish_together(rest, &only(true))?;
    for (count, streamed) in pooled.iter_mut().zip(&rest.pooled) {
        *count += streamed;
    }
    Some(division(pooled, rest.seconds))
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
        )
            .prop_map(|(kind, capacity, held_rate, pool_rate, overhead)| Ability {
                capacity: if kind == 0 { 0 } else { capacity },
                held_rate,
                pool_rate,
                overhead,
            })
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
        let division = finish_together(100, &[quick, late]).unwrap();
        assert_eq!(division.pooled, [100, 0]);
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
            overhead: 0.0,
        };
        // At 10 s the memory is full, and the CPU did 100 of 150: 50 are left.
        let division = finish_together(1150, &[cpu, gpu]).unwrap();
        assert_eq!((division.held[1], division.pooled[0]), (1000, 100));
        assert_eq!(division.pooled[1], 50);
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
            overhead: 0.0,
        };
        let in_time = around_held(1050, &[0, 1000], &[cpu, gpu]).unwrap();
        assert_eq!(in_time.pooled, [50, 0]);
        let nearly = around_held(1130, &[0, 1000], &[cpu, gpu]).unwrap();
        assert_eq!(nearly.pooled, [100, 30]);
        let late = around_held(1400, &[0, 1000], &[cpu, gpu]).unwrap();
        assert_eq!(late.pooled, [200, 200]);
    }

    proptest! {
        #[test]
        fn all_units_are_given_within_the_capacities_and_all_finish_together(
            units in 1u64..100_000,
            abilities in prop::collection::vec(ability(), 1..6),
        ) {
            let division = finish_together(units, &abilities).unwrap();
            let sum: u64 = division.held.iter().chain(&division.pooled).sum();
            prop_assert_eq!(sum, units);
            for (d, a) in abilities.iter().enumerate() {
                prop_assert!(division.held[d] <= a.capacity);
                // One unit more or less is the rounding.
                let time = (division.seconds - a.overhead).max(0.0);
                let held = (a.held_rate * time).min(a.capacity as f64);
                prop_assert!((division.held[d] as f64 - held).abs() <= 1.001);
                prop_assert!(division.pooled[d] as f64 <= a.pool_rate * time + 1.001);
                if a.capacity == 0 {
                    prop_assert!(division.pooled[d] as f64 >= a.pool_rate * time - 1.001);
                }
            }
        }

        #[test]
        fn more_work_takes_longer_and_another_device_never_hurts(
            units in 1u64..50_000,
            more in 1u64..50_000,
            abilities in prop::collection::vec(ability(), 2..6),
        ) {
            let seconds = |units, abilities: &[Ability]| finish_together(units, abilities).unwrap().seconds;
            let base = seconds(units, &abilities);
            prop_assert!(seconds(units + more, &abilities) >= base);
            prop_assert!(seconds(units, &abilities[1..]) >= base);
        }

        #[test]
        fn keeping_held_units_never_beats_moving_them_where_streaming_is_slow(
            units in 100u64..50_000,
            cpu in 0.01f64..5.0,
            gpu in 0.01f64..20.0,
            kept in 0u64..100,
        ) {
            let cpu = Ability { pool_rate: cpu, ..Ability::default() };
            let gpu = Ability { capacity: units, held_rate: gpu, pool_rate: gpu / 100.0, overhead: 0.0 };
            let held = [0, units * kept / 100];
            let best = finish_together(units, &[cpu, gpu]).unwrap();
            let stay = around_held(units, &held, &[cpu, gpu]).unwrap();
            prop_assert_eq!(stay.pooled.iter().sum::<u64>() + held[1], units);
            // Streaming beside the kernels may gain the hundredth that it adds.
            prop_assert!(stay.seconds >= best.seconds * 0.98);
        }
    }
}

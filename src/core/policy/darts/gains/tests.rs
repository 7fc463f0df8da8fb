use super::*;
use crate::policy::fixtures::{Kind, random};
use proptest::prelude::*;

/// n(D) on a device by its definition, and the number of tasks that need D and one other
/// datum.
fn by_definition(problem: &Problem, gains: &Gains, device: usize, datum: usize) -> (u32, u32) {
    let (mut single, mut pair) = (0, 0);
    for (task, inputs) in problem.tasks.iter().map(|task| &task.inputs).enumerate() {
        let absent = inputs
            .iter()
            .filter(|d| !gains.lacks.holdings.holds(device, **d));
        let absent: Vec<usize> = absent.copied().collect();
        if gains.lacks.available[task] && problem.able(task, device) && absent.contains(&datum) {
            single += u32::from(absent.len() == 1);
            pair += u32::from(absent.len() == 2 && inputs.len() > 2);
        }
    }
    (single, pair)
}

proptest! {
    /// Whatever comes, goes, and is taken.
    #[test]
    fn gains_are_those_of_the_definition(seed in any::<u64>(), steps in 1_usize..120) {
        let kind = Kind { tasks: 20, data: 8, devices: 3, outputs: false, able: 1, seed };
        let problem = random(kind);
        let mut choice = fastrand::Rng::with_seed(seed);
        let mut gains = Gains::new(&problem, false, true);
        gains.reset(&problem, &[false, false, true], |_| false);
        let mut holders: Vec<Option<usize>> = vec![None; 20];
        for _ in 0..steps {
            let (device, datum, task) = (choice.usize(..3), choice.usize(..8), choice.usize(..20));
            match choice.usize(..4) {
                0 => gains.arrived(device, datum),
                1 => gains.evicted(device, datum),
                _ if gains.lacks.available[task] => {
                    gains.take(task);
                    gains.reserve(task, device);
                    holders[task] = Some(device);
                }
                _ => {
                    gains.add(task);
                    if let Some(device) = holders[task].take() {
                        gains.release(task, device);
                    }
                }
            }
        }
        for datum in 0..8 {
            let readers = gains.lacks.readers.of(datum).iter();
            let left = readers.filter(|task| !gains.lacks.taken[**task as usize]).count();
            prop_assert_eq!(gains.lacks.unprocessed[datum] as usize, left);
            // The third device is lost.
            for device in 0..2 {
                let (single, pair) = by_definition(&problem, &gains, device, datum);
                let (singles, pairs) = (&gains.singles[device], &gains.pairs[device]);
                prop_assert_eq!(singles.tasks[datum], single);
                prop_assert_eq!(pairs.tasks[datum], pair);
                prop_assert_eq!(singles.ranked.get(datum), key(false, single, left as u32));
                prop_assert_eq!(pairs.ranked.get(datum), key(false, pair, left as u32));
            }
            prop_assert_eq!(gains.singles[2].tasks[datum], 0);
        }
    }
}

//! The properties that make rates max-min fair, and that work is conserved.

use proptest::prelude::*;

use super::*;

impl Fluid {
    /// The flows, in the order of their start.
    fn in_order(&self) -> Vec<&Flow> {
        let mut flows: Vec<&Flow> = self.flows.iter().flatten().collect();
        flows.sort_by_key(|flow| flow.number);
        flows
    }

    fn keys(&self) -> impl Iterator<Item = FlowKey> {
        self.in_order().into_iter().map(|flow| flow.key)
    }

    /// Progress a second of every flow.
    fn rates(&mut self) -> Vec<f64> {
        self.share();
        self.in_order().iter().map(|flow| flow.rate).collect()
    }
}

fn uses(amounts: &[(Resource, f64)]) -> Vec<Use> {
    let pair = |(resource, amount): &(Resource, f64)| Use::of(*resource, *amount);
    amounts.iter().map(pair).collect()
}

/// Runs until nothing flows; (key, nanosecond of its end) in order of ending.
fn run(fluid: &mut Fluid) -> Vec<(FlowKey, Nanos)> {
    let mut now = 0;
    let mut ends = Vec::new();
    while let Some(ns) = fluid.next_end() {
        now += ns;
        ends.extend(fluid.advance(ns).into_iter().map(|key| (key, now)));
    }
    ends
}

#[test]
fn one_flow_takes_as_long_as_its_slowest_resource() {
    let mut fluid = Fluid::default();
    let (a, b) = (fluid.resource(10.0), fluid.resource(4.0));
    fluid.start(1, uses(&[(a, 10.0), (b, 8.0)]));
    assert_eq!(run(&mut fluid), [(1, 2_000_000_000)]);
}

#[test]
fn a_flow_that_can_use_a_part_leaves_the_rest() {
    let mut fluid = Fluid::default();
    let cores = fluid.resource(8.0);
    let part = |most| {
        vec![Use {
            most,
            ..Use::of(cores, 8.0)
        }]
    };
    fluid.start(1, part(0.25));
    fluid.start(2, part(0.25));
    fluid.start(3, part(1.0));
    // Together they want one and a half times what there is, so each gets two
    // thirds of its part: a sixth, a sixth, and the rest.
    let rates = fluid.rates();
    for (rate, expected) in rates.iter().zip([1.0 / 6.0, 1.0 / 6.0, 2.0 / 3.0]) {
        assert!((rate - expected).abs() < 1e-12, "{rates:?}");
    }
    fluid.stop(3);
    // Alone, they are no faster than their part allows.
    assert_eq!(fluid.rates(), [0.25, 0.25]);
}

#[test]
fn both_ways_of_a_link_share_its_total() {
    let mut fluid = Fluid::default();
    let (up, down, both) = (
        fluid.resource(55.0),
        fluid.resource(55.0),
        fluid.resource(92.0),
    );
    fluid.start(1, uses(&[(up, 46.0), (both, 46.0)]));
    fluid.start(2, uses(&[(down, 92.0), (both, 92.0)]));
    // A second of 46 both ways, then 46 left at 55 alone.
    let alone = (46.0 / 55.0 * 1e9_f64).ceil() as Nanos;
    assert_eq!(
        run(&mut fluid),
        [(1, 1_000_000_000), (2, 1_000_000_000 + alone)]
    );
}

#[test]
fn what_one_cannot_use_the_others_get() {
    let mut fluid = Fluid::default();
    let (slow, shared) = (fluid.resource(1.0), fluid.resource(10.0));
    fluid.start(1, uses(&[(slow, 1.0), (shared, 1.0)]));
    fluid.start(2, uses(&[(slow, 1.0), (shared, 1.0)]));
    fluid.start(3, uses(&[(shared, 9.0)]));
    // 1 and 2 are held to half of the slow one; 3 gets all that is left.
    let rates = fluid.rates();
    assert!((rates[0] - 0.5).abs() < 1e-12);
    assert!((rates[1] - 0.5).abs() < 1e-12);
    assert!((rates[2] - 1.0).abs() < 1e-12);
}

#[test]
fn what_meets_slows_by_one_factor() {
    let mut fluid = Fluid::default();
    let (link, memory) = (fluid.resource(55.0), fluid.resource(132.0));
    fluid.start(1, uses(&[(link, 55.0), (memory, 55.0)]));
    fluid.start(2, uses(&[(memory, 132.0)]));
    for rate in fluid.rates() {
        assert!((rate - 132.0 / 187.0).abs() < 1e-12, "{rate}");
    }
}

#[test]
fn a_flow_of_nothing_ends_at_once_and_one_without_capacity_never() {
    let mut fluid = Fluid::default();
    let dead = fluid.resource(0.0);
    fluid.start(1, uses(&[]));
    fluid.start(2, uses(&[(dead, 1.0)]));
    assert_eq!(run(&mut fluid), [(1, 0)]);
    fluid.set_capacity(dead, 1.0);
    assert_eq!(run(&mut fluid), [(2, 1_000_000_000)]);
    assert_eq!(fluid.next_end(), None);
}

#[test]
fn a_stopped_flow_gives_its_share_back() {
    let mut fluid = Fluid::default();
    let a = fluid.resource(1.0);
    fluid.start(1, uses(&[(a, 1.0)]));
    fluid.start(2, uses(&[(a, 1.0)]));
    assert!(fluid.advance(500_000_000).is_empty());
    fluid.stop(1);
    // A quarter is done, the rest goes at full speed.
    assert_eq!(run(&mut fluid), [(2, 750_000_000)]);
}

/// Capacities, and for each flow what it needs of each (0: nothing).
fn scenes() -> impl Strategy<Value = (Vec<f64>, Vec<Vec<f64>>)> {
    (1usize..6).prop_flat_map(|resources| {
        let capacities = prop::collection::vec(0.1..100.0, resources);
        let amount = prop_oneof![Just(0.0), 0.01..50.0];
        let needs = prop::collection::vec(amount, resources)
            .prop_filter("needs something", |needs| needs.iter().any(|a| *a > 0.0));
        (capacities, prop::collection::vec(needs, 1..12))
    })
}

fn build(capacities: &[f64], flows: &[Vec<f64>]) -> Fluid {
    let mut fluid = Fluid::default();
    let resources: Vec<Resource> = capacities.iter().map(|c| fluid.resource(*c)).collect();
    for (key, needs) in flows.iter().enumerate() {
        let needs: Vec<(Resource, f64)> = resources
            .iter()
            .copied()
            .zip(needs.iter().copied())
            .collect();
        fluid.start(key as FlowKey, uses(&needs));
    }
    fluid
}

proptest! {
    #[test]
    fn no_capacity_is_exceeded_and_shares_are_max_min((capacities, flows) in scenes()) {
        let mut fluid = build(&capacities, &flows);
        let rates = fluid.rates();
        let share = |i: usize| {
            let alone = capacities.iter().zip(&flows[i]).filter(|(_, a)| **a > 0.0)
                .map(|(c, a)| c / a).fold(f64::INFINITY, f64::min);
            rates[i] / alone
        };
        let load: Vec<f64> = (0..capacities.len())
            .map(|r| flows.iter().zip(&rates).map(|(needs, rate)| needs[r] * rate).sum())
            .collect();
        for (load, capacity) in load.iter().zip(&capacities) {
            prop_assert!(*load <= capacity * (1.0 + 1e-9));
        }
        // Each flow has a full resource on which no other has a larger share;
        // so it can gain only from one that has no more than itself.
        for i in 0..flows.len() {
            let bottleneck = (0..capacities.len()).any(|r| {
                flows[i][r] > 0.0
                    && load[r] >= capacities[r] * (1.0 - 1e-9)
                    && (0..flows.len()).all(|j| flows[j][r] == 0.0 || share(j) <= share(i) * (1.0 + 1e-9))
            });
            prop_assert!(bottleneck, "flow {i} of rates {rates:?} has no bottleneck");
        }
    }

    #[test]
    fn work_is_conserved((capacities, flows) in scenes()) {
        let mut fluid = build(&capacities, &flows);
        let mut served = vec![0.0; capacities.len()];
        let mut ends = 0;
        while let Some(ns) = fluid.next_end() {
            // Stop half-way too: progress must not depend on when one looks.
            for part in [ns / 2, ns - ns / 2] {
                let rates = fluid.rates();
                let rates: Vec<(FlowKey, f64)> = fluid.keys().zip(rates).collect();
                for (key, rate) in rates {
                    for (served, need) in served.iter_mut().zip(&flows[key as usize]) {
                        *served += rate * need * part as f64 * 1e-9;
                    }
                }
                ends += fluid.advance(part).len();
            }
        }
        prop_assert_eq!(ends, flows.len());
        for (r, served) in served.iter().enumerate() {
            let needed: f64 = flows.iter().map(|needs| needs[r]).sum();
            // Each end is rounded up to a nanosecond.
            let rounding = capacities[r] * 1e-9 * (flows.len() + 1) as f64;
            prop_assert!((served - needed).abs() <= needed * 1e-6 + rounding);
        }
    }
}

#[test]
fn what_does_not_meet_has_no_effect() {
    let mut fluid = Fluid::default();
    let (a, b) = (fluid.resource(1.0), fluid.resource(1.0));
    fluid.start(1, uses(&[(a, 1.0)]));
    fluid.start(2, uses(&[(b, 1.0)]));
    assert!(fluid.advance(250_000_000).is_empty());
    fluid.start(3, uses(&[(b, 0.25)]));
    // 2 has three quarters to go, a quarter of which passes while it shares with 3.
    let ends = [(3, 500_000_000), (1, 750_000_000), (2, 1_000_000_000)];
    assert_eq!(run(&mut fluid), ends);
}

#[test]
fn resources_count_what_all_flows_need() {
    let mut fluid = Fluid::default();
    let (a, b) = (fluid.resource(4.0), fluid.resource(1.0));
    fluid.start(1, uses(&[(a, 8.0), (b, 1.0)]));
    fluid.start(2, uses(&[(a, 4.0)]));
    run(&mut fluid);
    assert_eq!((fluid.seconds(a), fluid.seconds(b)), (3.0, 1.0));
}

/// More flows than are solved together: each gets what its fullest resource gives it.
#[test]
fn thousands_on_a_resource_share_it_nearly_equally() {
    let mut fluid = Fluid::default();
    let out = fluid.resource(1e9);
    let count = 2000;
    let into: Vec<Resource> = (0..count).map(|_| fluid.resource(1e9)).collect();
    for (key, into) in (0..).zip(&into) {
        fluid.start(key, uses(&[(out, 1e6), (*into, 1e6)]));
    }
    let rates = fluid.rates();
    let fair = 1e9 / 1e6 / count as f64;
    assert!(rates.iter().all(|rate| (rate / fair - 1.0).abs() < 0.02));
    // All end, in the time that all bytes take on the shared one.
    let ends = run(&mut fluid);
    assert_eq!(ends.len(), count);
    let (last, whole) = (ends.last().unwrap().1 as f64, count as f64 * 1e6);
    assert!((last / whole - 1.0).abs() < 0.02, "{last} and {whole}");
    // Those that are few again are exact.
    fluid.start(5000, uses(&[(out, 1e6), (into[0], 1e6)]));
    assert_eq!(fluid.rates(), [1000.0]);
}

proptest! {
    /// Rates do not depend on what has begun and ended before.
    #[test]
    fn rates_are_those_of_the_flows_alone(
        (capacities, flows) in scenes(),
        stops in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        parts in prop::collection::vec(1u64..1_000_000_000, 0..8),
    ) {
        let mut fluid = build(&capacities, &flows);
        let mut running: Vec<usize> = (0..flows.len()).collect();
        for (stop, part) in stops.iter().zip(&parts) {
            let part = fluid.next_end().map_or(0, |end| end.min(*part));
            let ended = fluid.advance(part);
            running.retain(|key| !ended.contains(&(*key as FlowKey)));
            if !running.is_empty() {
                let key = running.remove(stop.index(running.len()));
                fluid.stop(key as FlowKey);
            }
        }
        let left: Vec<Vec<f64>> = running.iter().map(|key| flows[*key].clone()).collect();
        let mut anew = build(&capacities, &left);
        for (one, other) in fluid.rates().iter().zip(anew.rates()) {
            prop_assert!((one / other - 1.0).abs() < 1e-9, "{one} and {other}");
        }
    }
}

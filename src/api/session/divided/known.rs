//! What a run begins with of earlier ones, and what it leaves to the next.

use super::{ChosenPart, Dawl, Divided, DividedRun, Expected, KnownRun, Outcome, Row, parts};
use crate::balance::{Balancer, Setup, StepPlan};
use crate::machine::Device;
use crate::session::OpenDevices;

/// DAWL, which begins with what is known of earlier runs.
pub fn begun(setup: &Setup, known: &KnownRun) -> Box<dyn Balancer> {
    let (held, pooled) = known
        .units
        .iter()
        .map(|[held, pooled]| (*held, *pooled))
        .unzip();
    let plan = StepPlan { held, pooled };
    Box::new(match plan.suits(setup) {
        true => Dawl::resuming(setup, plan),
        false => Dawl::new(setup).among(&known.part),
    })
}

/// The kind of a run.
pub fn row(divided: &Divided, devices: &[Device]) -> Row {
    let of = (divided.gpu_memory, divided.work.source());
    Row::of(&divided.described(), &format!("{of:?}"), devices)
}

/// Sets the steps between two barriers if they are open and earlier runs tell them, and says whether
/// they do.
pub fn set_superstep(divided: &mut Divided, opened: &OpenDevices, devices: &[Device]) -> bool {
    if !divided.plans_supersteps() || !divided.is_usual() {
        return false;
    }
    let any = row(divided, devices).with_superstep(0, Vec::new());
    let earlier = opened.earlier();
    let next = earlier.and_then(|earlier| any.next_superstep(earlier));
    let size = next.unwrap_or(divided.supersteps.size());
    divided.supersteps = divided.supersteps.with_size(size);
    next.is_some()
}

impl DividedRun<'_> {
    /// Notes what the steps took and how they were divided, and which part was expected to be
    /// faster than all devices.
    pub(super) fn note_row(&mut self, outcome: &mut Outcome, began: Option<&[usize]>) {
        let Some(last) = outcome.steps.last() else {
            return;
        };
        let units = last
            .devices
            .iter()
            .map(|did| [did.held, did.units - did.held]);
        let units: Vec<[u64; 2]> = units.collect();
        let part: Vec<usize> = (0..units.len())
            .filter(|d| last.devices[*d].units > 0)
            .collect();
        let expected = std::mem::take(&mut outcome.considered).into_iter();
        let expected: Vec<Expected> = expected
            .map(|(part, seconds)| Expected { part, seconds })
            .collect();
        let of = |devices: &[usize]| {
            let mut expected = expected.iter();
            let of = expected.find(|of| of.part == devices);
            of.map(|of| of.seconds)
        };
        let all: Vec<usize> = (0..units.len()).collect();
        if let (Some(best), Some(on_all), true) = (of(&part), of(&all), part.len() < all.len()) {
            let seconds = [Some(best), Some(on_all)];
            let note = parts::note(&self.devices, &part, seconds, "a step expected");
            outcome.notes.push(note);
        }
        let is_whole = !outcome.interrupted && outcome.losses.is_empty();
        let row = (self.row.as_ref()).filter(|row| is_whole && row.is_on(&self.devices));
        if let (Some(row), Some(seconds)) = (row, outcome.median_step()) {
            let chosen = ChosenPart {
                part,
                expected,
                note: None,
            };
            let devices = &mut self.session.devices;
            devices.note(row, &chosen, (seconds, units), began);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::session::{Grid, Session};

    /// Runs of a session with a file begin with its plan, and keep to what was measured.
    #[test]
    fn no_run_of_a_session_is_slower_than_single_steps() {
        let mut session = Session::simulate("v100x1").expect("a machine");
        let mut grid = Grid::new(&[1000, 2000], vec![1.0; 2_000_000]).expect("a grid");
        let mut run = |is_auto: bool| {
            let run = session.stencil(&mut grid).steps(60).gpu_memory(8 << 20);
            let run = if is_auto { run } else { run.superstep(1) };
            let report = run.run().expect("a run");
            (report.workload.superstep(), report.seconds)
        };
        let (_, single) = run(false);
        let auto: Vec<(u32, f64)> = (0..6).map(|_| run(true)).collect();
        assert!(auto[0].0 > 1, "{auto:?}");
        assert!(
            auto.iter().all(|(_, seconds)| *seconds < single),
            "{auto:?}"
        );
        let least = auto
            .iter()
            .map(|(_, seconds)| *seconds)
            .fold(f64::INFINITY, f64::min);
        assert!(auto[5].1 < 1.03 * least, "{auto:?}");
    }
}

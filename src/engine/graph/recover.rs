//! Recovery after a loss: what is done again, and whether a device is left for it.

use super::GraphRunError;
use super::outcome::GraphLoss;
use super::run::GraphRun;
use super::state::ComponentState;

impl GraphRun<'_> {
    /// Goes on without the devices that failed. Nothing is in flight.
    pub(super) fn recover(&mut self) -> Result<(), GraphRunError> {
        self.finish_queues();
        let failing = std::mem::take(&mut self.failing);
        self.fetching.clear();
        self.running.fill(0);
        let lost: Vec<usize> = failing.iter().map(|(device, _)| *device).collect();
        let repeated = self.state.lose(&self.graph, &self.components, &lost);
        // A repeated component ends twice; only the last time counts.
        self.placements
            .retain(|placement| !repeated.contains(&placement.component));
        for (device, why) in failing {
            self.prepared.devices[device].lost = Some(why.clone());
            self.prepared.resident[device].fill(false);
            self.losses.push(GraphLoss {
                device,
                why,
                repeated: repeated.clone(),
            });
            self.policy.lost(device);
        }
        self.check_placeable()?;
        // Where components may go now is known only now.
        let prepared = &mut *self.prepared;
        prepared.prepare(self.runtime, self.policy, self.options)?;
        self.queues = prepared.run_queues(self.runtime, self.policy, self.options)?;
        self.losses.append(&mut prepared.losses);
        self.check_placeable()?;
        let ready = self.state.find_ready(&self.graph, &self.components);
        self.tell_ready(ready);
        Ok(())
    }

    /// Refuses to go on when a component has no device left.
    pub(super) fn check_placeable(&self) -> Result<(), GraphRunError> {
        let devices = &self.prepared.devices;
        for (component, run) in self.state.components.iter().enumerate() {
            let left = |device: usize| {
                devices[device].lost.is_none() && self.policy.may_run(component, device)
            };
            if matches!(run.state, ComponentState::Done(_)) || (0..devices.len()).any(left) {
                continue;
            }
            let kernels = self.components.list()[component].kernels.iter();
            let names: Vec<String> = kernels
                .map(|kernel| format!("`{}`", self.graph.kernel(*kernel).name))
                .collect();
            let lost: Vec<String> = (devices.iter())
                .filter_map(|device| Some(format!("{} ({})", device.name, device.lost.as_ref()?)))
                .collect();
            return Err(GraphRunError::Lost {
                component,
                kernels: names.join(", "),
                lost: lost.join(", "),
            });
        }
        Ok(())
    }
}

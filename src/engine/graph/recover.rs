//! After a loss: what is to be done again, and whether anybody is left for it.

use super::GraphRunError;
use super::books::Progress;
use super::drive::Drive;
use super::outcome::GraphLoss;

impl Drive<'_> {
    /// Goes on without the devices that failed. Nothing is in flight.
    pub(super) fn recover(&mut self) -> Result<(), GraphRunError> {
        self.finish();
        let failing = std::mem::take(&mut self.failing);
        self.fetching.clear();
        let lost: Vec<usize> = failing.iter().map(|(device, _)| *device).collect();
        let again = self.books.lose(&self.graph, &self.components, &lost);
        // What was done again ended twice; only the last time counts.
        self.placements
            .retain(|placement| !again.contains(&placement.component));
        for (device, why) in failing {
            self.plan.sites[device].lost = Some(why.clone());
            self.plan.resident[device].fill(false);
            self.losses.push(GraphLoss {
                device,
                why,
                repeated: again.clone(),
            });
            self.policy.lost(device);
        }
        self.check_homes()?;
        // Where components may go now has been found only now.
        self.plan.prepare(self.runtime, self.policy, self.options)?;
        for device in 0..self.queues.len() {
            let used = (0..self.components.len()).any(|c| self.policy.may_run(c, device));
            if used && self.plan.sites[device].lost.is_none() {
                self.queues[device] = self.plan.queues(self.runtime, device, self.options)?;
            }
        }
        self.losses
            .extend(self.plan.noticed.drain(..).map(|(device, why)| GraphLoss {
                device,
                why,
                repeated: Vec::new(),
            }));
        self.check_homes()?;
        let ready = self.books.count(&self.graph, &self.components);
        self.tell_ready(ready);
        Ok(())
    }

    /// Refuses to go on when a component has no device left.
    pub(super) fn check_homes(&self) -> Result<(), GraphRunError> {
        for (component, progress) in self.books.components().iter().enumerate() {
            if matches!(progress, Progress::Done(_)) {
                continue;
            }
            let left = |device: &usize| {
                self.plan.sites[*device].lost.is_none() && self.policy.may_run(component, *device)
            };
            if (0..self.plan.sites.len()).any(|device| left(&device)) {
                continue;
            }
            let kernels = self.components.list()[component].kernels.iter();
            let names: Vec<String> = kernels
                .map(|kernel| format!("`{}`", self.graph.kernel(*kernel).name))
                .collect();
            let lost = self.plan.sites.iter();
            let lost: Vec<String> = lost
                .filter_map(|site| Some(format!("{} ({})", site.name, site.lost.as_ref()?)))
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

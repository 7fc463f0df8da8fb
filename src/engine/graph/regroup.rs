//! Devices leave and come back: what is done again after a loss, and who does it.

use std::sync::Arc;

use super::run::GraphRun;
use super::storage::Storage;
use super::{GraphRunError, abilities_of};
use crate::runtime::RuntimeError;
use pdawl_core::graph::DatumId;

impl GraphRun<'_> {
    /// Goes on without the devices that failed, and with those that are back. Nothing is in
    /// flight.
    pub(super) fn regroup(&mut self) -> Result<(), GraphRunError> {
        self.finish_queues();
        let failing = std::mem::take(&mut self.known.failing);
        self.known.fetching.clear();
        self.known.pinned_pieces.clear();
        self.known.running.fill(0);
        self.clear_windows();
        let lost: Vec<usize> = failing.iter().map(|(device, _)| *device).collect();
        let storage = &mut self.prepared.storage;
        storage.residency.lose(&lost);
        let (graph, components) = (&self.graph, &self.components);
        let exists = |datum: DatumId| storage.exists(datum);
        let overwritten = |datum: DatumId| storage.overwritten(graph, datum);
        let wanted = |datum: DatumId| graph.datum(datum).wanted || storage.held[datum.0];
        let repeated = (self.known.state).lose(graph, components, wanted, exists, overwritten);
        self.remove_outputs();
        self.give_again()?;
        self.tell_absent(&lost);
        // A repeated component ends twice; only the last time counts.
        self.known
            .placements
            .retain(|placement| !repeated.contains(&placement.component));
        let prepared = &mut *self.prepared;
        for (device, why) in failing {
            prepared.lose(self.runtime, self.policy, device, why, repeated.clone());
        }
        self.known.is_joined = false;
        prepared.readmit(self.runtime, self.policy);
        self.check_placeable()?;
        // Where components may go now is known only now.
        let prepared = &mut *self.prepared;
        prepared.close_queues(self.runtime);
        prepared.prepare(self.runtime, self.policy, self.options)?;
        self.known.queues = prepared.run_queues(self.runtime, self.policy, self.options)?;
        self.check_placeable()?;
        if let Err(error) = self.store_wanted() {
            self.refused(error);
        }
        let ready = self.known.state.find_ready(&self.graph, &self.components);
        self.tell_ready(ready);
        Ok(())
    }

    /// Removes what kernels of components that run again have made. Otherwise a command
    /// plan could rely on a version in host memory that an older one overwrites when it
    /// is needed again.
    fn remove_outputs(&mut self) {
        for (component, run) in self.known.state.components.iter().enumerate() {
            if run.state.is_over() {
                continue;
            }
            for kernel in &self.components.list()[component].kernels {
                for datum in self.graph.kernel(*kernel).outputs() {
                    self.prepared.storage.residency.remove(datum.0);
                }
            }
        }
    }

    /// Writes given data again that lie where others have been, and whose readers run again.
    fn give_again(&mut self) -> Result<(), RuntimeError> {
        let graph = Arc::clone(&self.graph);
        let is_lost = |storage: &Storage, datum: &DatumId| {
            let is_given = graph.datum(*datum).contents.is_some();
            is_given && graph.place(*datum).is_some() && !storage.exists(*datum)
        };
        for datum in graph.datum_ids() {
            let mut readers = graph.readers(datum).iter();
            if is_lost(&self.prepared.storage, &datum)
                && readers.any(|reader| !self.known.state.is_done(*reader))
            {
                (self.prepared.storage).give_again(self.runtime, &graph, datum)?;
            }
        }
        Ok(())
    }

    /// Stores what the host wants and only devices that are left have: the copy from the
    /// device that made it failed, and another one had loaded it from there.
    fn store_wanted(&mut self) -> Result<(), RuntimeError> {
        let graph = Arc::clone(&self.graph);
        for datum in graph.datum_ids().filter(|datum| graph.datum(*datum).wanted) {
            let residency = &self.prepared.storage.residency;
            if !residency.in_host(datum.0)
                && let Some(device) = residency.holder(datum.0)
                && let Some(maker) = graph.producer(datum)
            {
                self.store(self.components.of(maker), device, datum)?;
            }
        }
        Ok(())
    }

    /// Refuses a component with a kernel that no device can compute.
    fn check_able(&self, component: usize) -> Result<(), GraphRunError> {
        let devices = self.runtime.devices();
        let kernels = self.components.list()[component].kernels.iter();
        let mut codelets = kernels.map(|kernel| &self.graph.kernel(*kernel).codelet);
        let unable = codelets.find(|codelet| !abilities_of(codelet, devices).contains(&true));
        let Some(codelet) = unable else { return Ok(()) };
        let names: Vec<&str> = devices.iter().map(|device| &*device.name).collect();
        Err(GraphRunError::Unable {
            codelet: codelet.name.to_string(),
            devices: names.join(", "),
            why: codelet.limits(),
        })
    }

    /// Refuses to go on when a component has no device left.
    pub(super) fn check_placeable(&self) -> Result<(), GraphRunError> {
        if self.prepared.grows {
            // Its caller is told which kernels have none.
            return Ok(());
        }
        let devices = &self.prepared.devices;
        for (component, run) in self.known.state.components.iter().enumerate() {
            let left = |device: usize| {
                devices[device].lost.is_none() && self.policy.may_run(component, device)
            };
            if run.state.is_over() || (0..devices.len()).any(left) {
                continue;
            }
            let lost: Vec<String> = (devices.iter())
                .filter_map(|device| Some(format!("{} ({})", device.name, device.lost.as_ref()?)))
                .collect();
            if lost.is_empty() {
                self.check_able(component)?;
            }
            return Err(GraphRunError::Lost {
                component,
                kernels: self.prepared.kernel_names(component),
                lost: lost.join(", "),
            });
        }
        Ok(())
    }
}

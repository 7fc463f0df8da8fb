//! A user's kernel is examined before it touches this process's memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::specified::survivors;
use super::{Error, Session};
use crate::engine::first_launch::{Tried, Words, runs_here};
use crate::graph::spec::source::touches_by_data;
use crate::graph::{Argument, Contents, Datum, GraphBuilder, Kernel, KernelId, TaskGraph};
use crate::runtime::select::Selection;

impl Session {
    /// Launches kernels in a process of its own, once for each device that computes in the
    /// process that uses it. Of others, the drivers protect this process's memory.
    ///
    /// # Errors
    /// When a kernel leaves its buffers or ends that process, and when that was not found out.
    pub(super) fn examine_first(
        &self,
        graph: &TaskGraph,
        words: &[Words],
        contents: bool,
    ) -> Result<(), Error> {
        let here = self.devices().iter().filter(|device| runs_here(device));
        let names: Vec<&str> = here.map(|device| device.name.as_str()).collect();
        if self.is_simulated() || names.is_empty() {
            return Ok(());
        }
        let selection: Selection = names.join(",").parse()?;
        let tried = Tried {
            graph,
            words,
            contents,
            stop: &self.stop.0,
        };
        let survivors = survivors(&selection, &tried)?;
        let mut doubts = survivors.left_out.into_iter().chain(survivors.notes);
        match doubts.next() {
            None => Ok(()),
            Some(why) => Err(Error::Unexamined(why)),
        }
    }

    /// Examines the kernels of tasks, each with its sizes once.
    pub(super) fn examine_tasks(&self, graph: &TaskGraph, tasks: &[KernelId]) -> Result<(), Error> {
        if self.is_simulated() || !self.devices().iter().any(runs_here) {
            return Ok(());
        }
        let mut builder = GraphBuilder::default();
        let (mut words, mut known) = (Vec::new(), BTreeSet::new());
        for task in tasks.iter().map(|id| graph.kernel(*id)) {
            let Some(of_user) = &task.codelet.opencl else {
                continue;
            };
            let ((source, range), data) = match of_user.steps(&task.units, &[]).pop() {
                Some(step) => (step, task.memories().map(|id| &graph.data()[id.0])),
                None => continue,
            };
            let data: Vec<&Datum> = data.collect();
            let bytes: Vec<u64> = data.iter().map(|datum| datum.bytes).collect();
            let key = (
                source.text().to_owned(),
                source.entry().to_owned(),
                range.global,
                bytes,
            );
            if !known.insert(key) {
                continue;
            }
            if touches_by_data(source.text(), &BTreeMap::new(), source.entry()) {
                return Err(Error::Unexamined(format!(
                    "task {}: its data decide which memory the kernel `{}` touches, or its text \
                     does not tell",
                    task.name,
                    source.entry()
                )));
            }
            let arguments = task.arguments.iter().zip(&data).map(|(argument, datum)| {
                let own = Datum::new(datum.name.clone(), datum.bytes);
                match argument.reads() {
                    Some(_) => {
                        let zeros = Contents::Filled(Arc::new(|bytes| bytes.fill(0)));
                        Argument::Input(builder.datum(own.with(zeros)))
                    }
                    None => Argument::Output(builder.datum(own)),
                }
            });
            let arguments = arguments.collect();
            builder.kernel(Kernel {
                arguments,
                ..task.clone()
            });
            let named = data
                .iter()
                .map(|datum| format!("datum {} ({} bytes)", datum.name, datum.bytes));
            words.push(Words {
                kernel: source.entry().to_owned(),
                buffers: named.collect(),
            });
        }
        match words.is_empty() {
            true => Ok(()),
            false => self.examine_first(&builder.build()?, &words, false),
        }
    }
}

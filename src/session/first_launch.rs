//! A user's kernel is examined before it touches this process's memory.

use super::{Error, Session};
use crate::engine::first_launch::{Tried, Verdict, Words, examine, runs_here};
use crate::graph::TaskGraph;
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
        let examined = examine(&selection, &tried).map_err(|_| Error::Stopped)?;
        for (_, device, verdict) in examined.verdicts {
            match verdict {
                Verdict::Fine => {}
                Verdict::Fault(what) => return Err(Error::Kernel(what)),
                Verdict::Note(why) => return Err(Error::Unexamined(why)),
                Verdict::LeaveOut(why) => {
                    return Err(Error::Unexamined(format!("{device}: {why}")));
                }
            }
        }
        Ok(())
    }
}

//! Contexts of drivers.

use opencl_sys::cl_context;
use opencl_sys::cl_icd::cl_icd_dispatch;

/// A context of one driver. Its events can be waited for by its own queues only.
pub struct Domain {
    pub table: &'static cl_icd_dispatch,
    pub context: cl_context,
    /// Whether queues with samples and parts of launches need programs of their own: PoCL
    /// confuses overlapping launches of one program.
    pub program_per_queue: bool,
}

// SAFETY: drivers' handles may be used by every thread.
unsafe impl Send for Domain {}
// SAFETY: as above.
unsafe impl Sync for Domain {}

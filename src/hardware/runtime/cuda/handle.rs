//! Owners of CUDA objects. Each keeps its context alive, and makes it current where a
//! release needs that. Errors of a release leave the object to the driver.

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;
use std::sync::Arc;

use cudarc::driver::sys::CUDA_KERNEL_NODE_PARAMS;
use cudarc::driver::sys::{self, CUcontext, CUdevice, CUdeviceptr, CUevent, CUfunction};
use cudarc::driver::sys::{CUgraph, CUgraphExec, CUgraphNode, CUmodule, CUresult, CUstream};

use super::error::{Failure, check};

/// The primary context of a device, which all users of CUDA in the process share.
#[derive(Debug)]
pub(super) struct Context {
    raw: CUcontext,
    device: CUdevice,
}

// SAFETY: CUDA's objects may be used from any thread, and each call is thread-safe.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    pub(super) fn primary(device: CUdevice) -> Result<Arc<Self>, Failure> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the driver writes the context, whose reference `Self` returns once.
        let code = unsafe { sys::cuDevicePrimaryCtxRetain(&mut raw, device) };
        check("cuDevicePrimaryCtxRetain", code)?;
        Ok(Arc::new(Self { raw, device }))
    }

    pub(super) fn device(&self) -> CUdevice {
        self.device
    }

    /// Calls of this thread are for this context from now on.
    pub(super) fn make_current(&self) -> Result<(), Failure> {
        // SAFETY: the context is alive.
        check("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(self.raw) })
    }

    /// Calls `act` with this context as the thread's, which has its own again then: it may be the
    /// user's.
    pub(super) fn within<R>(&self, act: impl FnOnce() -> R) -> Result<R, Failure> {
        let mut before = std::ptr::null_mut();
        // SAFETY: the driver writes a context, or null.
        let code = unsafe { sys::cuCtxGetCurrent(&mut before) };
        check("cuCtxGetCurrent", code)?;
        self.make_current()?;
        let result = act();
        // SAFETY: it was the thread's context just now.
        let code = unsafe { sys::cuCtxSetCurrent(before) };
        check("cuCtxSetCurrent", code).map(|()| result)
    }

    /// Lets kernels and copies of this context reach the memory of another one.
    pub(super) fn reach(&self, other: &Self) -> Result<(), Failure> {
        self.make_current()?;
        // SAFETY: both contexts are alive, and this one is current.
        let code = unsafe { sys::cuCtxEnablePeerAccess(other.raw, 0) };
        match code {
            CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED => Ok(()),
            code => check("cuCtxEnablePeerAccess", code),
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the reference taken in `primary` is returned once.
        let _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}

macro_rules! handle {
    ($(#[$doc:meta])* $name:ident, $raw:ty, $release:path) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub(super) struct $name {
            raw: $raw,
            context: Arc<Context>,
        }

        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: the object is owned by `self` alone.
                let _ = self.context.within(|| unsafe { $release(self.raw) });
            }
        }

        // SAFETY: CUDA's objects may be used from any thread, and each call is
        // thread-safe.
        unsafe impl Send for $name {}
        // SAFETY: as above.
        unsafe impl Sync for $name {}
    };
}

macro_rules! raw {
    ($($name:ident, $raw:ty;)*) => {
        $(
            impl $name {
                /// The object; valid as long as `self`.
                pub(super) fn raw(&self) -> $raw {
                    self.raw
                }
            }
        )*
    };
}

handle!(
    /// An in-order stream. Its release waits for nothing: the driver keeps what is enqueued.
    Stream, CUstream, sys::cuStreamDestroy_v2
);
handle!(
    /// An event, recorded as often as one likes.
    Event, CUevent, sys::cuEventDestroy_v2
);
handle!(
    /// Memory of a device.
    DeviceMemory, CUdeviceptr, sys::cuMemFree_v2
);
handle!(
    /// Loaded machine code.
    Module, CUmodule, sys::cuModuleUnload
);
handle!(
    /// A graph that is being built.
    Graph, CUgraph, sys::cuGraphDestroy
);
handle!(
    /// A graph that can be launched. What it was built of is needed no more.
    GraphExec, CUgraphExec, sys::cuGraphExecDestroy
);
handle!(
    /// Pinned host memory.
    PinnedMemory, *mut c_void, sys::cuMemFreeHost
);
handle!(
    /// The pinning of host memory of somebody else.
    Registration, *mut c_void, sys::cuMemHostUnregister
);

raw! {
    Stream, CUstream;
    DeviceMemory, CUdeviceptr;
}

impl Stream {
    pub(super) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub(super) fn new(context: &Arc<Context>) -> Result<Self, Failure> {
        context.make_current()?;
        let mut raw = std::ptr::null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the driver writes the stream; a context is current.
        let code = unsafe { sys::cuStreamCreate(&mut raw, flags) };
        check("cuStreamCreate", code)?;
        let context = Arc::clone(context);
        Ok(Self { raw, context })
    }

    /// Waits until all that is enqueued has ended.
    pub(super) fn synchronize(&self) -> Result<(), Failure> {
        // SAFETY: the stream is alive.
        check("cuStreamSynchronize", unsafe {
            sys::cuStreamSynchronize(self.raw)
        })
    }

    /// The graph of what a call enqueues, which does not run. The stream is used by nobody else
    /// meanwhile.
    pub(super) fn captured<E: From<Failure>>(
        &self,
        enqueue: impl FnOnce(&Self) -> Result<(), E>,
    ) -> Result<Graph, E> {
        self.context.make_current()?;
        // A library may do what concerns no stream, such as loading code.
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the stream is alive.
        let code = unsafe { sys::cuStreamBeginCapture_v2(self.raw, mode) };
        check("cuStreamBeginCapture", code)?;
        let enqueued = enqueue(self);
        let mut raw = std::ptr::null_mut();
        // SAFETY: the stream is alive and captures; the driver writes the graph.
        let code = unsafe { sys::cuStreamEndCapture(self.raw, &mut raw) };
        let captured = check("cuStreamEndCapture", code).map(|()| Graph {
            raw,
            context: Arc::clone(&self.context),
        });
        enqueued?;
        Ok(captured?)
    }

    /// What is enqueued from now on waits for what the event was last recorded behind.
    pub(super) fn wait_for(&self, event: &Event) -> Result<(), Failure> {
        // SAFETY: both are alive, perhaps of two devices.
        check("cuStreamWaitEvent", unsafe {
            sys::cuStreamWaitEvent(self.raw, event.raw, 0)
        })
    }
}

impl Event {
    /// An event, with or without a time stamp.
    pub(super) fn new(context: &Arc<Context>, is_timed: bool) -> Result<Self, Failure> {
        context.make_current()?;
        let mut raw = std::ptr::null_mut();
        let flags = match is_timed {
            true => sys::CUevent_flags::CU_EVENT_DEFAULT,
            false => sys::CUevent_flags::CU_EVENT_DISABLE_TIMING,
        };
        // SAFETY: the driver writes the event; a context is current.
        let code = unsafe { sys::cuEventCreate(&mut raw, flags as u32) };
        check("cuEventCreate", code)?;
        let context = Arc::clone(context);
        Ok(Self { raw, context })
    }

    /// Records the event behind what is enqueued.
    pub(super) fn record(&self, stream: &Stream) -> Result<(), Failure> {
        // SAFETY: both are alive and of one context.
        check("cuEventRecord", unsafe {
            sys::cuEventRecord(self.raw, stream.raw)
        })
    }

    /// Whether what it was recorded behind has ended.
    pub(super) fn has_ended(&self) -> Result<bool, Failure> {
        // SAFETY: the event is alive.
        match unsafe { sys::cuEventQuery(self.raw) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            code => check("cuEventQuery", code).map(|()| true),
        }
    }

    /// Nanoseconds from an event to this one, both with time stamps and ended.
    pub(super) fn since(&self, earlier: &Self) -> Result<f64, Failure> {
        let mut milliseconds = 0.0f32;
        // SAFETY: both are alive; the driver writes a number.
        let code = unsafe { sys::cuEventElapsedTime(&mut milliseconds, earlier.raw, self.raw) };
        check("cuEventElapsedTime", code).map(|()| f64::from(milliseconds) * 1e6)
    }
}

impl DeviceMemory {
    /// At least one byte.
    pub(super) fn new(context: &Arc<Context>, bytes: usize) -> Result<Self, Failure> {
        context.make_current()?;
        let mut raw = 0;
        // SAFETY: the driver writes the address; a context is current.
        let code = unsafe { sys::cuMemAlloc_v2(&mut raw, bytes.max(1)) };
        check("cuMemAlloc", code)?;
        let context = Arc::clone(context);
        Ok(Self { raw, context })
    }

    /// Memory that the host reaches, too; at least one byte.
    pub(super) fn managed(context: &Arc<Context>, bytes: usize) -> Result<Self, Failure> {
        context.make_current()?;
        let mut raw = 0;
        let flags = sys::CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL as u32;
        // SAFETY: the driver writes the address; a context is current.
        let code = unsafe { sys::cuMemAllocManaged(&mut raw, bytes.max(1), flags) };
        check("cuMemAllocManaged", code)?;
        let context = Arc::clone(context);
        Ok(Self { raw, context })
    }
}

impl PinnedMemory {
    /// At least one byte, pinned for all devices.
    pub(super) fn new(context: &Arc<Context>, bytes: usize) -> Result<Self, Failure> {
        context.make_current()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the driver writes the address; a context is current.
        let code =
            unsafe { sys::cuMemHostAlloc(&mut raw, bytes.max(1), sys::CU_MEMHOSTALLOC_PORTABLE) };
        check("cuMemHostAlloc", code)?;
        let context = Arc::clone(context);
        Ok(Self { raw, context })
    }

    pub(super) fn address(&self) -> Option<NonNull<u8>> {
        NonNull::new(self.raw.cast())
    }
}

impl Registration {
    /// Pins memory for all devices.
    ///
    /// # Safety
    /// The memory must stay mapped until `Self` is dropped.
    pub(super) unsafe fn new(
        context: &Arc<Context>,
        address: NonNull<u8>,
        bytes: usize,
    ) -> Result<Self, Failure> {
        context.make_current()?;
        let raw: *mut c_void = address.as_ptr().cast();
        let flags = sys::CU_MEMHOSTREGISTER_PORTABLE;
        // SAFETY: the caller keeps the memory mapped.
        let code = unsafe { sys::cuMemHostRegister_v2(raw, bytes, flags) };
        check("cuMemHostRegister", code)?;
        let context = Arc::clone(context);
        Ok(Self { raw, context })
    }
}

impl Graph {
    /// A graph without nodes.
    pub(super) fn new(context: &Arc<Context>) -> Result<Self, Failure> {
        context.make_current()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the driver writes the graph; 0 is the only value of the flags.
        check("cuGraphCreate", unsafe { sys::cuGraphCreate(&mut raw, 0) })?;
        let context = Arc::clone(context);
        Ok(Self { raw, context })
    }

    /// Adds a kernel that starts when these nodes of the graph, each given once, have ended.
    /// The node is valid as long as the graph.
    ///
    /// # Safety
    /// The kernel must be loaded as long as the graph and what is made of it, and the
    /// parameters must point to an argument of its size for each of the kernel's.
    pub(super) unsafe fn add_kernel(
        &self,
        after: &[CUgraphNode],
        parameters: &CUDA_KERNEL_NODE_PARAMS,
    ) -> Result<CUgraphNode, Failure> {
        let mut node = std::ptr::null_mut();
        // SAFETY: the graph is alive, and so are its nodes; the driver copies the arguments
        // before the call returns, which the caller says are right.
        let code = unsafe {
            sys::cuGraphAddKernelNode_v2(
                &mut node,
                self.raw,
                after.as_ptr(),
                after.len(),
                parameters,
            )
        };
        check("cuGraphAddKernelNode", code).map(|()| node)
    }

    /// Adds a copy of another graph, which starts when these nodes have ended, each given once.
    /// The node is valid as long as this graph.
    ///
    /// # Safety
    /// What the nodes of the other graph use must outlive this one and what is made of it.
    pub(super) unsafe fn add_graph(
        &self,
        after: &[CUgraphNode],
        other: &Self,
    ) -> Result<CUgraphNode, Failure> {
        let mut node = std::ptr::null_mut();
        // SAFETY: both graphs are alive, and so are the nodes; the driver copies the other graph.
        let code = unsafe {
            sys::cuGraphAddChildGraphNode(
                &mut node,
                self.raw,
                after.as_ptr(),
                after.len(),
                other.raw,
            )
        };
        check("cuGraphAddChildGraphNode", code).map(|()| node)
    }
}

impl GraphExec {
    /// Makes a graph ready to be launched.
    pub(super) fn new(graph: &Graph) -> Result<Self, Failure> {
        graph.context.make_current()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the driver writes the object; the graph is alive.
        let code = unsafe { sys::cuGraphInstantiateWithFlags(&mut raw, graph.raw, 0) };
        check("cuGraphInstantiateWithFlags", code)?;
        let context = Arc::clone(&graph.context);
        Ok(Self { raw, context })
    }

    /// Enqueues the graph. Launches of the same graph run one after the other, whatever
    /// their streams.
    pub(super) fn launch(&self, stream: &Stream) -> Result<(), Failure> {
        // SAFETY: both are alive and of one context; who enqueues the command keeps the
        // graph, and the memory that its kernels name, until it has ended.
        check("cuGraphLaunch", unsafe {
            sys::cuGraphLaunch(self.raw, stream.raw)
        })
    }
}

/// Bytes of the log of a compilation, at most.
const LOG: usize = 16 << 10;

impl Module {
    /// Compiles PTX for the context's device. What the compiler says is returned with the
    /// failure.
    pub(super) fn load(context: &Arc<Context>, ptx: &CStr) -> Result<Self, (Failure, String)> {
        context.make_current().map_err(|f| (f, String::new()))?;
        let mut raw = std::ptr::null_mut();
        let mut log = vec![0u8; LOG];
        let mut options = [
            sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
            sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        ];
        // The size is passed as the pointer itself, as the driver wants it.
        let mut values = [
            log.as_mut_ptr().cast::<c_void>(),
            std::ptr::without_provenance_mut(LOG),
        ];
        // SAFETY: the text ends with zero, the log has as many bytes as is said, and both
        // outlive the call.
        let code = unsafe {
            sys::cuModuleLoadDataEx(
                &mut raw,
                ptx.as_ptr().cast(),
                options.len() as u32,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        match check("cuModuleLoadDataEx", code) {
            Ok(()) => Ok(Self {
                raw,
                context: Arc::clone(context),
            }),
            Err(failure) => {
                let end = log.iter().position(|byte| *byte == 0).unwrap_or(LOG);
                let log = String::from_utf8_lossy(&log[..end]).trim().to_owned();
                Err((failure, log))
            }
        }
    }

    /// The kernel of this name, valid as long as `self`.
    pub(super) fn function(&self, name: &CStr) -> Result<Function, Failure> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the driver writes the function; the name ends with zero.
        let code = unsafe { sys::cuModuleGetFunction(&mut raw, self.raw, name.as_ptr()) };
        check("cuModuleGetFunction", code)?;
        Ok(Function(raw))
    }
}

/// A kernel of a module, which its owner keeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Function(CUfunction);

// SAFETY: CUDA's objects may be used from any thread, and each call is thread-safe.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

impl Function {
    pub(super) fn raw(self) -> CUfunction {
        self.0
    }

    /// Work-items that a group of it may have.
    pub(super) fn most_items(self) -> Result<usize, Failure> {
        let mut items = 0;
        let what = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
        // SAFETY: the module that has the function is alive; the driver writes a number.
        let code = unsafe { sys::cuFuncGetAttribute(&mut items, what, self.0) };
        check("cuFuncGetAttribute", code)?;
        Ok(usize::try_from(items).unwrap_or(0))
    }
}

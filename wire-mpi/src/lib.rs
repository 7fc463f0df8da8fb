//! A wire over MPI, as a shared library. `pdawl_wire.h` in pdawl's sources describes the
//! interface, of which this file is one side.
//!
//! * `session` starts and ends MPI.
//! * `wire` is the state of a run; `outgoing` and `incoming` are its messages under way,
//!   `pieces` divides the large ones, and `window` says how many may be under way.
//! * `failures` are the ranks of which MPI itself says that they have failed.
//! * `call` makes errors of MPI's return codes, and `buffer` owns pdawl's buffers.
//!
//! Only nonblocking functions of MPI are called between the start and the end, so that no
//! rank waits for one that is lost. The `mpi` crate starts MPI; its requests are not used,
//! since they borrow their buffers, panic when they are dropped, and drop return codes.

mod buffer;
mod call;
mod failures;
mod incoming;
mod outgoing;
mod pieces;
mod session;
mod window;
mod wire;

use std::ffi::{CString, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use pdawl_core::cluster::wire::plugin::abi::{self, Arrival, Buffer, Host, Table};

use buffer::Owned;
use call::Failure;
use wire::{Delivery, Wire};

/// What a wire is to pdawl: the state, and pdawl's functions.
struct Handle {
    wire: Wire,
    host: Host,
}

/// Gives pdawl the reason of what is returned next.
fn explain(host: &Host, why: &str) {
    let text = CString::new(why.replace('\0', " ")).unwrap_or_default();
    // SAFETY: the host's functions are valid during a call from pdawl.
    unsafe { (host.explain)(host.context, text.as_ptr()) };
}

/// Runs a function of the interface; no panic leaves the library.
fn guarded(host: &Host, work: impl FnOnce() -> Result<(), Failure>) -> c_int {
    let why = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => return abi::OK,
        Ok(Err(failure)) => failure.to_string(),
        Err(_) => "the library panicked; its message is on standard error".to_owned(),
    };
    explain(host, &why);
    abi::FAILED
}

/// Runs a function of an open wire.
///
/// # Safety
/// `wire` is what [`pdawl_wire_open`] has stored in the table, and nobody else uses it.
unsafe fn with(
    wire: *mut c_void,
    work: impl FnOnce(&mut Wire, &Host) -> Result<(), Failure>,
) -> c_int {
    // SAFETY: the caller's promise.
    let Handle { wire, host } = unsafe { &mut *wire.cast::<Handle>() };
    guarded(host, || work(wire, host))
}

/// Joins the run.
///
/// # Safety
/// `host` and `table` are those of pdawl, and the host remains until the wire is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pdawl_wire_open(
    version: u32,
    host: *const Host,
    table: *mut Table,
) -> c_int {
    if version != abi::VERSION {
        return abi::OTHER_VERSION;
    }
    // SAFETY: the caller's promise.
    let host = unsafe { *host };
    guarded(&host, || {
        let session = session::start()?;
        let (rank, ranks) = (session.rank, session.size);
        let wire = Wire::new(session, pieces::limit()?);
        let handle = Box::new(Handle { wire, host });
        let filled = Table {
            rank: rank as u32,
            ranks: ranks as u32,
            host_name: handle.wire.host_name().as_ptr(),
            send: Some(send),
            poll: Some(poll),
            unsent: Some(unsent),
            receiving: Some(receiving),
            lose: Some(lose),
            close: Some(close),
            wire: Box::into_raw(handle).cast(),
        };
        // SAFETY: the caller's promise.
        unsafe { table.write(filled) };
        Ok(())
    })
}

unsafe extern "C" fn send(
    wire: *mut c_void,
    to: u32,
    channel: u32,
    buffer: *const Buffer,
) -> c_int {
    let work = |wire: &mut Wire, host: &Host| {
        // SAFETY: pdawl hands its buffer over.
        let bytes = unsafe { Owned::new(*buffer, *host) };
        wire.send(to as usize, channel, bytes);
        Ok(())
    };
    // SAFETY: pdawl passes the table's `wire`.
    unsafe { with(wire, work) }
}

unsafe extern "C" fn poll(wire: *mut c_void, arrival: *mut Arrival) -> c_int {
    let work = |wire: &mut Wire, host: &Host| {
        let arrived = match wire.poll(host)? {
            None => Arrival::NONE,
            Some(Delivery::Message {
                from,
                channel,
                bytes,
            }) => Arrival {
                kind: abi::MESSAGE,
                rank: from as u32,
                channel,
                buffer: bytes.into_buffer(),
            },
            Some(Delivery::Lost { rank, why }) => {
                explain(host, &why);
                Arrival {
                    kind: abi::LOST,
                    rank: rank as u32,
                    ..Arrival::NONE
                }
            }
        };
        // SAFETY: pdawl passes a place for an arrival.
        unsafe { arrival.write(arrived) };
        Ok(())
    };
    // SAFETY: pdawl passes the table's `wire`.
    unsafe { with(wire, work) }
}

unsafe extern "C" fn unsent(wire: *mut c_void) -> u64 {
    // SAFETY: pdawl passes the table's `wire`.
    let handle = unsafe { &*wire.cast::<Handle>() };
    handle.wire.unsent() as u64
}

unsafe extern "C" fn receiving(wire: *mut c_void) -> u64 {
    // SAFETY: pdawl passes the table's `wire`.
    let handle = unsafe { &*wire.cast::<Handle>() };
    handle.wire.receiving() as u64
}

unsafe extern "C" fn lose(wire: *mut c_void, rank: u32) {
    // SAFETY: pdawl passes the table's `wire`.
    let handle = unsafe { &mut *wire.cast::<Handle>() };
    handle.wire.lose(rank as usize);
}

unsafe extern "C" fn close(wire: *mut c_void, complete: c_int) -> c_int {
    // SAFETY: pdawl passes the table's `wire`, and it is the last call.
    let Handle { wire, host } = *unsafe { Box::from_raw(wire.cast::<Handle>()) };
    guarded(&host, || {
        wire.close(complete != 0);
        Ok(())
    })
}

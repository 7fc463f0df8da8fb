//! A transport that a shared library provides, so that pdawl needs no MPI to be built or
//! to run alone.
//!
//! `pdawl_wire.h` describes the interface, and `abi` is the same in Rust. `Host` is what
//! pdawl does for the library.

pub mod abi;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use self::abi::{Buffer, FAILED, Host, OK};
use super::heartbeat::Pulse;
use super::{Attended, Channel, Event, Link, Transport, WireError};
use crate::cluster::wire::memory;
use crate::installed;
use crate::installed::WIRE;
use abi::{Arrival, Table};

#[cfg(test)]
mod tests;

/// A wire to other processes, over a library.
pub type PluginWire = Attended<Plugin>;

impl PluginWire {
    /// Joins the run with the library in this file. All ranks do so at the same time.
    pub fn join(file: &Path, pulse: Pulse) -> Result<Self, WireError> {
        Self::new(Link::connect(Plugin::open(file)?, pulse)?)
    }
}

/// The library and the run that it has joined.
pub struct Plugin {
    file: PathBuf,
    functions: Functions,
    wire: *mut c_void,
    rank: usize,
    size: usize,
    host_name: String,
    reason: Box<Reason>,
    /// The library keeps its address.
    _host: Box<abi::Host>,
    open: bool,
}

#[derive(Clone, Copy)]
struct Functions {
    send: abi::Send,
    poll: abi::Poll,
    unsent: abi::Unsent,
    receiving: abi::Receiving,
    lose: abi::Lose,
    close: abi::Close,
}

impl Functions {
    fn of(table: &Table) -> Option<Self> {
        Some(Self {
            send: table.send?,
            poll: table.poll?,
            unsent: table.unsent?,
            receiving: table.receiving?,
            lose: table.lose?,
            close: table.close?,
        })
    }
}

// SAFETY: the interface allows calls from any thread, one at a time, and all functions
// that call take `&mut self`, except `unsent` and `is_receiving`, which a `Plugin` that is
// not `Sync` gets from one thread at a time, too.
unsafe impl Send for Plugin {}

impl Plugin {
    /// Loads the library and joins the run.
    pub fn open(file: &Path) -> Result<Self, WireError> {
        let open = load(file)?;
        let reason = Box::new(Reason::default());
        let host = Box::new(reason.host());
        let mut table = Table::EMPTY;
        // SAFETY: the pointers are to structures of the types in the header, and the host's
        // functions remain where they are until the end of the process or `close`.
        let code = unsafe { open(abi::VERSION, &raw const *host, &raw mut table) };
        let file = file.to_owned();
        match code {
            abi::OK => {}
            abi::OTHER_VERSION => return Err(WireError::Version { file }),
            _ => {
                let why = reason.take();
                return Err(WireError::Refused { file, why });
            }
        }
        let wrong = |what: &str| WireError::Misbehaved {
            file: file.clone(),
            what: what.to_owned(),
        };
        let functions = Functions::of(&table).ok_or_else(|| wrong("it lacks a function"))?;
        if table.rank >= table.ranks {
            return Err(wrong("its rank is not below the number of ranks"));
        }
        if table.host_name.is_null() {
            return Err(wrong("it names no machine"));
        }
        // SAFETY: the name ends with a zero and is valid until `close`.
        let host_name = unsafe { CStr::from_ptr(table.host_name) };
        Ok(Self {
            functions,
            wire: table.wire,
            rank: table.rank as usize,
            size: table.ranks as usize,
            host_name: host_name.to_string_lossy().into_owned(),
            reason,
            _host: host,
            open: true,
            file,
        })
    }

    fn check(&self, code: c_int) -> Result<(), WireError> {
        match code {
            abi::OK => Ok(()),
            _ => Err(WireError::Failed {
                file: self.file.clone(),
                rank: self.rank,
                why: self.reason.take(),
            }),
        }
    }

    fn wrong(&self, what: String) -> WireError {
        let file = self.file.clone();
        WireError::Misbehaved { file, what }
    }

    fn message(&self, arrival: &Arrival) -> Result<Event, WireError> {
        let channel = match arrival.channel {
            abi::DATA => Channel::Data,
            abi::CONTROL => Channel::Control,
            other => return Err(self.wrong(format!("it delivers on channel {other}"))),
        };
        // SAFETY: the library hands over a buffer that it allocated.
        let bytes = unsafe { take_over(&arrival.buffer) };
        let bytes = bytes
            .ok_or_else(|| self.wrong("it delivers more bytes than it has allocated".to_owned()))?;
        let from = self.other_rank(arrival)?;
        Ok(Event::Message {
            from,
            channel,
            bytes,
        })
    }

    fn other_rank(&self, arrival: &Arrival) -> Result<usize, WireError> {
        let rank = arrival.rank as usize;
        match rank < self.size && rank != self.rank {
            true => Ok(rank),
            false => Err(self.wrong(format!("it delivers something of rank {rank}"))),
        }
    }
}

/// The library's function. The library stays loaded: MPI cannot be unloaded.
fn load(file: &Path) -> Result<abi::Open, WireError> {
    let unable = |why: libloading::Error| WireError::Load {
        file: file.to_owned(),
        why: why.to_string(),
    };
    // SAFETY: the user has named the file, or it was installed with this program.
    let library = unsafe { Library::open(Some(file), RTLD_NOW | RTLD_LOCAL) }.map_err(unable)?;
    // SAFETY: a library that exports this name has the interface of the header.
    let open = unsafe { library.get::<abi::Open>(abi::OPEN.to_bytes_with_nul()) };
    let open = *open.map_err(|_| WireError::NoWire {
        file: file.to_owned(),
    })?;
    std::mem::forget(library);
    Ok(open)
}

impl Transport for Plugin {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn host_name(&self) -> &str {
        &self.host_name
    }

    fn send(&mut self, to: usize, channel: Channel, bytes: Vec<u8>) -> Result<(), WireError> {
        let channel = match channel {
            Channel::Data => abi::DATA,
            Channel::Control => abi::CONTROL,
        };
        let buffer = hand_over(bytes);
        // SAFETY: the interface's rules; the buffer is the library's now.
        let code =
            unsafe { (self.functions.send)(self.wire, to as u32, channel, &raw const buffer) };
        self.check(code)
    }

    fn poll(&mut self) -> Result<Option<Event>, WireError> {
        let mut arrival = Arrival::NONE;
        // SAFETY: the interface's rules.
        let code = unsafe { (self.functions.poll)(self.wire, &raw mut arrival) };
        self.check(code)?;
        match arrival.kind {
            abi::NOTHING => Ok(None),
            abi::MESSAGE => self.message(&arrival).map(Some),
            abi::LOST => {
                let (rank, why) = (self.other_rank(&arrival)?, self.reason.take());
                Ok(Some(Event::Lost { rank, why }))
            }
            other => Err(self.wrong(format!("it delivers an arrival of kind {other}"))),
        }
    }

    fn unsent(&self) -> usize {
        // SAFETY: the interface's rules.
        unsafe { (self.functions.unsent)(self.wire) as usize }
    }

    fn is_receiving(&self) -> bool {
        // SAFETY: the interface's rules.
        unsafe { (self.functions.receiving)(self.wire) > 0 }
    }

    fn lose(&mut self, rank: usize) {
        // SAFETY: the interface's rules.
        unsafe { (self.functions.lose)(self.wire, rank as u32) };
    }

    fn close(&mut self, complete: bool) -> Result<(), WireError> {
        self.open = false;
        // SAFETY: the interface's rules; no call follows.
        let code = unsafe { (self.functions.close)(self.wire, c_int::from(complete)) };
        self.check(code)
    }
}

impl Drop for Plugin {
    fn drop(&mut self) {
        if self.open {
            // The reason for this end is known to whoever drops; a failure here adds nothing.
            let _ = self.close(false);
        }
    }
}

/// The library that the user names, or the one near this program.
pub fn find(named: Option<&Path>) -> Result<PathBuf, WireError> {
    let Some(file) = named else {
        return installed::library(WIRE).map_err(WireError::Absent);
    };
    installed::readable(file).ok_or_else(|| WireError::Unreadable {
        file: file.to_owned(),
    })
}

/// The reason that the library gave last.
#[derive(Default)]
struct Reason(Mutex<String>);

impl Reason {
    /// The functions for the library. They are valid as long as this.
    pub fn host(&self) -> Host {
        Host {
            context: std::ptr::from_ref(self).cast_mut().cast(),
            allocate,
            release,
            explain,
        }
    }

    /// Takes the reason.
    pub fn take(&self) -> String {
        let mut text = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::take(&mut *text) {
            none if none.is_empty() => "no reason given".to_owned(),
            reason => reason,
        }
    }
}

/// Hands bytes over to the library, until it releases them.
fn hand_over(bytes: Vec<u8>) -> Buffer {
    let mut owner = Box::new(bytes);
    Buffer {
        bytes: owner.as_mut_ptr(),
        size: owner.len(),
        owner: Box::into_raw(owner).cast(),
    }
}

/// Takes the buffer of an arrival; nothing if the library claims more than it got.
///
/// # Safety
/// The buffer is from [`allocate`] and the library uses it no more.
unsafe fn take_over(buffer: &Buffer) -> Option<Vec<u8>> {
    if buffer.owner.is_null() {
        return None;
    }
    // SAFETY: an owner comes from `hand_over`, once.
    let mut bytes = *unsafe { Box::from_raw(buffer.owner.cast::<Vec<u8>>()) };
    if buffer.size > bytes.len() {
        return None;
    }
    bytes.truncate(buffer.size);
    Some(bytes)
}

unsafe extern "C" fn allocate(_context: *mut c_void, size: usize, buffer: *mut Buffer) -> c_int {
    let Some(bytes) = memory::room(size) else {
        return FAILED;
    };
    // SAFETY: the library passes a place for a buffer.
    unsafe { buffer.write(hand_over(bytes)) };
    OK
}

unsafe extern "C" fn release(_context: *mut c_void, owner: *mut c_void) {
    // SAFETY: an owner comes from `hand_over`, and the library releases it once.
    memory::keep(*unsafe { Box::from_raw(owner.cast::<Vec<u8>>()) });
}

unsafe extern "C" fn explain(context: *mut c_void, text: *const c_char) {
    // SAFETY: the context is that of `Reason::host`, and the text ends with a zero.
    let (reason, text) = unsafe { (&*context.cast::<Reason>(), CStr::from_ptr(text)) };
    let mut kept = reason.0.lock().unwrap_or_else(PoisonError::into_inner);
    *kept = text.to_string_lossy().into_owned();
}

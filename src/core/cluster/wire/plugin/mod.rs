//! A transport that a shared library provides, so that pdawl needs no MPI to be built or
//! to run alone.
//!
//! `pdawl_wire.h` describes the interface, and `abi` is the same in Rust. `host` is what
//! pdawl does for the library. `find` looks for the library.

pub mod abi;
mod find;
mod host;

use std::ffi::{CStr, c_int, c_void};
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use super::heartbeat::Pulse;
use super::{Attended, Channel, Event, Link, Transport, WireError};
use abi::{Arrival, Table};
use host::Reason;

pub use find::find;

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
        let bytes = unsafe { host::take_over(&arrival.buffer) };
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
        let buffer = host::hand_over(bytes);
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

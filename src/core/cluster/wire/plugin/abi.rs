//! `pdawl_wire.h` in Rust. The header describes every field.

#![allow(
    missing_docs,
    reason = "the header next to this file describes the fields"
)]

use std::ffi::{CStr, c_char, c_int, c_void};

/// The version of the interface.
pub const VERSION: u32 = 2;
/// The function that a library exports; its type is [`Open`].
pub const OPEN: &CStr = c"pdawl_wire_open";

pub const OK: c_int = 0;
pub const FAILED: c_int = 1;
pub const OTHER_VERSION: c_int = 2;

pub const DATA: u32 = 0;
pub const CONTROL: u32 = 1;

pub const NOTHING: u32 = 0;
pub const MESSAGE: u32 = 1;
pub const LOST: u32 = 2;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    pub bytes: *mut u8,
    pub size: usize,
    pub owner: *mut c_void,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Host {
    pub context: *mut c_void,
    pub allocate: unsafe extern "C" fn(*mut c_void, usize, *mut Buffer) -> c_int,
    pub release: unsafe extern "C" fn(*mut c_void, *mut c_void),
    pub explain: unsafe extern "C" fn(*mut c_void, *const c_char),
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub kind: u32,
    pub rank: u32,
    pub channel: u32,
    pub buffer: Buffer,
}

/// A library may leave functions out by mistake, so each is optional here.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Table {
    pub wire: *mut c_void,
    pub rank: u32,
    pub ranks: u32,
    pub host_name: *const c_char,
    pub send: Option<Send>,
    pub poll: Option<Poll>,
    pub unsent: Option<Unsent>,
    pub receiving: Option<Receiving>,
    pub lose: Option<Lose>,
    pub close: Option<Close>,
}

pub type Open = unsafe extern "C" fn(u32, *const Host, *mut Table) -> c_int;
pub type Send = unsafe extern "C" fn(*mut c_void, u32, u32, *const Buffer) -> c_int;
pub type Poll = unsafe extern "C" fn(*mut c_void, *mut Arrival) -> c_int;
pub type Unsent = unsafe extern "C" fn(*mut c_void) -> u64;
pub type Receiving = unsafe extern "C" fn(*mut c_void) -> u64;
pub type Lose = unsafe extern "C" fn(*mut c_void, u32);
pub type Close = unsafe extern "C" fn(*mut c_void, c_int) -> c_int;

impl Buffer {
    /// No buffer.
    pub const NONE: Self = Self {
        bytes: std::ptr::null_mut(),
        size: 0,
        owner: std::ptr::null_mut(),
    };
}

impl Arrival {
    /// No arrival.
    pub const NONE: Self = Self {
        kind: NOTHING,
        rank: 0,
        channel: DATA,
        buffer: Buffer::NONE,
    };
}

impl Table {
    /// A table that no library has filled.
    pub const EMPTY: Self = Self {
        wire: std::ptr::null_mut(),
        rank: 0,
        ranks: 0,
        host_name: std::ptr::null(),
        send: None,
        poll: None,
        unsent: None,
        receiving: None,
        lose: None,
        close: None,
    };
}

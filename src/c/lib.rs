//! Dividers for C. `pdawl.h` beside this file documents the functions.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{iter, ops, ptr, slice};

use pdawl_core::balance::Strategy;
use pdawl_core::balance::divider::{Divider, DividerError, Options};

/// `PDAWL_VERSION`.
const VERSION: u32 = 1;
/// `PDAWL_LOST`.
const LOST: f64 = -1.0;

thread_local! {
    static ERROR: RefCell<CString> = RefCell::default();
}

/// `pdawl_range`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Range {
    begin: u64,
    end: u64,
}

impl From<&ops::Range<u64>> for Range {
    fn from(range: &ops::Range<u64>) -> Self {
        Self {
            begin: range.start,
            end: range.end,
        }
    }
}

/// `pdawl_options`.
#[repr(C)]
pub struct COptions {
    version: u32,
    parts: u32,
    units: u64,
    granularity: u64,
    limits: *const u64,
    weights: *const f64,
    sizes: *const u64,
    rates: *const f64,
    steps: u64,
    move_seconds: f64,
    hysteresis: f64,
    balancer: *const c_char,
}

/// `pdawl_divider`.
pub struct Shared(Mutex<State>);

struct State {
    divider: Divider,
    parts: usize,
    /// What lost parts had, of the last step.
    again: Vec<(usize, ops::Range<u64>)>,
}

impl State {
    fn new(divider: Divider) -> Self {
        Self {
            parts: divider.rates().len(),
            divider,
            again: Vec::new(),
        }
    }
}

/// What `call` returns, or `failed` where it fails: then the thread's error says why.
fn tried<T>(failed: T, call: impl FnOnce() -> Result<T, String>) -> T {
    let made = catch_unwind(AssertUnwindSafe(call));
    let why = match made {
        Ok(Ok(made)) => return made,
        Ok(Err(why)) => why,
        Err(_) => {
            "this is an error of pdawl's own; the divider must not be used further".to_owned()
        }
    };
    let text = CString::new(why.replace('\0', " ")).unwrap_or_default();
    ERROR.with(|error| *error.borrow_mut() = text);
    failed
}

/// Seconds that are told: a negative number says that they are unknown.
fn known(seconds: f64) -> Option<f64> {
    (seconds.is_nan() || seconds >= 0.0).then_some(seconds)
}

fn said(error: DividerError) -> String {
    error.to_string()
}

/// # Safety
/// `divider` is null, or was made by this library and not freed.
unsafe fn locked<'d>(divider: *const Shared) -> Result<MutexGuard<'d, State>, String> {
    // SAFETY: as the caller says.
    let divider = unsafe { divider.as_ref() }.ok_or("the divider is NULL")?;
    Ok(divider.0.lock().unwrap_or_else(PoisonError::into_inner))
}

/// # Safety
/// `text` is null or ends with a 0.
unsafe fn text<'t>(text: *const c_char) -> Result<&'t str, String> {
    if text.is_null() {
        return Err("a text is NULL".to_owned());
    }
    // SAFETY: as the caller says.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|error| error.to_string())
}

/// # Safety
/// `from` is null or has so many entries.
unsafe fn array<'a, T>(from: *const T, entries: usize) -> &'a [T] {
    match from.is_null() {
        true => &[],
        // SAFETY: as the caller says.
        false => unsafe { slice::from_raw_parts(from, entries) },
    }
}

/// # Safety
/// `into` is null or has room for all entries.
unsafe fn give<T>(entries: impl ExactSizeIterator<Item = T>, into: *mut T) -> Result<(), String> {
    if into.is_null() && entries.len() > 0 {
        return Err("what the answer is written to is NULL".to_owned());
    }
    for (number, entry) in entries.enumerate() {
        // SAFETY: as the caller says.
        unsafe { into.add(number).write(entry) };
    }
    Ok(())
}

fn owned(text: String) -> Result<*mut c_char, String> {
    let text = CString::new(text).map_err(|error| error.to_string())?;
    Ok(text.into_raw())
}

fn made(divider: Result<Divider, DividerError>) -> Result<*mut Shared, String> {
    let state = State::new(divider.map_err(said)?);
    Ok(Box::into_raw(Box::new(Shared(Mutex::new(state)))))
}

#[unsafe(no_mangle)]
pub extern "C" fn pdawl_version() -> u32 {
    VERSION
}

#[unsafe(no_mangle)]
pub extern "C" fn pdawl_error() -> *const c_char {
    ERROR.with(|error| error.borrow().as_ptr())
}

/// # Safety
/// `options` has room for them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pdawl_options_init(options: *mut COptions, units: u64, parts: u32) {
    let defaults = Options::new(units, parts as usize);
    let made = COptions {
        version: VERSION,
        parts,
        units,
        granularity: defaults.granularity,
        limits: ptr::null(),
        weights: ptr::null(),
        sizes: ptr::null(),
        rates: ptr::null(),
        steps: 0,
        move_seconds: -1.0,
        hysteresis: defaults.hysteresis,
        balancer: ptr::null(),
    };
    // SAFETY: as the caller says.
    unsafe { options.write(made) };
}

/// # Safety
/// `options` is null or was set by `pdawl_options_init`, and its arrays have as many entries as
/// there are parts or units.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pdawl_divider_new(options: *const COptions) -> *mut Shared {
    tried(ptr::null_mut(), || {
        // SAFETY: as the caller says.
        let given = unsafe { options.as_ref() }.ok_or("the options are NULL")?;
        if given.version != VERSION {
            let (theirs, ours) = (given.version, VERSION);
            return Err(format!(
                "the options are of version {theirs} of pdawl.h, this library of {ours}"
            ));
        }
        let units = usize::try_from(given.units).map_err(|_| "units: too many")?;
        let parts = given.parts as usize;
        let limit = |limit: &u64| (*limit != u64::MAX).then_some(*limit);
        // SAFETY: as the caller says.
        let (limits, weights, sizes, rates) = unsafe {
            (
                array(given.limits, parts),
                array(given.weights, units),
                array(given.sizes, units),
                array(given.rates, parts),
            )
        };
        let options = Options {
            granularity: given.granularity,
            limits: limits.iter().map(limit).collect(),
            weights: weights.to_vec(),
            sizes: sizes.to_vec(),
            rates: rates.to_vec(),
            steps: (given.steps > 0).then_some(given.steps),
            move_seconds: known(given.move_seconds),
            hysteresis: given.hysteresis,
            ..Options::new(given.units, parts)
        };
        if given.balancer.is_null() {
            return made(Divider::new(options));
        }
        // SAFETY: as the caller says.
        let strategy: Result<Strategy, _> = unsafe { text(given.balancer) }?.parse();
        let strategy = strategy.map_err(|error| error.to_string())?;
        made(Divider::with_strategy(options, &strategy))
    })
}

/// # Safety
/// `divider` is null, or was made by this library and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pdawl_divider_free(divider: *mut Shared) {
    if !divider.is_null() {
        // SAFETY: as the caller says.
        drop(unsafe { Box::from_raw(divider) });
    }
}

/// Writes the ranges of a step.
///
/// # Safety
/// `into` is null or has room for all.
unsafe fn ranges(
    made: Result<&[ops::Range<u64>], DividerError>,
    into: *mut Range,
) -> Result<c_int, String> {
    // SAFETY: as the caller says.
    unsafe { give(made.map_err(said)?.iter().map(Range::from), into) }?;
    Ok(0)
}

/// 0 where nothing failed.
fn none(made: Result<(), DividerError>) -> Result<c_int, String> {
    made.map(|()| 0).map_err(said)
}

/// Functions on a divider, which return what stands behind `or` where they fail. Each body is
/// unsafe, as the pointers are those that the caller of C gives.
macro_rules! functions {
    ($($name:ident($state:ident $(, $argument:ident: $of:ty)*) -> $answer:ty, or $failed:expr; $body:block)*) => {$(
        /// # Safety
        /// As `pdawl.h` says.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(divider: *const Shared $(, $argument: $of)*) -> $answer {
            tried($failed, || {
                // SAFETY: as the caller says.
                unsafe {
                    let mut locked = locked(divider)?;
                    let $state = &mut *locked;
                    $body
                }
            })
        }
    )*};
}

functions! {
    pdawl_divider_next(state, into: *mut Range) -> c_int, or -1; {
        ranges(state.divider.next(), into)
    }
    pdawl_divider_next_of(state, units: Range, into: *mut Range) -> c_int, or -1; {
        ranges(state.divider.next_of(units.begin..units.end), into)
    }
    pdawl_divider_next_by(state, shares: *const f64, into: *mut Range) -> c_int, or -1; {
        ranges(state.divider.next_by(array(shares, state.parts)), into)
    }
    pdawl_divider_took(state, seconds: *const f64, moving: f64) -> i64, or -1; {
        let seconds = array(seconds, state.parts).iter();
        let seconds: Vec<Option<f64>> = seconds.map(|one| (*one != LOST).then_some(*one)).collect();
        let took = state.divider.took_moving(&seconds, known(moving));
        state.again = took.map_err(said)?;
        Ok(state.again.len() as i64)
    }
    pdawl_divider_again(state, number: u64, part: *mut u32, range: *mut Range) -> c_int, or -1; {
        let again = &state.again;
        let wrong = || format!("there are {} ranges, from 0 on", again.len());
        let (of, units) = again.get(number as usize).ok_or_else(wrong)?;
        give(iter::once(*of as u32), part)?;
        give(iter::once(Range::from(units)), range)?;
        Ok(0)
    }
    pdawl_divider_take(state, part: u32, range: *mut Range) -> c_int, or -1; {
        let taken = state.divider.take(part as usize).map_err(said)?;
        give(taken.iter().map(Range::from), range)?;
        Ok(c_int::from(taken.is_some()))
    }
    pdawl_divider_done(state, part: u32, seconds: f64) -> c_int, or -1; {
        none(state.divider.done(part as usize, seconds))
    }
    pdawl_divider_is_done(state) -> c_int, or -1; { Ok(c_int::from(state.divider.is_done())) }
    pdawl_divider_lost(state, part: u32) -> c_int, or -1; { none(state.divider.lost(part as usize)) }
    pdawl_divider_back(state, part: u32) -> c_int, or -1; { none(state.divider.back(part as usize)) }
    pdawl_divider_rates(state, into: *mut f64) -> (), or (); {
        give(state.divider.rates().into_iter(), into)
    }
    pdawl_divider_why(state) -> *mut c_char, or ptr::null_mut(); { owned(state.divider.why()) }
    pdawl_divider_to_json(state) -> *mut c_char, or ptr::null_mut(); {
        owned(state.divider.to_json().map_err(said)?)
    }
}

/// # Safety
/// As `pdawl.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pdawl_divider_from_json(state: *const c_char) -> *mut Shared {
    // SAFETY: as the caller says.
    tried(ptr::null_mut(), || {
        made(Divider::from_json(unsafe { text(state) }?))
    })
}

/// # Safety
/// `text` is null or was returned by this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pdawl_text_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: as the caller says.
        drop(unsafe { CString::from_raw(text) });
    }
}

//! Dividers for C. `pdawl.h` beside this file documents the functions.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::slice;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pdawl_core::balance::Strategy;
use pdawl_core::balance::divider::{Divider, DividerError, Options};

/// `PDAWL_VERSION`.
const VERSION: u32 = 1;

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

impl From<&std::ops::Range<u64>> for Range {
    fn from(range: &std::ops::Range<u64>) -> Self {
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
    again: Vec<(usize, std::ops::Range<u64>)>,
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
            move_seconds: (given.move_seconds.is_nan() || given.move_seconds >= 0.0)
                .then_some(given.move_seconds),
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

/// What [`pdawl_divider_next`] and the like have in common.
///
/// # Safety
/// As [`locked`], and `ranges` has an entry a part.
unsafe fn next(
    divider: *const Shared,
    ranges: *mut Range,
    next: impl FnOnce(&mut State) -> Result<Vec<Range>, DividerError>,
) -> c_int {
    tried(-1, || {
        // SAFETY: as the caller says.
        let mut state = unsafe { locked(divider) }?;
        let made = next(&mut state).map_err(said)?;
        // SAFETY: as the caller says.
        unsafe { give(made.into_iter(), ranges) }?;
        Ok(0)
    })
}

fn ours(ranges: &[std::ops::Range<u64>]) -> Vec<Range> {
    ranges.iter().map(Range::from).collect()
}

/// # Safety
/// As `pdawl.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pdawl_divider_next(divider: *const Shared, ranges: *mut Range) -> c_int {
    // SAFETY: as the caller says.
    unsafe { next(divider, ranges, |state| state.divider.next().map(ours)) }
}

/// # Safety
/// As `pdawl.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pdawl_divider_next_of(
    divider: *const Shared,
    units: Range,
    ranges: *mut Range,
) -> c_int {
    let units = units.begin..units.end;
    // SAFETY: as the caller says.
    unsafe {
        next(divider, ranges, |state| {
            state.divider.next_of(units).map(ours)
        })
    }
}

/// # Safety
/// As `pdawl.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pdawl_divider_next_by(
    divider: *const Shared,
    shares: *const f64,
    ranges: *mut Range,
) -> c_int {
    // SAFETY: as the caller says.
    let by = |state: &mut State| {
        let shares = unsafe { array(shares, state.parts) };
        state.divider.next_by(shares).map(ours)
    };
    // SAFETY: as the caller says.
    unsafe { next(divider, ranges, by) }
}

/// # Safety
/// As `pdawl.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pdawl_divider_took(
    divider: *const Shared,
    seconds: *const f64,
    moving: f64,
) -> i64 {
    tried(-1, || {
        // SAFETY: as the caller says.
        let mut state = unsafe { locked(divider) }?;
        // SAFETY: as the caller says.
        let seconds = unsafe { array(seconds, state.parts) }.iter();
        let seconds: Vec<Option<f64>> = seconds
            .map(|seconds| (*seconds != -1.0).then_some(*seconds))
            .collect();
        let moving = (moving.is_nan() || moving >= 0.0).then_some(moving);
        state.again = state.divider.took_moving(&seconds, moving).map_err(said)?;
        Ok(state.again.len() as i64)
    })
}

/// # Safety
/// As `pdawl.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pdawl_divider_again(
    divider: *const Shared,
    number: u64,
    part: *mut u32,
    range: *mut Range,
) -> c_int {
    tried(-1, || {
        // SAFETY: as the caller says.
        let state = unsafe { locked(divider) }?;
        let again = state.again.get(number as usize);
        let (of, units) =
            again.ok_or_else(|| format!("there are {} ranges, from 0 on", state.again.len()))?;
        // SAFETY: as the caller says.
        unsafe {
            give(std::iter::once(*of as u32), part)?;
            give(std::iter::once(Range::from(units)), range)?;
        }
        Ok(0)
    })
}

/// # Safety
/// As `pdawl.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pdawl_divider_take(
    divider: *const Shared,
    part: u32,
    range: *mut Range,
) -> c_int {
    tried(-1, || {
        // SAFETY: as the caller says.
        let taken = unsafe { locked(divider) }?
            .divider
            .take(part as usize)
            .map_err(said)?;
        // SAFETY: as the caller says.
        unsafe {
            give(
                taken
                    .iter()
                    .map(Range::from)
                    .collect::<Vec<_>>()
                    .into_iter(),
                range,
            )
        }?;
        Ok(c_int::from(taken.is_some()))
    })
}

/// What the functions on one part have in common.
///
/// # Safety
/// As [`locked`].
unsafe fn told(
    divider: *const Shared,
    tell: impl FnOnce(&mut Divider) -> Result<(), DividerError>,
) -> c_int {
    tried(-1, || {
        // SAFETY: as the caller says.
        tell(&mut unsafe { locked(divider) }?.divider).map_err(said)?;
        Ok(0)
    })
}

/// # Safety
/// As `pdawl.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pdawl_divider_done(
    divider: *const Shared,
    part: u32,
    seconds: f64,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe { told(divider, |divider| divider.done(part as usize, seconds)) }
}

/// # Safety
/// As `pdawl.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pdawl_divider_lost(divider: *const Shared, part: u32) -> c_int {
    // SAFETY: as the caller says.
    unsafe { told(divider, |divider| divider.lost(part as usize)) }
}

/// # Safety
/// As `pdawl.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pdawl_divider_back(divider: *const Shared, part: u32) -> c_int {
    // SAFETY: as the caller says.
    unsafe { told(divider, |divider| divider.back(part as usize)) }
}

/// # Safety
/// As `pdawl.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pdawl_divider_is_done(divider: *const Shared) -> c_int {
    // SAFETY: as the caller says.
    tried(-1, || {
        Ok(c_int::from(unsafe { locked(divider) }?.divider.is_done()))
    })
}

/// # Safety
/// As `pdawl.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pdawl_divider_rates(divider: *const Shared, rates: *mut f64) {
    // SAFETY: as the caller says.
    tried((), || unsafe {
        give(locked(divider)?.divider.rates().into_iter(), rates)
    });
}

/// # Safety
/// As `pdawl.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pdawl_divider_why(divider: *const Shared) -> *mut c_char {
    // SAFETY: as the caller says.
    tried(ptr::null_mut(), || {
        owned(unsafe { locked(divider) }?.divider.why())
    })
}

/// # Safety
/// As `pdawl.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pdawl_divider_to_json(divider: *const Shared) -> *mut c_char {
    // SAFETY: as the caller says.
    tried(ptr::null_mut(), || {
        owned(
            unsafe { locked(divider) }?
                .divider
                .to_json()
                .map_err(said)?,
        )
    })
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

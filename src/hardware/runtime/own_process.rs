//! Starts this program again, for work that may end the process that does it.
//!
//! The new process runs the same executable, and whoever registers a function among those that
//! run before `main` finds with [`is_again`] that it is one, does the work, and leaves. Code in
//! a library that a program has loaded, such as a module of Python's, is loaded first there.

use std::env;
use std::ffi::{CStr, OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The variable by which a process knows that it was started so. Its value is what was put
/// before the libraries that the user has loaded first.
const VARIABLE: &str = "PDAWL_AGAIN";

/// The variable with the libraries that are loaded first.
const PRELOAD: &str = "LD_PRELOAD";

/// The command that starts this program again, with pipes as input and output.
///
/// # Errors
/// When the file of this library is not known.
pub fn command() -> io::Result<Command> {
    // Also where the file of the program was replaced meanwhile.
    let mut command = Command::new("/proc/self/exe");
    let mut before = OsString::new();
    if let Some(library) = own_library()? {
        before.push(&library);
        let mut all = before.clone();
        if let Some(loaded) = env::var_os(PRELOAD) {
            before.push(":");
            all.push(":");
            all.push(loaded);
        }
        command.env(PRELOAD, all);
    }
    command
        .env(VARIABLE, before)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // What kernels print comes once, from this process.
        .stderr(Stdio::null());
    Ok(command)
}

/// Whether this process was started by [`command`]. Those that it starts are not.
///
/// # Safety
/// No other thread of the process may use its environment meanwhile: it is for what runs before
/// `main`.
pub unsafe fn is_again() -> bool {
    let Some(before) = env::var_os(VARIABLE) else {
        return false;
    };
    // A program with more rights than its user starts nothing that the user wants.
    // SAFETY: it only returns a number.
    if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
        return false;
    }
    let loaded = env::var_os(PRELOAD).unwrap_or_default();
    let rest = loaded.as_bytes().strip_prefix(before.as_bytes());
    // SAFETY: there are no other threads that could read the environment.
    unsafe {
        env::remove_var(VARIABLE);
        match rest {
            Some([]) => env::remove_var(PRELOAD),
            Some(rest) => env::set_var(PRELOAD, OsStr::from_bytes(rest)),
            None => {}
        }
    }
    true
}

/// The file that this code is in, if that is a library and not the program.
fn own_library() -> io::Result<Option<OsString>> {
    let of = |address: *const libc::c_void| {
        // SAFETY: all zeros are a valid `Dl_info`.
        let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
        // SAFETY: the address is only looked up.
        match unsafe { libc::dladdr(address, &raw mut info) } {
            0 => None,
            _ => Some(info),
        }
    };
    let Some(own) = of(own_library as *const libc::c_void) else {
        // A program that is linked statically has no names of libraries.
        return Ok(None);
    };
    // SAFETY: it only returns a number, an address in the program.
    let entry = unsafe { libc::getauxval(libc::AT_ENTRY) };
    if of(entry as *const libc::c_void).is_some_and(|program| program.dli_fbase == own.dli_fbase) {
        return Ok(None);
    }
    if own.dli_fname.is_null() {
        return Err(io::Error::other("the file of this library is not known"));
    }
    // SAFETY: the loader's names end with a zero and stay while the library is loaded, which
    // it is as its code runs.
    let name = unsafe { CStr::from_ptr(own.dli_fname) };
    let path = std::path::Path::new(OsStr::from_bytes(name.to_bytes()));
    Ok(Some(std::path::absolute(path)?.into_os_string()))
}

/// Ends this process at once: what drivers and runtimes release at an end takes time, and
/// nobody needs it here.
pub fn leave(status: i32) -> ! {
    // SAFETY: it returns to nobody.
    unsafe { libc::_exit(status) }
}

/// The time that a process has computed on all cores.
pub fn computed(process: u32) -> Duration {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name, in brackets, may have blanks.
    let numbers = text.rsplit(')').next().unwrap_or_default();
    let ticks = numbers.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.filter_map(|number| number.parse::<u64>().ok()).sum();
    // SAFETY: it only returns a number.
    let each = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1);
    Duration::from_secs_f64(ticks as f64 / each as f64)
}

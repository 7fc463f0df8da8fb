//! The fake driver: compiled once, loaded before anything looks for the real one, and used
//! by one test at a time.

use std::ffi::CString;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

static ONE_TEST_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The folder that has the compiled library, `libcuda.so`.
pub fn folder() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        let sources = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cuda/fake");
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("fake-cuda");
        std::fs::create_dir_all(&folder).expect("a folder for the library");
        let mut compiler = Command::new("cc");
        compiler.args([
            "-std=c11",
            "-D_GNU_SOURCE",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-O1",
            "-g",
        ]);
        // Who looks for a library of this name finds the one that is loaded.
        compiler.args([
            "-shared",
            "-fPIC",
            "-pthread",
            "-Wl,-soname,libcuda.so,-Bsymbolic",
            "-o",
        ]);
        compiler.arg(folder.join("libcuda.so"));
        for part in ["device", "graph", "kernels", "module", "stream"] {
            compiler.arg(sources.join(part).with_extension("c"));
        }
        let status = compiler.status().expect("this test needs a C compiler, cc");
        assert!(status.success(), "the fake driver compiles");
        folder
    };
    BUILT.get_or_init(build).clone()
}

/// The fake driver, for one test.
pub struct Fake {
    library: &'static Library,
    _alone: MutexGuard<'static, ()>,
}

/// Loads the fake driver, and waits until no other test uses it.
pub fn fake() -> Fake {
    static LOADED: OnceLock<Library> = OnceLock::new();
    let alone = ONE_TEST_AT_A_TIME
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let load = || {
        let file = folder().join("libcuda.so");
        // SAFETY: the library runs nothing when it is loaded.
        unsafe { Library::open(Some(file), RTLD_NOW | RTLD_GLOBAL) }.expect("it loads")
    };
    let fake = Fake {
        library: LOADED.get_or_init(load),
        _alone: alone,
    };
    fake.fail("", 0, 0);
    fake.begin();
    fake
}

impl Fake {
    /// Counts calls from now on.
    fn begin(&self) {
        // SAFETY: the library has this function.
        unsafe {
            let function = self.library.get::<unsafe extern "C" fn()>(b"fake_begin\0");
            function.expect("it is there")();
        }
    }

    /// The next `count` calls of this name answer this code.
    pub fn fail(&self, call: &str, code: i32, count: i32) {
        type Function = unsafe extern "C" fn(*const std::ffi::c_char, i32, i32);
        let call = CString::new(call).expect("no zero");
        // SAFETY: the library has this function.
        unsafe {
            let function = self
                .library
                .get::<Function>(b"fake_fail\0")
                .expect("it is there");
            function(call.as_ptr(), code, count);
        }
    }

    /// From now on a device answers this code.
    pub fn lose(&self, device: i32, code: i32) {
        // SAFETY: the library has this function.
        unsafe {
            let function = self
                .library
                .get::<unsafe extern "C" fn(i32, i32)>(b"fake_lose\0");
            function.expect("it is there")(device, code);
        }
    }

    /// Bytes of a device's memory that were not freed.
    pub fn allocated(&self, device: i32) -> usize {
        // SAFETY: the library has this function.
        unsafe {
            let function = self
                .library
                .get::<unsafe extern "C" fn(i32) -> usize>(b"fake_allocated\0");
            function.expect("it is there")(device)
        }
    }

    /// How often a call of this name was made since the test began.
    pub fn calls(&self, call: &str) -> i32 {
        let call = CString::new(call).expect("no zero");
        // SAFETY: the library has this function.
        unsafe {
            let function = self
                .library
                .get::<unsafe extern "C" fn(*const std::ffi::c_char) -> i32>(b"fake_calls\0");
            function.expect("it is there")(call.as_ptr())
        }
    }

    /// Streams, events, modules, pinned memories and graphs that were not released.
    pub fn live(&self) -> [i32; 5] {
        let names = [
            "fake_streams",
            "fake_events",
            "fake_modules",
            "fake_pinned",
            "fake_graphs",
        ];
        names.map(|name| {
            // SAFETY: the library has these functions.
            unsafe {
                let function = self
                    .library
                    .get::<unsafe extern "C" fn() -> i32>(name.as_bytes());
                function.expect("it is there")()
            }
        })
    }
}

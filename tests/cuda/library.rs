//! The fake driver and libraries: compiled once, loaded before anything looks for the real one, and used
//! by one test at a time.

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

static ONE_TEST_AT_A_TIME: Mutex<()> = Mutex::new(());

/// CUDA's libraries beside the driver, with the versions of their files.
const LIBRARIES: [(&str, &str); 3] = [("cublas", "13"), ("cusolver", "12"), ("cufft", "12")];

/// The folder that has the compiled driver, `libcuda.so`, and the libraries, `libcublas.so.13`
/// and others.
pub fn folder() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("fake-cuda");
        std::fs::create_dir_all(&folder).expect("a folder for the libraries");
        compile(
            &folder,
            "libcuda.so",
            &["device", "graph", "kernels", "module", "stream"],
        );
        for (library, version) in LIBRARIES {
            compile(&folder, &format!("lib{library}.so.{version}"), &[library]);
        }
        folder
    };
    BUILT.get_or_init(build).clone()
}

/// Compiles a library. Who looks for a library of its name finds the one that is loaded.
fn compile(folder: &Path, name: &str, parts: &[&str]) {
    let sources = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cuda/fake");
    let mut compiler = Command::new("cc");
    compiler.args([
        "-std=c11",
        "-D_GNU_SOURCE",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-O1",
        "-g",
        "-shared",
        "-fPIC",
        "-pthread",
    ]);
    compiler.arg(format!("-Wl,-soname,{name},-Bsymbolic"));
    compiler.arg("-o").arg(folder.join(name));
    for part in parts {
        compiler.arg(sources.join(part).with_extension("c"));
    }
    if name != "libcuda.so" {
        compiler.arg(folder.join("libcuda.so"));
    }
    compiler.arg("-lm");
    let status = compiler.status().expect("this test needs a C compiler, cc");
    assert!(status.success(), "{name} compiles");
}

/// The variable that says where libraries are looked for.
const FOLDERS: &str = "PDAWL_CUDA_LIBRARIES";

/// While it lives, libraries are looked for in one folder alone.
pub struct Folder;

impl Drop for Folder {
    fn drop(&mut self) {
        // SAFETY: as when it was set.
        unsafe { std::env::remove_var(FOLDERS) };
    }
}

/// Compiles a library of this file name without functions.
pub fn without_functions(folder: &Path, name: &str) {
    let source = folder.join("none.c");
    std::fs::write(&source, "int nothing;\n").expect("a source");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]);
    compiler.arg(folder.join(name)).arg(&source);
    assert!(compiler.status().expect("cc").success());
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
        let open = |name: String| {
            let file = folder().join(name);
            // SAFETY: the library runs nothing when it is loaded.
            unsafe { Library::open(Some(file), RTLD_NOW | RTLD_GLOBAL) }.expect("it loads")
        };
        let driver = open("libcuda.so".to_owned());
        for (library, version) in LIBRARIES {
            // It stays loaded.
            std::mem::forget(open(format!("lib{library}.so.{version}")));
        }
        driver
    };
    let fake = Fake {
        library: LOADED.get_or_init(load),
        _alone: alone,
    };
    fake.fail("", 0, 0);
    fake.begin();
    fake.delay(0);
    fake
}

impl Drop for Fake {
    fn drop(&mut self) {
        // SAFETY: the library has this function.
        unsafe {
            let function = self.library.get::<unsafe extern "C" fn()>(b"fake_end\0");
            function.expect("it is there")();
        }
    }
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

    /// From now on each computation of a library takes so many microseconds more.
    pub fn delay(&self, microseconds: i32) {
        // SAFETY: the library has this function.
        unsafe {
            let function = self
                .library
                .get::<unsafe extern "C" fn(i32)>(b"fake_delay\0");
            function.expect("it is there")(microseconds);
        }
    }

    /// From now on each call of BLAS keeps the host for so many microseconds.
    pub fn hesitate(&self, microseconds: i32) {
        // SAFETY: the library has this function.
        unsafe {
            let function = self
                .library
                .get::<unsafe extern "C" fn(i32)>(b"fake_hesitate\0");
            function.expect("it is there")(microseconds);
        }
    }

    /// Handles of libraries that were not destroyed.
    pub fn handles(&self) -> i32 {
        // SAFETY: the library has this function.
        unsafe {
            let function = self
                .library
                .get::<unsafe extern "C" fn() -> i32>(b"fake_handles\0");
            function.expect("it is there")()
        }
    }

    /// Libraries are looked for in this folder alone until the answer is dropped.
    pub fn libraries_of(&self, folder: &Path) -> Folder {
        // SAFETY: one test runs at a time, and nothing else of it reads the environment now.
        unsafe { std::env::set_var(FOLDERS, folder) };
        Folder
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

    /// Memory of somebody else on a device, which is the host's here.
    pub fn array(&self, device: i32, bytes: usize) -> u64 {
        // SAFETY: the library has this function.
        unsafe {
            let function = self
                .library
                .get::<unsafe extern "C" fn(i32, usize) -> u64>(b"fake_array\0");
            function.expect("it is there")(device, bytes)
        }
    }

    /// The context of the calling thread, as a number.
    pub fn current(&self) -> usize {
        let mut context = 0;
        // SAFETY: the library has this function, which writes an address.
        unsafe {
            let function = self
                .library
                .get::<unsafe extern "C" fn(*mut usize) -> i32>(b"cuCtxGetCurrent\0");
            function.expect("it is there")(&mut context);
        }
        context
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

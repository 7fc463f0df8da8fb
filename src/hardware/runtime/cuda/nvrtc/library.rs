//! The library of NVRTC: where it is, and its functions.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};

use libloading::Library as Loaded;

use crate::runtime::cuda::toolkit::folders_of;

/// The names under which a loader finds it, the newest first.
const NAMES: [&str; 4] = [
    "libnvrtc.so.13",
    "libnvrtc.so.12",
    "libnvrtc.so.11.2",
    "libnvrtc.so",
];

type Program = *mut c_void;
type Code = c_int;

/// A loaded library.
pub(super) struct Library {
    /// As CUDA counts versions: 12090 is 12.9.
    pub version: i32,
    supported: unsafe extern "C" fn(*mut c_int) -> Code,
    supported_count: unsafe extern "C" fn(*mut c_int) -> Code,
    create: Create,
    compile: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> Code,
    ptx_size: Size,
    ptx: Text,
    log_size: Size,
    log: Text,
    destroy: unsafe extern "C" fn(*mut Program) -> Code,
    explain: unsafe extern "C" fn(Code) -> *const c_char,
    _loaded: Loaded,
}

type Create = unsafe extern "C" fn(
    *mut Program,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> Code;
type Size = unsafe extern "C" fn(Program, *mut usize) -> Code;
type Text = unsafe extern "C" fn(Program, *mut c_char) -> Code;

/// The libraries here, in the order in which they are tried.
pub(super) fn libraries() -> impl Iterator<Item = Library> {
    let named = NAMES.iter().map(PathBuf::from);
    named.chain(files()).filter_map(|file| Library::load(&file))
}

/// The libraries' files in folders in which a loader does not look.
fn files() -> Vec<PathBuf> {
    in_folders(&folders_of("cuda_nvrtc"))
}

/// The libraries' files in some folders.
fn in_folders(folders: &[PathBuf]) -> Vec<PathBuf> {
    let in_folder = |folder: &PathBuf| NAMES.map(|name| folder.join(name));
    let files = folders.iter().flat_map(in_folder);
    files.filter(|file| file.is_file()).collect()
}

impl Library {
    /// Loads a library; `None` if it is not there, or lacks a function.
    fn load(file: &Path) -> Option<Self> {
        // SAFETY: it is NVIDIA's library, which may be loaded at any time.
        let loaded = unsafe { Loaded::new(file) }.ok()?;
        // SAFETY: these are its functions' types, and they are called only while it is
        // loaded.
        unsafe {
            let version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> Code =
                *loaded.get(b"nvrtcVersion\0").ok()?;
            let (mut major, mut minor) = (0, 0);
            if version(&mut major, &mut minor) != 0 {
                return None;
            }
            Some(Self {
                version: major * 1000 + minor * 10,
                supported: *loaded.get(b"nvrtcGetSupportedArchs\0").ok()?,
                supported_count: *loaded.get(b"nvrtcGetNumSupportedArchs\0").ok()?,
                create: *loaded.get(b"nvrtcCreateProgram\0").ok()?,
                compile: *loaded.get(b"nvrtcCompileProgram\0").ok()?,
                ptx_size: *loaded.get(b"nvrtcGetPTXSize\0").ok()?,
                ptx: *loaded.get(b"nvrtcGetPTX\0").ok()?,
                log_size: *loaded.get(b"nvrtcGetProgramLogSize\0").ok()?,
                log: *loaded.get(b"nvrtcGetProgramLog\0").ok()?,
                destroy: *loaded.get(b"nvrtcDestroyProgram\0").ok()?,
                explain: *loaded.get(b"nvrtcGetErrorString\0").ok()?,
                _loaded: loaded,
            })
        }
    }

    /// The compute capabilities, ten times each, that it compiles for.
    pub(super) fn capabilities(&self) -> Vec<u32> {
        let mut count = 0;
        // SAFETY: the library writes a number.
        if unsafe { (self.supported_count)(&mut count) } != 0 {
            return Vec::new();
        }
        let mut all = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: there is room for as many as it has said.
        if unsafe { (self.supported)(all.as_mut_ptr()) } != 0 {
            return Vec::new();
        }
        all.into_iter()
            .filter_map(|one| one.try_into().ok())
            .collect()
    }

    /// Compiles a program to PTX.
    ///
    /// # Errors
    /// What the compiler says of the source, or which call failed.
    pub(super) fn compile(
        &self,
        text: &str,
        name: &str,
        options: &[String],
    ) -> Result<String, String> {
        let zero = |_| "the source or an option holds a zero byte".to_owned();
        let text = CString::new(text).map_err(zero)?;
        let name = CString::new(name).map_err(zero)?;
        let options: Result<Vec<CString>, _> =
            options.iter().map(|o| CString::new(o.as_str())).collect();
        let options = options.map_err(zero)?;
        let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let mut program = Created {
            library: self,
            raw: std::ptr::null_mut(),
        };
        // SAFETY: both texts end with zero, and there are no headers.
        let code = unsafe {
            (self.create)(
                &mut program.raw,
                text.as_ptr(),
                name.as_ptr(),
                0,
                std::ptr::null(),
                std::ptr::null(),
            )
        };
        self.check("nvrtcCreateProgram", code)?;
        // SAFETY: the program is there, and so many options that end with zero.
        let code = unsafe { (self.compile)(program.raw, options.len() as c_int, options.as_ptr()) };
        if code != 0 {
            let log = program.text(self.log_size, self.log).unwrap_or_default();
            if !log.trim().is_empty() {
                return Err(log.trim().to_owned());
            }
        }
        self.check("nvrtcCompileProgram", code)?;
        let ptx = program.text(self.ptx_size, self.ptx);
        ptx.map_err(|code| self.failed("nvrtcGetPTX", code))
    }

    fn check(&self, call: &str, code: Code) -> Result<(), String> {
        match code {
            0 => Ok(()),
            code => Err(self.failed(call, code)),
        }
    }

    fn failed(&self, call: &str, code: Code) -> String {
        // SAFETY: the library answers a constant text for every code.
        let text = unsafe { (self.explain)(code) };
        let text = match text.is_null() {
            true => String::new(),
            // SAFETY: the text ends with zero.
            false => unsafe { CStr::from_ptr(text) }
                .to_string_lossy()
                .into_owned(),
        };
        format!("{call} answers {code}: {text}")
    }
}

/// A program of the library's.
struct Created<'l> {
    library: &'l Library,
    raw: Program,
}

impl Created<'_> {
    /// A text of the program.
    fn text(&self, size: Size, text: Text) -> Result<String, Code> {
        let mut bytes = 0;
        // SAFETY: the program is there; the library writes a number.
        match unsafe { size(self.raw, &mut bytes) } {
            0 => {}
            code => return Err(code),
        }
        let mut buffer = vec![0u8; bytes];
        // SAFETY: there is room for as many bytes as the library has said.
        match unsafe { text(self.raw, buffer.as_mut_ptr().cast()) } {
            0 => {}
            code => return Err(code),
        }
        let end = buffer.iter().position(|byte| *byte == 0);
        buffer.truncate(end.unwrap_or(bytes));
        Ok(String::from_utf8_lossy(&buffer).into_owned())
    }
}

impl Drop for Created<'_> {
    fn drop(&mut self) {
        if !self.raw.is_null() {
            // SAFETY: nobody uses the program any more.
            unsafe { (self.library.destroy)(&mut self.raw) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_library_is_not_loaded() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(Library::load(file.path()).is_none());
        assert!(Library::load(Path::new("/nowhere/libnvrtc.so")).is_none());
        // A library without NVRTC's functions.
        assert!(Library::load(Path::new("libc.so.6")).is_none());
    }
}

//! The library of NVRTC: where it is, and its functions.

use std::ffi::{CStr, CString, c_char, c_int};

use crate::runtime::cuda::library::functions::{NVRTC, Nvrtc, Pointer, Size, Text};
use crate::runtime::cuda::library::search;

/// A loaded library.
pub(super) struct Library {
    /// As CUDA counts versions: 12090 is 12.9.
    pub version: i32,
    functions: Nvrtc,
}

/// The libraries here, in the order in which they are tried, whatever version the driver is for.
pub(super) fn libraries() -> impl Iterator<Item = Library> {
    let found = search::libraries("nvrtc", "cuda_nvrtc", &NVRTC, i32::MAX);
    found.filter_map(|library| {
        let functions = Nvrtc::of(library).ok()?;
        let (mut major, mut minor) = (0, 0);
        // SAFETY: the library writes two numbers.
        let code = unsafe { (functions.version)(&mut major, &mut minor) };
        (code == 0).then_some(Library {
            version: major * 1000 + minor * 10,
            functions,
        })
    })
}

impl Library {
    /// The compute capabilities, ten times each, that it compiles for.
    pub(super) fn capabilities(&self) -> Vec<u32> {
        let mut count = 0;
        // SAFETY: the library writes a number.
        if unsafe { (self.functions.supported_count)(&mut count) } != 0 {
            return Vec::new();
        }
        let mut all = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: there is room for as many as it has said.
        if unsafe { (self.functions.supported)(all.as_mut_ptr()) } != 0 {
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
        let functions = &self.functions;
        let mut program = Created {
            library: self,
            raw: std::ptr::null_mut(),
        };
        // SAFETY: both texts end with zero, and there are no headers.
        let code = unsafe {
            (self.functions.create)(
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
        let code = unsafe {
            (self.functions.compile)(program.raw, options.len() as c_int, options.as_ptr())
        };
        if code != 0 {
            let log = program
                .text(functions.log_size, functions.log)
                .unwrap_or_default();
            if !log.trim().is_empty() {
                return Err(log.trim().to_owned());
            }
        }
        self.check("nvrtcCompileProgram", code)?;
        let ptx = program.text(functions.ptx_size, functions.ptx);
        ptx.map_err(|code| self.failed("nvrtcGetPTX", code))
    }

    fn check(&self, call: &str, code: c_int) -> Result<(), String> {
        match code {
            0 => Ok(()),
            code => Err(self.failed(call, code)),
        }
    }

    fn failed(&self, call: &str, code: c_int) -> String {
        // SAFETY: the library answers a constant text for every code.
        let text = unsafe { (self.functions.explain)(code) };
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
    raw: Pointer,
}

impl Created<'_> {
    /// A text of the program.
    fn text(&self, size: Size, text: Text) -> Result<String, c_int> {
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
            unsafe { (self.library.functions.destroy)(&mut self.raw) };
        }
    }
}

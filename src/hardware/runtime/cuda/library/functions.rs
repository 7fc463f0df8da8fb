//! The functions that are called, and what their codes mean. Codes are read as numbers, since
//! another version may have others.

use std::ffi::{c_char, c_int, c_void};

use libloading::os::unix::Library;

use super::search::Versions;

/// A library's handle, a stream, or an address on the device.
pub(in crate::runtime::cuda) type Pointer = *mut c_void;
/// A number in host memory, or an address on the device.
pub(super) type Input = *const c_void;

/// Declares the functions of a library; those in brackets are of single and double precision.
macro_rules! functions {
    (
        $(#[$doc:meta])* $table:ident, $library:literal;
        $($name:ident: $type:ty = $symbol:literal;)*
        $([$both:ident: $both_type:ty = $single:literal, $double:literal];)*
    ) => {
        $(#[$doc])*
        pub(in crate::runtime::cuda) struct $table {
            $(pub $name: $type,)*
            $(pub $both: [$both_type; 2],)*
            /// Keeps the functions.
            _library: Library,
        }

        impl $table {
            /// The functions of a library.
            ///
            /// # Errors
            /// When it lacks one.
            pub(in crate::runtime::cuda) fn of(library: Library) -> Result<Self, String> {
                // SAFETY: the types are those of the library's headers, which are the same
                // in all the versions that are looked for.
                unsafe {
                    Ok(Self {
                        $($name: *library.get::<$type>($symbol.as_bytes()).map_err(lacks($library, $symbol))?,)*
                        $($both: [
                            *library.get::<$both_type>($single.as_bytes()).map_err(lacks($library, $single))?,
                            *library.get::<$both_type>($double.as_bytes()).map_err(lacks($library, $double))?,
                        ],)*
                        _library: library,
                    })
                }
            }
        }
    };
}

fn lacks(library: &'static str, symbol: &'static str) -> impl Fn(libloading::Error) -> String {
    move |_| format!("lib{library} has no function {symbol}; another version of CUDA's may")
}

pub(super) const CUBLAS: Versions = [(13, "13"), (12, "12"), (11, "11")];
pub(super) const CUSOLVER: Versions = [(13, "12"), (12, "11"), (11, "11")];
pub(super) const CUFFT: Versions = [(13, "12"), (12, "11"), (11, "10")];
pub(in crate::runtime::cuda) const NVRTC: Versions = [(13, "13"), (12, "12"), (11, "11.2")];

type Gemm = unsafe extern "C" fn(
    Pointer,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    Input,
    Input,
    c_int,
    c_int,
    Input,
    c_int,
    c_int,
    Input,
    Pointer,
    c_int,
    c_int,
    c_int,
    c_int,
) -> c_int;
type GemmBatch = unsafe extern "C" fn(
    Pointer,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    Input,
    Input,
    c_int,
    c_int,
    i64,
    Input,
    c_int,
    c_int,
    i64,
    Input,
    Pointer,
    c_int,
    c_int,
    i64,
    c_int,
    c_int,
    c_int,
) -> c_int;
type Syrk = unsafe extern "C" fn(
    Pointer,
    c_int,
    c_int,
    c_int,
    c_int,
    Input,
    Input,
    c_int,
    Input,
    Pointer,
    c_int,
) -> c_int;
type Trsm = unsafe extern "C" fn(
    Pointer,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    Input,
    Input,
    c_int,
    Pointer,
    c_int,
) -> c_int;
type Room = unsafe extern "C" fn(Pointer, c_int, c_int, Pointer, c_int, *mut c_int) -> c_int;
type Potrf =
    unsafe extern "C" fn(Pointer, c_int, c_int, Pointer, c_int, Pointer, c_int, Pointer) -> c_int;
type Getrf =
    unsafe extern "C" fn(Pointer, c_int, c_int, Pointer, c_int, Pointer, Pointer, Pointer) -> c_int;
type MakePlan = unsafe extern "C" fn(
    c_int,
    c_int,
    *mut c_int,
    *mut c_int,
    c_int,
    c_int,
    *mut c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    *mut usize,
) -> c_int;

functions! {
    /// cuBLAS.
    Cublas, "cublas";
    create: unsafe extern "C" fn(*mut Pointer) -> c_int = "cublasCreate_v2";
    destroy: unsafe extern "C" fn(Pointer) -> c_int = "cublasDestroy_v2";
    version: unsafe extern "C" fn(Pointer, *mut c_int) -> c_int = "cublasGetVersion_v2";
    set_stream: unsafe extern "C" fn(Pointer, Pointer) -> c_int = "cublasSetStream_v2";
    set_workspace: unsafe extern "C" fn(Pointer, Pointer, usize) -> c_int = "cublasSetWorkspace_v2";
    gemm: Gemm = "cublasGemmEx";
    gemm_batch: GemmBatch = "cublasGemmStridedBatchedEx";
    [syrk: Syrk = "cublasSsyrk_v2", "cublasDsyrk_v2"];
    [trsm: Trsm = "cublasStrsm_v2", "cublasDtrsm_v2"];
}

functions! {
    /// cuSOLVER's part for dense matrices.
    Cusolver, "cusolver";
    create: unsafe extern "C" fn(*mut Pointer) -> c_int = "cusolverDnCreate";
    destroy: unsafe extern "C" fn(Pointer) -> c_int = "cusolverDnDestroy";
    version: unsafe extern "C" fn(*mut c_int) -> c_int = "cusolverGetVersion";
    set_stream: unsafe extern "C" fn(Pointer, Pointer) -> c_int = "cusolverDnSetStream";
    [potrf_room: Room = "cusolverDnSpotrf_bufferSize", "cusolverDnDpotrf_bufferSize"];
    [potrf: Potrf = "cusolverDnSpotrf", "cusolverDnDpotrf"];
    [getrf_room: Room = "cusolverDnSgetrf_bufferSize", "cusolverDnDgetrf_bufferSize"];
    [getrf: Getrf = "cusolverDnSgetrf", "cusolverDnDgetrf"];
}

functions! {
    /// cuFFT.
    Cufft, "cufft";
    version: unsafe extern "C" fn(*mut c_int) -> c_int = "cufftGetVersion";
    create: unsafe extern "C" fn(*mut c_int) -> c_int = "cufftCreate";
    destroy: unsafe extern "C" fn(c_int) -> c_int = "cufftDestroy";
    set_own_room: unsafe extern "C" fn(c_int, c_int) -> c_int = "cufftSetAutoAllocation";
    make_plan: MakePlan = "cufftMakePlanMany";
    set_stream: unsafe extern "C" fn(c_int, Pointer) -> c_int = "cufftSetStream";
    set_room: unsafe extern "C" fn(c_int, Pointer) -> c_int = "cufftSetWorkArea";
    transform: unsafe extern "C" fn(c_int, Pointer, Pointer, c_int) -> c_int = "cufftExecC2C";
}

pub(in crate::runtime::cuda) type Text = unsafe extern "C" fn(Pointer, *mut c_char) -> c_int;
pub(in crate::runtime::cuda) type Size = unsafe extern "C" fn(Pointer, *mut usize) -> c_int;
type CreateProgram = unsafe extern "C" fn(
    *mut Pointer,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> c_int;

functions! {
    /// NVRTC.
    Nvrtc, "nvrtc";
    version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int = "nvrtcVersion";
    supported: unsafe extern "C" fn(*mut c_int) -> c_int = "nvrtcGetSupportedArchs";
    supported_count: unsafe extern "C" fn(*mut c_int) -> c_int = "nvrtcGetNumSupportedArchs";
    create: CreateProgram = "nvrtcCreateProgram";
    compile: unsafe extern "C" fn(Pointer, c_int, *const *const c_char) -> c_int = "nvrtcCompileProgram";
    ptx_size: Size = "nvrtcGetPTXSize";
    ptx: Text = "nvrtcGetPTX";
    log_size: Size = "nvrtcGetProgramLogSize";
    log: Text = "nvrtcGetProgramLog";
    destroy: unsafe extern "C" fn(*mut Pointer) -> c_int = "nvrtcDestroyProgram";
    explain: unsafe extern "C" fn(c_int) -> *const c_char = "nvrtcGetErrorString";
}

/// The meaning of the codes that a user can do something about, by the begin of the calls.
const MEANINGS: [(&str, &[(c_int, &str)]); 3] = [
    (
        "cublas",
        &[
            (
                1,
                "it is not initialised; does it belong to a later CUDA than the driver?",
            ),
            (3, "memory ran out"),
            (7, "a value is invalid"),
            (8, "it does not support this GPU"),
            (13, "the GPU failed"),
            (15, "it does not support this call"),
        ],
    ),
    (
        "cusolver",
        &[
            (
                1,
                "it is not initialised; does it belong to a later CUDA than the driver?",
            ),
            (2, "memory ran out"),
            (3, "a value is invalid"),
            (4, "it does not support this GPU"),
            (6, "the GPU failed"),
        ],
    ),
    (
        "cufft",
        &[
            (2, "memory ran out"),
            (4, "a value is invalid"),
            (6, "the GPU failed"),
            (
                7,
                "it is not initialised; does it belong to a later CUDA than the driver?",
            ),
            (8, "it has no transforms of this size"),
        ],
    ),
];

/// Turns a call's code into a result.
pub(super) fn check(call: &'static str, code: c_int) -> Result<(), String> {
    if code == 0 {
        return Ok(());
    }
    let mut libraries = MEANINGS.iter().filter(|(begin, _)| call.starts_with(begin));
    let mut codes = libraries
        .next()
        .map_or([].iter(), |(_, codes)| codes.iter());
    let meaning = codes.find(|(known, _)| *known == code);
    let meaning = meaning
        .map(|(_, meaning)| format!(": {meaning}"))
        .unwrap_or_default();
    Err(format!("{call} answered {code}{meaning}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_code_is_a_number() {
        assert_eq!(check("cublasCreate", 0), Ok(()));
        let message = |call, code| check(call, code).unwrap_err();
        assert!(message("cublasCreate", 1).starts_with("cublasCreate answered 1: it is not init"));
        assert_eq!(message("cufftExecC2C", -77), "cufftExecC2C answered -77");
    }
}

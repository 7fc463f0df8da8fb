//! The macros that a compiler of OpenCL C defines by itself: what its device reports.

use std::collections::BTreeMap;

/// What a device reports that its compiler makes macros of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// `CL_DEVICE_EXTENSIONS`, and the names of `CL_DEVICE_OPENCL_C_FEATURES`.
    pub extensions: String,
    /// `CL_DEVICE_VERSION`: 120 for OpenCL 1.2.
    pub version: u32,
    /// The language where no option names it.
    pub language: u32,
    pub has_images: bool,
    pub is_little_endian: bool,
    pub is_embedded: bool,
}

/// What drivers of NVIDIA, AMD and Intel and PoCL report between them.
const COMMON: &str = "cl_khr_3d_image_writes cl_khr_byte_addressable_store cl_khr_depth_images \
    cl_khr_fp16 cl_khr_fp64 cl_khr_global_int32_base_atomics \
    cl_khr_global_int32_extended_atomics cl_khr_int64_base_atomics \
    cl_khr_int64_extended_atomics cl_khr_local_int32_base_atomics \
    cl_khr_local_int32_extended_atomics cl_khr_mipmap_image cl_khr_spir cl_khr_subgroups \
    __opencl_c_3d_image_writes __opencl_c_atomic_order_acq_rel \
    __opencl_c_atomic_order_seq_cst __opencl_c_atomic_scope_device __opencl_c_fp64 \
    __opencl_c_generic_address_space __opencl_c_images __opencl_c_int64 \
    __opencl_c_program_scope_global_variables __opencl_c_read_write_images \
    __opencl_c_subgroups __opencl_c_work_group_collective_functions";

/// Macros with the same value everywhere.
const ALWAYS: [(&str, &str); 18] = [
    ("CL_VERSION_1_0", "100"),
    ("CL_VERSION_1_1", "110"),
    ("CL_VERSION_1_2", "120"),
    ("CL_VERSION_2_0", "200"),
    ("CL_VERSION_3_0", "300"),
    ("CHAR_BIT", "8"),
    ("CHAR_MAX", "127"),
    ("SCHAR_MAX", "127"),
    ("UCHAR_MAX", "255"),
    ("SHRT_MAX", "32767"),
    ("USHRT_MAX", "65535"),
    ("INT_MAX", "2147483647"),
    ("UINT_MAX", "0xffffffff"),
    ("LONG_MAX", "0x7fffffffffffffffL"),
    ("INT_MIN", "(-2147483647-1)"),
    ("LONG_MIN", "(-0x7fffffffffffffffL-1)"),
    ("SHRT_MIN", "(-32768)"),
    ("SCHAR_MIN", "(-128)"),
];

/// Names of other compilers' macros, which those of OpenCL C do not define.
const NEVER: [&str; 6] = [
    "__cplusplus",
    "__CUDACC__",
    "__CUDA_ARCH__",
    "__HIPCC__",
    "__METAL_VERSION__",
    "__OPENCL_CPP_VERSION__",
];

/// The macro of the language's version.
const LANGUAGE: &str = "__OPENCL_C_VERSION__";

impl Target {
    /// What common devices have between them, where the device is not known: OpenCL 3.0, and
    /// OpenCL C 1.2 unless an option says otherwise.
    pub fn common() -> Self {
        Self {
            extensions: COMMON.to_owned(),
            version: 300,
            language: 120,
            has_images: true,
            is_little_endian: true,
            is_embedded: false,
        }
    }

    /// The macros of a source that is compiled with others, which are defined after them.
    pub fn macros(&self, given: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut all: BTreeMap<String, String> = ALWAYS
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let language = given.get(LANGUAGE).and_then(|said| said.parse().ok());
        let language: u32 = language.unwrap_or(self.language);
        let mut define = |name: &str, value: u32| all.insert(name.to_owned(), value.to_string());
        define("__OPENCL_VERSION__", self.version);
        define(LANGUAGE, language);
        let is_there = |name: &&str| language >= 300 || !name.starts_with("__opencl_c_");
        for name in self.extensions.split_whitespace().filter(is_there) {
            define(name, 1);
        }
        for (name, is_defined) in [
            ("__ENDIAN_LITTLE__", self.is_little_endian),
            ("__IMAGE_SUPPORT__", self.has_images),
            ("__EMBEDDED_PROFILE__", self.is_embedded),
            // Every device of today has it; it is defined in all versions of the language.
            ("__opencl_c_int64", !self.is_embedded),
        ] {
            if is_defined {
                define(name, 1);
            }
        }
        all.extend(given.clone());
        all
    }
}

/// Whether a compiler may define a name that its device reports nothing of.
pub(super) fn is_compilers(name: &str) -> bool {
    let reserved = name.starts_with("__") || name.starts_with("FP_FAST_");
    reserved && !name.starts_with("__opencl_c_") && !NEVER.contains(&name) && !is_reported(name)
}

/// Names of which a device reports whether they are defined.
fn is_reported(name: &str) -> bool {
    [
        "__OPENCL_VERSION__",
        LANGUAGE,
        "__ENDIAN_LITTLE__",
        "__IMAGE_SUPPORT__",
        "__EMBEDDED_PROFILE__",
        "__FAST_RELAXED_MATH__",
    ]
    .contains(&name)
}

/// The macros of compiler options: `-DA=1 -D B`, and what others define.
pub fn macros_of(options: &str) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut words = options.split_whitespace();
    while let Some(word) = words.next() {
        if word == "-cl-fast-relaxed-math" {
            all.insert("__FAST_RELAXED_MATH__".to_owned(), "1".to_owned());
        } else if let Some(version) = word.strip_prefix("-cl-std=CL") {
            let digits: String = version.chars().filter(char::is_ascii_digit).collect();
            all.insert(LANGUAGE.to_owned(), format!("{digits}0"));
        } else if let Some(define) = word.strip_prefix("-D") {
            let define = match define {
                "" => words.next().unwrap_or_default(),
                define => define,
            };
            let (name, value) = define.split_once('=').unwrap_or((define, "1"));
            all.insert(name.to_owned(), value.to_owned());
        }
    }
    all
}

//! The reader of OpenCL C sources: kernels, arguments, and which buffers a
//! kernel reads and writes.

use std::collections::BTreeMap;

use pdawl_api::codelet::AddressSpace;
use pdawl_api::graph::spec::source::{Access, KernelInfo, Source, kernels, macros_of};

fn read(text: &str) -> Vec<KernelInfo> {
    kernels(text, &BTreeMap::new()).unwrap_or_default()
}

/// Returns `r`, `w`, `rw` or `-` for each pointer argument; `?` marks access that
/// is assumed.
fn uses(text: &str) -> String {
    let info = read(text).pop().expect("a kernel");
    let word = |access: &Access| {
        let word = match (access.read, access.written) {
            (true, true) => "rw",
            (true, false) => "r",
            (false, true) => "w",
            (false, false) => "-",
        };
        format!("{word}{}", if access.guessed { "?" } else { "" })
    };
    let pointers = info
        .parameters
        .iter()
        .zip(&info.accesses)
        .filter(|(p, _)| p.pointer);
    pointers
        .map(|(_, access)| word(access))
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn buffers_are_distinguished_by_the_side_on_which_they_stand() {
    for (body, expected) in [
        ("b[i] = a[i];", "r w"),
        ("b[i] += a[i];", "r rw"),
        ("b[i]++;", "- rw"),
        ("++b[i];", "- rw"),
        ("b[a[i]] = 1;", "r w"),
        ("*b = *a;", "r w"),
        ("*(b + i) = *(a + i) * 2;", "r w"),
        ("if (a[i] == b[i]) a[i] = 0;", "rw r"),
        ("float x = i * *a; b[i] = x;", "r w"),
        ("b[i] = b[i - 1] + a[i];", "r rw"),
        ("b[i].x = a[i].y;", "r w"),
        ("vstore4(vload4(i, a), i, b);", "r w"),
        ("atomic_add(&b[i], 1);", "- rw"),
        ("__global float *q = b + i; q[2] = a[i];", "r w"),
        (
            "__global float *q = b; __global float *p = q; p[2] = a[i];",
            "r w",
        ),
        ("b[i] = i; b[i] = b[i] * a[0];", "r rw"),
        ("for (int k = 0; k < 4; k++) { b[k] = a[k]; }", "r w"),
        ("unknown(a, b);", "rw? rw?"),
        ("/* b[i] = 1; */ // a[i] = 2;\n b[i] = 0;", "- w"),
        ("printf(\"a[i] = %d\", 1); b[i] = 1;", "- w"),
        ("float b2 = a[i]; s.a = b2; b[i] = 1;", "r w"),
    ] {
        let text = format!(
            "__kernel void k(__global float *a, __global float *b) {{ int i = get_global_id(0); {body} }}"
        );
        assert_eq!(uses(&text), expected, "{body}");
    }
}

/// Kernels that are compiled where common devices' compilers define what they ask for.
#[test]
fn compilers_have_macros_of_their_own() {
    let there = [
        "defined(cl_khr_fp64)",
        "__OPENCL_VERSION__ >= 120",
        "__OPENCL_C_VERSION__ >= CL_VERSION_1_1 && __OPENCL_C_VERSION__ < CL_VERSION_2_0",
        "defined cl_khr_int64_base_atomics && !defined(__cplusplus)",
        "defined(__ENDIAN_LITTLE__) && __IMAGE_SUPPORT__ == 1",
        "USE_DOUBLE",
        "AT_LEAST(1, 2)",
        "(FLAGS & 2) && (FLAGS >> 2 ? 0 : ~0) && INT_MAX > 32767",
        "defined(__opencl_c_int64) && !defined(__opencl_c_fp64)",
    ];
    let macros = "#define USE_DOUBLE (defined(cl_khr_fp64) || defined(cl_amd_fp64))\n\
                  #define AT_LEAST(a, b) (__OPENCL_VERSION__ >= 100 * a + 10 * b)\n\
                  #define FLAGS (1 | 2)\n";
    for condition in there {
        let text = format!(
            "{macros}#if {condition}\nkernel void k(global double *a) {{ a[0] = 1; }}\n\
             #else\nkernel void k(global float *a, int n) {{ }}\n#endif"
        );
        let info = read(&text).pop().expect("a kernel");
        assert_eq!(info.parameters.len(), 1, "{condition}");
        assert_eq!(info.parameters[0].type_name, "double", "{condition}");
    }
    let three = "#ifdef __opencl_c_fp64\nkernel void three(global double *a) { }\n#endif\n\
                 #if __OPENCL_C_VERSION__ == 300 && N == 4 && defined(FAST)\n\
                 kernel void all(global int *a) { }\n#endif\n\
                 #ifdef __EMBEDDED_PROFILE__\nkernel void embedded(void) { }\n#endif";
    let options = macros_of("-cl-std=CL3.0 -D N=4 -DFAST -cl-mad-enable");
    let names: Vec<String> = kernels(three, &options)
        .unwrap_or_default()
        .into_iter()
        .map(|kernel| kernel.name)
        .collect();
    assert_eq!(names, ["three", "all"]);
}

/// What the reader cannot know of a compiler keeps a kernel from being divided by its text.
#[test]
fn macros_that_nobody_knows_are_no_facts() {
    let of = |condition: &str| {
        let text = format!(
            "#ifndef __GUARD\n#define __GUARD 1\n#endif\n#if {condition}\n#define X 1\n#endif\n\
             kernel void k(global int *a) {{ a[get_global_id(0)] = 1; }}"
        );
        let source = Source::new(&text, &BTreeMap::new());
        (source.is_certain(), source.divisible("k").is_ok())
    };
    for known in [
        "defined(cl_khr_gl_sharing)",
        "MINE",
        "defined(__CUDACC__)",
        "__GUARD",
    ] {
        assert_eq!(of(known), (true, true), "{known}");
    }
    for unknown in ["defined(__clang__)", "__GPU__", "FP_FAST_FMAF", "1 +"] {
        assert_eq!(of(unknown), (false, false), "{unknown}");
    }
}

#[test]
fn pointers_are_followed_into_functions() {
    let text = "
        void put(__global int *to, int x) { to[0] = x; }
        int take(__global const int *from) { return from[1]; }
        static inline int both(__global int *p, int n) { p[n] -= take(p); return 0; }
        __kernel void k(__global int *a, __global int *b, __global int *c) {
            put(a + 3, take(b));
            both(&c[4], 2);
        }";
    assert_eq!(uses(text), "w r rw");
}

#[test]
fn const_and_constant_are_never_written() {
    let text = "__kernel void k(__constant float4 *table, const __global int * restrict a,
                                __global int * const b, __local float *l) { f(table, a); b[0] = 1; }";
    let info = &read(text)[0];
    let parameter = |i: usize| {
        let p = &info.parameters[i];
        (
            p.name.as_str(),
            p.type_name.as_str(),
            p.address,
            p.read_only,
        )
    };
    assert_eq!(
        parameter(0),
        ("table", "float4", AddressSpace::Constant, true)
    );
    assert_eq!(parameter(1), ("a", "int", AddressSpace::Global, true));
    assert_eq!(parameter(2), ("b", "int", AddressSpace::Global, false));
    assert_eq!(parameter(3), ("l", "float", AddressSpace::Local, false));
    assert!(!info.accesses[0].written && !info.accesses[1].written);
    assert!(info.accesses[2].written && info.uses_groups);
}

#[test]
fn dimensions_groups_atomics_and_doubles_are_seen() {
    let facts = |text: &str| {
        let info = read(text).pop().expect("a kernel");
        (
            info.dimension,
            info.dimension_guessed,
            info.uses_groups,
            info.atomics,
            info.fp64,
        )
    };
    let kernel = |body: &str| format!("kernel void k(global int *a) {{ {body} }}");
    assert_eq!(
        facts(&kernel("a[get_global_id(0)] = 1;")),
        (1, false, false, false, false)
    );
    assert_eq!(facts(&kernel("a[get_global_id(2)] = 1;")).0, 3);
    assert_eq!(
        facts(&kernel(
            "for (int d = 0; d < 2; d++) a[d] = get_global_id(d);"
        )),
        (3, true, false, false, false)
    );
    assert!(facts(&kernel("a[get_group_id(1)] = 1;")).2);
    assert!(facts(&kernel("atomic_inc(a);")).3);
    assert!(facts(&kernel("a[0] = (int)(double)1;")).4);
    let helper = "int where(void) { return get_group_id(1); }
                  kernel void k(global int *a) { a[0] = where(); }";
    assert_eq!(facts(helper), (2, false, true, false, false));
}

#[test]
fn conditions_and_macros_are_followed() {
    let text = "
        #define REAL float
        #define N 4
        #if defined(WIDE) && N == 4
        __kernel void wide(__global REAL *x) { x[0] = N; }
        #elif N > 4
        __kernel void many(__global REAL *x) { x[0] = N; }
        #else
        __kernel void narrow(__global REAL \\
                             *x) { x[0] = N; }
        #endif
        #ifndef WIDE
        #undef N
        #endif
        #ifdef N
        __kernel void last(__global const REAL *x, __global REAL *y) { y[0] = x[0]; }
        #endif";
    let names = |macros: &[(&str, &str)]| -> Vec<String> {
        let macros = macros
            .iter()
            .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
            .collect();
        let all = kernels(text, &macros).expect("brackets that close");
        assert!(
            all.iter()
                .all(|info| info.parameters[0].type_name == "float")
        );
        all.into_iter().map(|info| info.name).collect()
    };
    assert_eq!(names(&[]), ["narrow"]);
    assert_eq!(names(&[("WIDE", "1")]), ["wide", "last"]);
}

#[test]
fn several_kernels_attributes_and_odd_layouts_are_read() {
    let text = "
        typedef struct { int a; } pair;
        __constant int table[3] = { 1, 2, 3 };
        __attribute__((reqd_work_group_size(8, 4, 1)))
        __kernel void one(__global pair *p) { p->a = 1; }
        __kernel __attribute__((reqd_work_group_size(16,1,1))) void
        two
        (
          __global float *x,
          unsigned int n
        )
        { x[n] = table[0]; }
        void no_kernel(int x);
        kernel void three() { }";
    let all = read(text);
    let names: Vec<&str> = all.iter().map(|info| info.name.as_str()).collect();
    assert_eq!(names, ["one", "two", "three"]);
    assert_eq!(all[0].required_local, Some(vec![8, 4, 1]));
    assert_eq!(all[1].required_local, Some(vec![16, 1, 1]));
    assert_eq!(all[1].parameters[1].type_name, "unsigned int");
    assert!(all[0].accesses[0].written && !all[0].accesses[0].read);
    assert!(all[2].parameters.is_empty());
}

#[test]
fn a_function_is_followed_once_however_often_it_is_called() {
    // Each function calls the previous one twice, so there are 2^40 call paths.
    let mut text = "void f0(__global float *x) { x[0] = 1; }\n".to_owned();
    for k in 1..40 {
        let before = k - 1;
        text += &format!("void f{k}(__global float *x) {{ f{before}(x); f{before}(x); }}\n");
    }
    text += "kernel void all(__global float *x) { f39(x); f39(x); }";
    assert_eq!(uses(&text), "w");
    // Very deep and recursive calls are not followed to the end.
    let mut text = "void f0(__global float *x) { x[0] = 1; }\n".to_owned();
    for k in 1..20_000 {
        let before = k - 1;
        text += &format!("void f{k}(__global float *x) {{ f{before}(x); }}\n");
    }
    text += "kernel void all(__global float *x) { f19999(x); }";
    assert_eq!(uses(&text), "rw?");
    let round = "void a(__global float *x) { b(x); } void b(__global float *x) { a(x); }
                 kernel void all(__global float *x) { b(x); }";
    assert_eq!(uses(round), "rw?");
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "(\\PC|[(){}\\[\\];,*#=&\"'/\n]|__kernel |void |k|x|if |define ){0,60}") {
        let _ = read(&text);
        let _ = read(&format!("__kernel void k(__global int *x) {{ {text}"));
    }
}

//! What is rewritten of a source, and what stays.

use super::*;

fn rewritten(text: &str) -> String {
    let rewritten = rewrite(text).unwrap().text;
    assert_eq!(
        rewritten.matches('\n').count(),
        text.matches('\n').count(),
        "lines stay: {rewritten}"
    );
    rewritten
}

/// The rewritten text with single blanks.
fn words(text: &str) -> String {
    let text = rewritten(text);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_literal_of_a_vector_is_a_constructor() {
    for (from, to) in [
        ("x = (float4)(a, b, c, d);", "x = float4 (a, b, c, d);"),
        ("x = (uint2)(7);", "x = uint2 (7);"),
        ("return(int8)\n(a, f(b));", "return int8 (a, f(b));"),
        ("x = (double2){1, 2};", "x = double2 {1, 2};"),
        ("x = (pair)(a, b);", "x = pair (a, b);"),
        ("return (pair)(a, b);", "return pair (a, b);"),
        ("#define F(a) (float2)(a, a)", "#define F(a) float2 (a, a)"),
        ("#define F(a) (pair)(a, a)", "#define F(a) pair (a, a)"),
        (
            "#define ALL a, f(b)\nx = (pair)(ALL);",
            "#define ALL a, f(b) x = pair (ALL);",
        ),
        (
            "#define F(t, ...) (t)(__VA_ARGS__)",
            "#define F(t, ...) t (__VA_ARGS__)",
        ),
        (
            "#define F \\\n (float2)(1, \\\n 2)",
            "#define F \\ float2 (1, \\ 2)",
        ),
    ] {
        assert_eq!(words(from), to, "{from}");
    }
}

#[test]
fn casts_calls_and_conditions_stay() {
    for text in [
        "x = (uint)(a + b);",
        "x = (vec)(alpha);",
        "x = (vec)(f(a, b));",
        "#define CALL f(a, b)\nx = (vec)(CALL);",
        "if (x) { y = 1; }",
        "while (x) (f(a, b));",
        "f(x)(a, b);",
        "x = (a)[i];",
        "void f(void) { }",
        "// (float4)(a, b, c, d) kernel\n",
        "/* local float x; (float2)(a, b) */",
        "s = \"(float4)(1, 2, 3, 4) global\";",
    ] {
        assert_eq!(rewritten(text), text);
    }
}

#[test]
fn local_memory_is_declared_and_pointers_to_it_are_plain() {
    for (from, to) in [
        ("__local float tile[4][5];", "__shared__ float tile[4][5];"),
        (
            "local int total, places[8];",
            "__shared__ int total, places[8];",
        ),
        (
            "volatile local int total;",
            "volatile __shared__ int total;",
        ),
        ("__local struct pair one;", "__shared__ struct pair one;"),
        (
            "__local __attribute__((aligned(16))) float x[4];",
            "__shared__ __attribute__((aligned(16))) float x[4];",
        ),
        ("__local float *to = from;", "float *to = from;"),
        ("float __local *to;", "float *to;"),
        ("__local const vec *const to;", "const vec *const to;"),
        ("x = *(__local const vec *)(y);", "x = *( const vec *)(y);"),
        ("float (local *row)[4];", "float ( *row)[4];"),
        ("local float (*rows)[4] = tile;", "float (*rows)[4] = tile;"),
        (
            "float sum(__local float *x, uint n);",
            "float sum( float *x, uint n);",
        ),
        (
            "float sum(__local float x[16]);",
            "float sum( float x[16]);",
        ),
        ("#define ROW __local float *", "#define ROW float *"),
        (
            "#define TILE(n) __local float n[8];",
            "#define TILE(n) __shared__ float n[8];",
        ),
    ] {
        assert_eq!(words(from), to, "{from}");
    }
    // Branches that open a parenthesis each.
    let branches = "#if A\nif (a && (b\n#else\nif (c && (d\n#endif\n)) ;\nlocal int x;";
    assert!(rewritten(branches).ends_with("__shared__ int x;"));
}

#[test]
fn an_argument_in_local_memory_is_an_offset() {
    assert_eq!(
        words(
            "kernel void f(global float *a,\n    __local const float4 *restrict x, local int *y)\n{\n}"
        ),
        "__kernel void f(__global float *a, PDAWL_LOCAL_ARGUMENT(x), PDAWL_LOCAL_ARGUMENT(y)) \
         { PDAWL_LOCAL_POINTER(x, const float4 * __restrict__) PDAWL_LOCAL_POINTER(y, int *) }"
    );
    assert_eq!(
        words("__kernel __attribute__((reqd_work_group_size(8, 1, 1))) void f(local int *y) {}"),
        "__kernel __attribute__((reqd_work_group_size(8, 1, 1))) void \
         f(PDAWL_LOCAL_ARGUMENT(y)) { PDAWL_LOCAL_POINTER(y, int *)}"
    );
    // A list for each branch, and one body.
    let branches = "__kernel\n#if A\nvoid f(local int *y)\n#else\nvoid g(local int *y, int n)\n\
                    #endif\n{ }";
    let text = words(branches);
    assert_eq!(text.matches("PDAWL_LOCAL_ARGUMENT(y)").count(), 2, "{text}");
    assert_eq!(
        text.matches("PDAWL_LOCAL_POINTER(y, int *)").count(),
        1,
        "{text}"
    );
    // A declaration has no body.
    let declared = words("kernel void f(local int *y);\nvoid g(local int *y) { }");
    assert_eq!(
        declared,
        "__kernel void f(PDAWL_LOCAL_ARGUMENT(y)); void g( int *y) { }"
    );
}

#[test]
fn words_have_underscores_and_names_of_cpp_a_prefix() {
    assert_eq!(
        words("constant int table[2] = {1, 2}; private int new = this + xor_;"),
        "__constant int table[2] = {1, 2}; __private int pdawl_new = pdawl_this + xor_;"
    );
}

#[test]
fn parts_of_vectors_are_found() {
    let rewritten = rewrite("a.xyz + b->s0F.lo + x.y\n#define P(v) v.wx\nint s10;").unwrap();
    assert_eq!(rewritten.swizzles, ["s0F", "s10", "wx", "xyz"]);
    let macros = swizzle_macros(&rewritten.swizzles);
    let lines: Vec<&str> = macros.lines().collect();
    assert_eq!(lines[0], "#define PDAWL_SWIZZLES_2 swizzle<T, 1, 0> s10;");
    assert_eq!(
        lines[2],
        "#define PDAWL_SWIZZLES_4 swizzle<T, 1, 0> s10; swizzle<T, 3, 0> wx; \
         swizzle<T, 0, 1, 2> xyz;"
    );
    assert_eq!(
        lines[4],
        "#define PDAWL_SWIZZLES_16 swizzle<T, 0, 15> s0F; swizzle<T, 1, 0> s10;"
    );
}

#[test]
fn fused_operations_are_excluded_by_the_pragma() {
    let text = "#pragma OPENCL FP_CONTRACT OFF\nvoid f();";
    assert!(rewrite(text).unwrap().keeps_operations_separate);
    let text = text.replace("OFF", "ON");
    assert!(!rewrite(&text).unwrap().keeps_operations_separate);
    let text = "// #pragma OPENCL FP_CONTRACT OFF\n";
    assert!(!rewrite(text).unwrap().keeps_operations_separate);
}

#[test]
fn what_cannot_be_carried_is_named_with_its_line() {
    for (text, part) in [
        ("\n\n#include \"other.cl\"\n", "line 3 includes a file"),
        (
            "int x;\nlocal float a[4], *b;",
            "line 2 declares local memory and a pointer",
        ),
    ] {
        let why = rewrite(text).unwrap_err();
        assert!(why.contains(part), "{why}");
    }
}

#[test]
fn no_text_is_too_strange() {
    for text in [
        "",
        "#",
        "#define",
        "#define F(",
        "(",
        "(float4)(",
        "local",
        "kernel",
        "kernel void f(",
        "/*",
        "\"",
        "'",
        "\\",
        "é(float4)(é, 1)",
        "#define X \\\n",
        "kernel (local *",
        "a\r\n\\\r\nb",
    ] {
        let done = rewrite(text).unwrap();
        assert_eq!(done.text.matches('\n').count(), text.matches('\n').count());
    }
}

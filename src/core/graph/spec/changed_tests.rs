//! Specifications and sources that nobody meant.

use std::collections::BTreeMap;
use std::fs;

use super::source::Source;
use super::{Specification, load};
use crate::changed::changed;
use crate::expression::Symbols;

const SOURCE: &[u8] = b"#define J(a, b) a##b
#define MANY(x, ...) x(__VA_ARGS__) x(__VA_ARGS__)
#if defined(N) && N > 2
typedef global float *numbers;
#endif
typedef float real; typedef real real_t;
real get(global const real_t *from, int i) { return from[i]; }
__kernel __attribute__((reqd_work_group_size(8, 1, 1)))
void J(k, 1)(global real_t *restrict out, __constant float4 *in, local int *tmp, int n) {
    int i = get_global_id(0);
    global float *q = (global float *)(&out[i]), *r = q;
    if (i < n) { for (int j = 0; j < n; j++) *r += get(out, j) * in[j].x; } else return;
    do { tmp[i] = MANY(get, q, 1); } while (i--);
    switch (i) { case 1: vstore4(in[0], i, out); break; default: out[(i + 1) * 2] = 0; }
}
";

const KERNEL: &[u8] = br#"{"src": "k.cl", "name": "k1", "workDimension": 1,
 "globalWorkSize": ["n*2"], "localWorkSize": "[8]",
 "inputBuffers": [{"type": "float4", "size": "n", "pos": 1, "break": 0}],
 "outputBuffers": [{"type": "float", "size": "n*n/2", "pos": 0, "break": "1"}],
 "varArguments": [{"type": "int", "pos": 3, "value": "n"}],
 "localArguments": [{"type": "int", "pos": 2, "size": 64}],
 "macros_values": {"N": 3, "T": "float"}, "symbolicVariables": {"n": 64}, "partition": 10}"#;

const LINES: &[u8] = b"0 k.json {\"n\": 64}\n1 k.json {'n': 32}\n---\n0 0->1 1\n---\n";

#[test]
fn changed_sources_are_read_or_refused() {
    let words = [
        "#define A A",
        "#define D(x) x x\n",
        "##",
        "(",
        ")",
        "{",
        "}",
        "*",
        "&",
        "q = ",
        "do ",
        "if (",
        "#if ",
        "#else\n",
        "#endif\n",
        "/*",
        "\"",
        "\\\n",
        "typedef ",
        "__VA_ARGS__",
        "...",
        "p[i]",
        "->",
        "kernel ",
        "J(",
        ";",
    ];
    let options = BTreeMap::from([("N".to_owned(), "3".to_owned())]);
    changed(&[SOURCE], &words, |bytes| {
        let source = Source::new(&String::from_utf8_lossy(bytes), &options);
        for kernel in source.kernels().into_iter().flatten() {
            assert_eq!(kernel.accesses.len(), kernel.parameters.len());
            let _ = source.divisible(&kernel.name);
        }
    });
}

#[test]
fn changed_specifications_are_read_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("k.cl"), SOURCE).unwrap();
    fs::write(folder.path().join("k.json"), KERNEL).unwrap();
    let list = [b"[", KERNEL, b", ", KERNEL, b"]"].concat();
    let file = folder.path().join("changed");
    let words = [
        "\"size\": ",
        "\"pos\"",
        "\"depends\": [0],",
        "\"id\": 1,",
        "{",
        "[",
        "]",
        "}",
        "\"n/0\"",
        "\"(((n)))\"",
        "**",
        "true",
        "null",
        "---\n",
        "->",
        "double",
        "image2d_t",
    ];
    changed(&[KERNEL, &list, LINES], &words, |bytes| {
        fs::write(&file, bytes).unwrap();
        if let Ok(Specification::Kernel(spec)) = load(&file)
            && let Ok(kernel) = spec.resolve(&Symbols::new(), None)
        {
            let _ = spec.agrees_with_source(&kernel);
        }
    });
}

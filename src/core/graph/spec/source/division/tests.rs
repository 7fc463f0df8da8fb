use std::collections::BTreeMap;

use super::*;
use crate::graph::spec::source::Source;

/// What a text tells of the kernel `k`.
fn divisible(text: &str) -> Result<Divisible, Indivisible> {
    Source::new(text, &BTreeMap::new()).divisible("k")
}

/// What is known of the kernel `k` with these parameters and this body.
fn division(parameters: &str, body: &str) -> Result<Divisible, Indivisible> {
    let text = format!("kernel void k({parameters}) {{ int i = get_global_id(0); {body} }}");
    divisible(&text)
}

const PARAMETERS: &str = "global float *out, global const float *a, global const int *index, \
                          int n, float s, local int *tmp";

fn of(body: &str) -> Divisible {
    division(PARAMETERS, body).unwrap_or_else(|why| panic!("{body}: {why}"))
}

fn set(all: &[usize]) -> BTreeSet<usize> {
    all.iter().copied().collect()
}

#[test]
fn addresses_of_numbers_and_scalars_depend_on_no_data() {
    for (body, scalars) in [
        ("out[i] = s * a[i];", &[][..]),
        ("out[i] = a[index[i]];", &[]),
        ("out[n - 1 - i] = a[i];", &[3]),
        ("if (i < n) out[i] = a[i];", &[3]),
        ("if (i >= n) return; out[i] = 1;", &[3]),
        ("for (int k = 0; k < n; k++) out[i * 4 + k] = a[k];", &[3]),
        (
            "float t = 0; for (int k = 0; k < n; k++) t += a[k]; out[i] = t;",
            &[],
        ),
        ("float t = a[i]; if (t > 1) t = 2; out[i] = t;", &[]),
        ("out[i] = a[i] > 0 ? a[i] : index[i];", &[]),
        ("*(out + i) = a[i];", &[]),
        ("*out = 1;", &[]),
        ("global float *q = out + n; q[i] += a[i];", &[3]),
        (
            "tmp[get_local_id(0)] = index[i]; barrier(1); out[i] = tmp[0];",
            &[],
        ),
        ("vstore4(vload4(i, a), i, out);", &[]),
        ("int x = n, *p = &x; *p = 3; out[x] = 1;", &[3]),
    ] {
        let division = of(body);
        assert!(!division.is_by_data(), "{body}: {division:?}");
        assert_eq!(division.scalars, set(scalars), "{body}");
    }
}

#[test]
fn addresses_and_conditions_of_data_are_seen() {
    for (body, deciding) in [
        ("out[index[i]] = 1;", &[2][..]),
        ("int j = index[i]; out[j] = 1;", &[2]),
        ("int j = 0; j = i + index[i]; j++; out[j] = 1;", &[2]),
        ("if (a[i] > 0) out[i] = 1;", &[1]),
        ("if (a[i] > 0) return; out[i] = 1;", &[1]),
        ("float t = a[i]; if (t > 0) { out[i] = t; }", &[1]),
        ("int j = 0; if (a[i] > 0) j = 1; out[j] = 1;", &[1]),
        ("for (int k = 0; k < index[i]; k++) out[i + k] = 1;", &[2]),
        ("int k = 0; while (a[k] > 0) k++; out[k] = 1;", &[1]),
        ("int k = 0; do { k++; } while (a[k] > 0); out[k] = 1;", &[1]),
        (
            "int k; for (k = 0; k < n; k++) if (a[k] > 0) break; out[k] = 1;",
            &[1],
        ),
        (
            "switch (index[i]) { case 1: out[i] = 1; break; default: ; }",
            &[2],
        ),
        ("out[out[i] > 0 ? i : 0] = 1;", &[0]),
        ("a[i] > 0 && (out[i] = 1);", &[0, 1]),
        ("*(out + index[i]) = 1;", &[2]),
        ("out[*(index + i)] = 1;", &[2]),
        ("global float *q = out + index[i]; q[0] = 1;", &[2]),
        (
            "global const int *q = index + 1; int j = q[i]; out[j] = 1;",
            &[2],
        ),
        (
            "tmp[get_local_id(0)] = index[i]; barrier(1); out[tmp[0]] = 1;",
            &[2],
        ),
        ("int t[2]; t[0] = index[i]; out[t[0]] = 1;", &[2]),
        ("int t[2], *p = t; p[0] = index[i]; out[t[0]] = 1;", &[2]),
        ("int x = 0, *p = &x; *p = index[i]; out[x] = 1;", &[2]),
        ("float f; float w = fract(a[i], &f); out[(int)f] = 1;", &[1]),
        ("vstore4(vload4(i, a), index[i], out);", &[2]),
        ("int4 v = vload4(i, index); out[v.x] = 1;", &[2]),
        ("struct { int j; } c; c.j = index[i]; out[c.j] = 1;", &[2]),
        (
            "event_t e = async_work_group_copy(tmp, index, 4, 0); out[tmp[0]] = 1;",
            &[2],
        ),
    ] {
        let division = of(body);
        assert_eq!(division.deciding, set(deciding), "{body}: {division:?}");
    }
}

#[test]
fn atomics_on_local_memory_decide_by_chance() {
    let division = of("int j = atomic_inc(tmp); out[j] = a[i];");
    assert!(division.by_chance && division.is_by_data(), "{division:?}");
    let division = of("atomic_inc(&tmp[0]); barrier(1); out[tmp[0]] = a[i];");
    assert!(division.is_by_data(), "{division:?}");
}

#[test]
fn helpers_are_followed() {
    let read = |helpers: &str, body: &str| {
        let text =
            format!("{helpers} kernel void k({PARAMETERS}) {{ int i = get_global_id(0); {body} }}");
        divisible(&text).unwrap_or_else(|why| panic!("{body}: {why}"))
    };
    let put = "void put(global float *to, int at, float x) { to[at] = x; }";
    assert!(!read(put, "put(out, i, a[i]);").is_by_data());
    assert_eq!(read(put, "put(out, index[i], 1);").deciding, set(&[2]));
    assert_eq!(read(put, "put(out + index[i], i, 1);").deciding, set(&[2]));
    assert_eq!(
        read(put, "if (a[i] > 0) put(out, i, 1);").deciding,
        set(&[1])
    );
    assert_eq!(read(put, "put(out, n, 1);").scalars, set(&[3]));
    let get = "int get(global const int *from, int at) { return from[at]; }";
    assert_eq!(read(get, "out[get(index, i)] = 1;").deciding, set(&[2]));
    assert!(!read(get, "out[i] = get(index, i);").is_by_data());
    let set_it = "void set(int *x, int y) { *x = y; }";
    assert_eq!(
        read(set_it, "int j; set(&j, index[i]); out[j] = 1;").deciding,
        set(&[2])
    );
    let macros = "#define AT(i, j) (index[i] + (j))\n#define PUT(j) out[j] = 1\n";
    assert_eq!(read(macros, "out[AT(i, 2)] = 1;").deciding, set(&[2]));
    assert_eq!(read(macros, "PUT(AT(i, 2));").deciding, set(&[2]));
    assert!(!read(macros, "PUT(i);").is_by_data());
}

#[test]
fn what_a_trial_must_leave_is_reported() {
    assert_eq!(of("out[i] = s * a[i];").fixed, set(&[]));
    assert_eq!(of("out[i] = a[index[i]];").fixed, set(&[2]));
    assert_eq!(
        of("for (int k = 0; k < n; k++) out[i] = s;").fixed,
        set(&[3])
    );
    assert_eq!(of("out[i] = n / index[i] + a[i] / s;").fixed, set(&[2, 3]));
    assert_eq!(
        of("float x = a[i]; while (x > s) x *= 0.5f; out[i] = x;").fixed,
        set(&[1, 4])
    );
}

#[test]
fn types_stand_behind_their_names() {
    let text = "typedef unsigned int word; typedef word id; typedef float4 real;\n\
                kernel void k(global const id *a, global real *b, struct s c) { b[0] = 1; }";
    let division = divisible(text).unwrap();
    assert_eq!(division.types, ["unsigned int", "float4", "s"]);
}

#[test]
fn kernels_whose_groups_talk_are_refused() {
    use Indivisible::*;
    let k = || "k".to_owned();
    for (parameters, body, why) in [
        ("global int *o", "atomic_inc(o);", Atomics(k())),
        (
            "global int *o",
            "global int *p = o; atom_add(p + i, 1);",
            Atomics(k()),
        ),
        ("global volatile int *o", "o[i] = 1;", Volatile),
        ("global int *o", "printf(\"%d\", i); o[i] = 1;", Prints(k())),
        ("global int *o", "o[i] = get_work_dim();", Dimensions(k())),
        ("global int *o", "unknown(o);", Argument(0)),
        (
            "global int *o",
            "goto end; o[i] = 1; end: ;",
            Unreadable(k()),
        ),
        ("write_only image2d_t o", "", Image(0)),
        (
            "global int *o",
            "size_t x = (size_t)o; *(global int *)x = 1;",
            Pointer(k()),
        ),
        (
            "global int *o",
            "o[i] = work_group_all(i);",
            UnknownFunction("work_group_all".into()),
        ),
    ] {
        assert_eq!(division(parameters, body), Err(why), "{body}");
    }
    let read = |text: &str| divisible(text);
    let plain = "kernel void k(global int *o) { o[0] = 1; }";
    assert!(read(plain).is_ok());
    assert_eq!(read("kernel void other() {}"), Err(NoKernel));
    assert_eq!(read(&format!("#include \"x\"\n{plain}")), Err(Includes));
    let types = format!("struct s {{ global int *p; }}; {plain}");
    assert_eq!(read(&types), Err(PointerTypes));
    let joined = "#define SET(x) o##x[0] = 1\nkernel void k(global int *o1) { SET(1); }";
    assert_eq!(
        read(joined),
        read("kernel void k(global int *o1) { o1[0] = 1; }")
    );
    let named = "#define SET(x...) o[x] = 1\nkernel void k(global int *o) { SET(1); }";
    assert_eq!(read(named), Err(Macros));
    let helper = "void f(global int *p) { atomic_inc(p); } kernel void k(global int *o) { f(o); }";
    assert_eq!(read(helper), Err(Atomics("f".into())));
}

#[test]
fn pointers_to_arrays_hide_no_data() {
    for body in [
        "global float (*q)[4] = (global float (*)[4])out; q[index[i]][0] = 1;",
        "global float (*q)[4] = (global float (*)[4])out; q[i][index[i]] = 1;",
        "global float (*q)[4] = (global float (*)[4])&out[index[i]]; q[0][1] = 1;",
        "global float (*q)[4] = (global float (*)[4])(out + index[i]); (*q)[1] = 1;",
        "global float (*q)[4] = (global float (*)[4])out; if (a[i] > 0) q[i][1] = 1;",
        "((global float (*)[4])out)[index[i]][0] = 1;",
    ] {
        let division = division(PARAMETERS, body);
        assert!(
            division.as_ref().map_or(true, Divisible::is_by_data),
            "{body}: {division:?}"
        );
    }
}

#[test]
fn what_is_touched_depends_on_no_data() {
    for body in [
        "out[i] = s * a[i];",
        "if (i < n) out[i] = a[i] / 2;",
        "float t = a[i]; if (t > 1) t = 2; out[i] = t;",
        "float t = a[i]; out[i] = t > 0 ? t : 0;",
        "for (int k = 0; k < n; k++) out[i * 4 + k] = a[k];",
        "tmp[get_local_id(0)] = index[i]; barrier(1); out[i] = tmp[0];",
        "local int *row = tmp + n; row[0] = index[i]; out[i] = row[1] * a[i];",
        "local int *row = &tmp[n]; row[0] = index[i]; out[i] = row[1];",
        "float v[4]; v[0] = a[i]; v[1] = v[0] * 2; out[i] = v[1];",
        "global const float *q = a + n; out[i] = q[0] + *q;",
        "vstore4(vload4(i, a), i, out);",
        "float t = sqrt(a[i]) / a[i]; out[i] = t;",
        "int t = index[i] / 3 + index[i] % 7; out[i] = t;",
    ] {
        let division = of(body);
        assert!(!division.touches_by_data, "{body}: {division:?}");
    }
}

#[test]
fn what_is_touched_depends_on_data() {
    for body in [
        "out[i] = a[index[i]];",
        "out[index[i]] = 1;",
        "if (a[i] > 0) out[i] = a[i + n];",
        "float t = a[i]; if (t > 0) t = a[i + n]; out[i] = t;",
        "if (a[i] > 0) return; out[i] = a[i + n];",
        "out[i] = a[i] > 0 ? a[i + n] : 0;",
        "if (a[i] > 0 && a[i + n] > 0) out[i] = 1;",
        "float t = a[i]; while (t > 1) t *= s; out[i] = t;",
        "for (int k = 0; k < index[i]; k++) out[i] += a[0];",
        "float v[4]; v[index[i]] = 1; out[i] = v[0];",
        "float v[4]; float t = *(v + index[i]); out[i] = t;",
        "tmp[index[i]] = 1; out[i] = tmp[0];",
        "local int *row = tmp + index[i]; row[0] = 1; out[i] = 2;",
        "local int *row = &tmp[index[i]]; out[i] = row[0];",
        "tmp[0] = index[i]; local int *row = tmp + tmp[0]; out[i] = *row;",
        "global const float *q = a + index[i]; out[i] = q[0];",
        "global const float *q = a; q += index[i]; out[i] = *q;",
        "out[i] = 7 / index[i];",
        "int t = n % index[i]; out[i] = t;",
        "if (index[i]) out[i] = n / n;",
        "vstore4(vload4(index[i], a), i, out);",
    ] {
        let division = of(body);
        assert!(division.touches_by_data, "{body}: {division:?}");
    }
    // Through a function's pointer to local memory.
    let text = |call: &str| {
        format!(
            "void put(local int *to, int v) {{ to[0] = v; }}
             kernel void k(global int *out, global const int *index, local int *tmp) {{
                 int i = get_global_id(0);
                 {call}
                 out[i] = tmp[0];
             }}"
        )
    };
    for (call, by_data) in [
        ("put(tmp + index[i], 1);", true),
        ("put(tmp + 1, index[i]);", false),
        ("if (index[i]) put(tmp + 1, 1);", true),
    ] {
        let division = divisible(&text(call)).unwrap();
        assert_eq!(division.touches_by_data, by_data, "{call}: {division:?}");
    }
    // What cannot be read is by data.
    let known = BTreeMap::new();
    let atomic = "kernel void k(global int *n) { atomic_inc(n); }";
    assert!(super::super::touches_by_data(atomic, &known, "k"));
}

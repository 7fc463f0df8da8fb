//! The kernels under test: in one, two and three dimensions, with and without
//! local sizes, with barriers and local memory, of odd sizes, and with functions
//! that ask for group ids and sizes.

pub use super::case::Case;

/// All kernels under test.
pub fn cases() -> Vec<Case> {
    vec![
        Case {
            name: "vadd",
            source: "__kernel void k(__global const float *a, __global const float *b, __global float *c, int n) {
    int i = get_global_id(0);
    if (i < n) c[i] = a[i] + b[i];
}",
            dimension: 1,
            global: "[n]",
            local: "",
            inputs: &[("float", "n", 0, true), ("float", "n", 1, true)],
            outputs: &[("float", "n", 2, true)],
            io: &[],
            values: &[("int", "partition_round(n, size_percent)", 3)],
            locals: &[],
            macros: &[],
            symbols: &[("n", 1009)],
            sliced: &[0, 1, 2],
        },
        Case {
            name: "axpy in place",
            source: "__kernel void k(float a, __global const float *x, __global float *y) {
    int i = get_global_id(0);
    y[i] = a * x[i] + y[i];
}",
            dimension: 1,
            global: "n",
            local: "",
            inputs: &[("float", "n", 1, false)],
            outputs: &[],
            io: &[("float", "n", 2, true)],
            values: &[("float", "1.5", 0)],
            locals: &[],
            macros: &[],
            symbols: &[("n", 1009)],
            sliced: &[2],
        },
        Case {
            name: "axpy in place, undivided",
            source: "__kernel void k(__global int *y) {
    int i = get_global_id(0);
    y[i] = 3 * y[i] + i;
}",
            dimension: 1,
            global: "n",
            local: "",
            inputs: &[],
            outputs: &[],
            io: &[("int", "n", 0, false)],
            values: &[],
            locals: &[],
            macros: &[],
            symbols: &[("n", 640)],
            sliced: &[],
        },
        Case {
            name: "group ids",
            source: "__kernel void k(__global int *out) {
    out[get_global_id(0)] = get_group_id(0) * 100000 + get_local_id(0) * 100 + get_num_groups(0);
}",
            dimension: 1,
            global: "[n]",
            local: "[7]",
            inputs: &[],
            outputs: &[("int", "n", 0, true)],
            io: &[],
            values: &[],
            locals: &[],
            macros: &[],
            symbols: &[("n", 371)],
            sliced: &[0],
        },
        Case {
            name: "group ids, any size",
            source: "__kernel void k(__global int *out) {
    out[get_global_id(0)] = get_group_id(0) * 1000 + get_num_groups(0);
}",
            dimension: 1,
            global: "[n]",
            local: "",
            inputs: &[],
            outputs: &[("int", "n", 0, true)],
            io: &[],
            values: &[],
            locals: &[],
            macros: &[],
            symbols: &[("n", 186)],
            sliced: &[0],
        },
        Case {
            name: "global size",
            source: "__kernel void k(__global uint *out) {
    size_t i = get_global_id(0);
    out[i] = (uint)(get_global_size(0) - i + 7 * get_global_size(1) + get_global_offset(0));
}",
            dimension: 1,
            global: "[n]",
            local: "",
            inputs: &[],
            outputs: &[("uint", "n", 0, true)],
            io: &[],
            values: &[],
            locals: &[],
            macros: &[],
            symbols: &[("n", 1009)],
            sliced: &[0],
        },
        Case {
            name: "reverse",
            source: "__kernel void k(__global const short *in, __global short *out) {
    size_t i = get_global_id(0);
    out[get_global_size(0) - 1 - i] = in[i];
}",
            dimension: 1,
            global: "[n]",
            local: "",
            inputs: &[("short", "n", 0, false)],
            outputs: &[("short", "n", 1, false)],
            io: &[],
            values: &[],
            locals: &[],
            macros: &[],
            symbols: &[("n", 1009)],
            sliced: &[],
        },
        Case {
            name: "sums of groups",
            source: "__kernel void k(__global const float *in, __global float *out, __local float *part) {
    int i = get_local_id(0);
    part[i] = in[get_global_id(0)];
    for (int s = get_local_size(0) / 2; s > 0; s /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (i < s) part[i] += part[i + s];
    }
    if (i == 0) out[get_group_id(0)] = part[0];
}",
            dimension: 1,
            global: "[n]",
            local: "[16]",
            inputs: &[("float", "n", 0, true)],
            outputs: &[("float", "n/16", 1, true)],
            io: &[],
            values: &[],
            locals: &[("float", "16", 2)],
            macros: &[],
            symbols: &[("n", 592)],
            sliced: &[0, 1],
        },
        Case {
            name: "grid stride",
            source: "__kernel void k(__global const int *in, __global int *out, uint n) {
    for (size_t i = get_global_id(0); i < n; i += get_global_size(0))
        out[i] = 2 * in[i];
}",
            dimension: 1,
            global: "[w]",
            local: "",
            inputs: &[("int", "n", 0, false)],
            outputs: &[("int", "n", 1, false)],
            io: &[],
            values: &[("uint", "n", 2)],
            locals: &[],
            macros: &[],
            symbols: &[("n", 1000), ("w", 37)],
            sliced: &[],
        },
        Case {
            name: "transpose",
            source: "__kernel void k(__global const float *in, __global float *out, int w, int h) {
    int x = get_global_id(0), y = get_global_id(1);
    out[x * h + y] = in[y * w + x];
}",
            dimension: 2,
            global: "[w, h]",
            local: "",
            inputs: &[("float", "w*h", 0, true)],
            outputs: &[("float", "w*h", 1, false)],
            io: &[],
            values: &[("int", "w", 2), ("int", "h", 3)],
            locals: &[],
            macros: &[],
            symbols: &[("w", 192), ("h", 31)],
            sliced: &[1],
        },
        Case {
            name: "matmul in tiles",
            source: "__kernel void k(__global const float *a, __global const float *b, __global float *c, int n) {
    __local float mine[TS][TS], theirs[TS][TS];
    int x = get_local_id(0), y = get_local_id(1);
    int column = get_group_id(0) * TS + x, row = get_group_id(1) * TS + y;
    float sum = 0.0f;
    for (int t = 0; t < n / TS; t++) {
        mine[y][x] = a[row * n + t * TS + x];
        theirs[y][x] = b[(t * TS + y) * n + column];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = 0; i < TS; i++) sum += mine[y][i] * theirs[i][x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[row * n + column] = sum;
}",
            dimension: 2,
            global: "[n, n]",
            local: "[TS, TS]",
            inputs: &[("float", "n*n", 0, true), ("float", "n*n", 1, false)],
            outputs: &[("float", "n*n", 2, true)],
            io: &[],
            values: &[("int", "n", 3)],
            locals: &[],
            macros: &[("TS", "TS")],
            symbols: &[("n", 40), ("TS", 8)],
            sliced: &[0, 2],
        },
        Case {
            name: "neighbours",
            source: "__kernel void k(__global const double *in, __global double *out, int w, int h) {
    int x = get_global_id(0), y = get_global_id(1);
    if (x == 0 || y == 0 || x == w - 1 || y == h - 1) { out[y * w + x] = in[y * w + x]; return; }
    out[y * w + x] = 0.25 * (in[y * w + x - 1] + in[y * w + x + 1] + in[(y - 1) * w + x] + in[(y + 1) * w + x]);
}",
            dimension: 2,
            global: "[w, h]",
            local: "",
            inputs: &[("double", "w*h", 0, false)],
            outputs: &[("double", "w*h", 1, true)],
            io: &[],
            values: &[("int", "w", 2), ("int", "h", 3)],
            locals: &[],
            macros: &[],
            symbols: &[("w", 19), ("h", 29)],
            sliced: &[1],
        },
        Case {
            name: "columns",
            source: "__kernel void k(__global const int *in, __global int *out, int w) {
    int x = get_global_id(0), y = get_global_id(1);
    out[x * 13 + y] = in[x] * y + (int)get_num_groups(1) + 10 * (int)get_group_id(1);
}",
            dimension: 2,
            global: "[w, 13]",
            local: "[1, 13]",
            inputs: &[("int", "w", 0, true)],
            outputs: &[("int", "w*13", 1, true)],
            io: &[],
            values: &[("int", "w", 2)],
            locals: &[],
            macros: &[],
            symbols: &[("w", 41)],
            sliced: &[0, 1],
        },
        Case {
            name: "boxes",
            source: "__kernel void k(__global const float *in, __global float *out, int w, int h, int d) {
    int x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
    float sum = 0.0f;
    for (int i = max(z - 1, 0); i <= min(z + 1, d - 1); i++)
        sum += in[(i * h + y) * w + x];
    out[(z * h + y) * w + x] = sum + get_group_id(2) + 10 * get_group_id(1) + 100 * get_group_id(0);
}",
            dimension: 3,
            global: "[w, h, d]",
            local: "[2, 3, 1]",
            inputs: &[("float", "w*h*d", 0, false)],
            outputs: &[("float", "w*h*d", 1, true)],
            io: &[],
            values: &[("int", "w", 2), ("int", "h", 3), ("int", "d", 4)],
            locals: &[],
            macros: &[],
            symbols: &[("w", 6), ("h", 9), ("d", 11)],
            sliced: &[1],
        },
        Case {
            name: "groups in three dimensions",
            source: "__kernel void k(__global ulong *out) {
    size_t x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
    size_t at = (z * get_global_size(1) + y) * get_global_size(0) + x;
    out[at] = ((get_group_id(2) * get_num_groups(1) + get_group_id(1)) * get_num_groups(0)
               + get_group_id(0)) * 1000 + get_local_id(0) + 10 * get_local_id(1) + 100 * get_local_id(2);
}",
            dimension: 3,
            global: "[10, 6, 35]",
            local: "[5, 2, 5]",
            inputs: &[],
            outputs: &[("ulong", "10*6*35", 0, true)],
            io: &[],
            values: &[],
            locals: &[],
            macros: &[],
            symbols: &[],
            sliced: &[0],
        },
        Case {
            name: "threshold of bytes",
            source: "__kernel void k(__global const uchar *in, __global uchar *out, uchar limit) {
    int i = get_global_id(1) * get_global_size(0) + get_global_id(0);
    out[i] = in[i] > limit ? 255 : 0;
}",
            dimension: 2,
            global: "[17, 23]",
            local: "",
            inputs: &[("uchar", "17*23", 0, true)],
            outputs: &[("uchar", "17*23", 1, true)],
            io: &[],
            values: &[("uchar", "60", 2)],
            locals: &[],
            macros: &[],
            symbols: &[],
            sliced: &[0, 1],
        },
        Case {
            name: "vectors",
            source: "__kernel void k(__global const float4 *in, __global float4 *out, float4 add) {
    int i = get_global_id(0);
    out[i] = in[i].wzyx + add;
}",
            dimension: 1,
            global: "[n]",
            local: "",
            inputs: &[("float4", "n", 0, true)],
            outputs: &[("float4", "n", 1, true)],
            io: &[],
            values: &[("float4", "0.5", 2)],
            locals: &[],
            macros: &[],
            symbols: &[("n", 211)],
            sliced: &[0, 1],
        },
        Case {
            name: "constant table",
            source: "__kernel void k(__constant int *table, __global const uint *in, __global int *out) {
    int i = get_global_id(0);
    out[i] = table[in[i] % 61];
}",
            dimension: 1,
            global: "[n]",
            local: "",
            inputs: &[("int", "61", 0, false), ("uint", "n", 1, true)],
            outputs: &[("int", "n", 2, true)],
            io: &[],
            values: &[],
            locals: &[],
            macros: &[],
            symbols: &[("n", 499)],
            sliced: &[1, 2],
        },
        Case {
            name: "scatter",
            source: "__kernel void k(__global const long *in, __global long *out, int n) {
    int i = get_global_id(0);
    out[(i * 7) % n] = in[i] + i;
}",
            dimension: 1,
            global: "[n]",
            local: "",
            inputs: &[("long", "n", 0, true)],
            outputs: &[("long", "n", 1, false)],
            io: &[],
            values: &[("int", "n", 2)],
            locals: &[],
            macros: &[],
            symbols: &[("n", 503)],
            sliced: &[],
        },
        Case {
            name: "every second",
            source: "__kernel void k(__global const int *in, __global int *out) {
    int i = get_global_id(0);
    if (i % 2 == 0) out[i] = in[i] + 1;
}",
            dimension: 1,
            global: "[n]",
            local: "",
            inputs: &[("int", "n", 0, true)],
            outputs: &[("int", "n", 1, true)],
            io: &[],
            values: &[],
            locals: &[],
            macros: &[],
            symbols: &[("n", 337)],
            sliced: &[0, 1],
        },
        Case {
            name: "softmax of rows",
            source: "__kernel void k(__global const float *in, __global float *out, int n) {
    int row = get_global_id(0);
    float most = in[row * n], sum = 0.0f;
    for (int i = 1; i < n; i++) most = fmax(most, in[row * n + i]);
    for (int i = 0; i < n; i++) sum += exp(in[row * n + i] - most);
    for (int i = 0; i < n; i++) out[row * n + i] = exp(in[row * n + i] - most) / sum;
}",
            dimension: 1,
            global: "[r]",
            local: "",
            inputs: &[("float", "r*n", 0, true)],
            outputs: &[("float", "r*n", 1, true)],
            io: &[],
            values: &[("int", "n", 2)],
            locals: &[],
            macros: &[],
            symbols: &[("r", 43), ("n", 17)],
            sliced: &[0, 1],
        },
        Case {
            name: "rows times two",
            source: "__kernel void k(__global float *rows, int w) {
    int x = get_global_id(0), y = get_global_id(1);
    rows[y * w + x] = 2.0f * rows[y * w + x] + get_group_id(1);
}",
            dimension: 2,
            global: "[w, 37]",
            local: "[w, 1]",
            inputs: &[],
            outputs: &[],
            io: &[("float", "w*37", 0, true)],
            values: &[("int", "w", 1)],
            locals: &[],
            macros: &[],
            symbols: &[("w", 11)],
            sliced: &[0],
        },
        Case {
            name: "helpers that ask",
            source: "int where(void) { return (int)(get_group_id(0) * 10 + get_num_groups(0)); }
int whole(int n) { return n * (int)get_global_size(0); }
__kernel void k(__global int *out) {
    out[get_global_id(0)] = where() + whole(1000);
}",
            dimension: 1,
            global: "[60]",
            local: "[4]",
            inputs: &[],
            outputs: &[("int", "60", 0, true)],
            io: &[],
            values: &[],
            locals: &[],
            macros: &[],
            symbols: &[],
            sliced: &[0],
        },
        Case {
            name: "histograms of groups",
            source: "__kernel void k(__global const uchar *in, __global int *out) {
    __local int bins[8];
    int i = get_local_id(0);
    if (i < 8) bins[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_inc(&bins[in[get_global_id(0)] % 8]);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (i < 8) out[get_group_id(0) * 8 + i] = bins[i];
}",
            dimension: 1,
            global: "[n]",
            local: "[16]",
            inputs: &[("uchar", "n", 0, true)],
            outputs: &[("int", "n/2", 1, true)],
            io: &[],
            values: &[],
            locals: &[],
            macros: &[],
            symbols: &[("n", 464)],
            sliced: &[0, 1],
        },
        Case {
            name: "two outputs",
            source: "__kernel void k(__global const int *in, __global int *low, __global float *high, __global int *count) {
    int i = get_global_id(0);
    low[i] = in[i] & 7;
    high[i] = in[i] / 8.0f;
    if (get_local_id(0) == 0) count[get_group_id(0)] = i;
}",
            dimension: 1,
            global: "[n]",
            local: "[5]",
            inputs: &[("int", "n", 0, true)],
            outputs: &[("int", "n", 1, true), ("float", "n", 2, true), ("int", "n/5", 3, false)],
            io: &[],
            values: &[],
            locals: &[],
            macros: &[],
            symbols: &[("n", 305)],
            sliced: &[0, 1, 2, 3],
        },
        Case {
            name: "many groups",
            source: "__kernel void k(__global const uint *in, __global uint *out) {
    uint i = get_global_id(0);
    out[i] = in[i] * 2654435761u + (uint)get_num_groups(0) - (uint)get_group_id(0);
}",
            dimension: 1,
            global: "[n]",
            local: "[3]",
            inputs: &[("uint", "n", 0, true)],
            outputs: &[("uint", "n", 1, true)],
            io: &[],
            values: &[],
            locals: &[],
            macros: &[],
            symbols: &[("n", 7509)],
            sliced: &[0, 1],
        },
    ]
}

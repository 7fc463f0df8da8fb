// Fourier transforms of the rows or columns of a block, in single precision.
// src/codelet/fft/mod.rs describes the arguments.
//
// A work-group transforms a line by Stockham's algorithm: log2(LENGTH) passes of
// butterflies, each of which reads the whole line before it writes it, so that one array
// is enough.
//
// src/codelet/fft/opencl.rs defines LENGTH, a power of two; ITEMS, the size of a
// work-group; and COLUMNS, 1 for columns and 0 for rows.

// Butterflies of a work-item.
#define EACH (LENGTH / 2 / ITEMS)

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void fft(__global const float2 *restrict x, __global float2 *restrict y, uint rows, uint columns)
{
    __local float2 line[LENGTH];
    const uint item = get_local_id(0);
    const size_t number = get_global_id(0) / ITEMS;
#if COLUMNS
    const size_t first = number, stride = columns;
#else
    const size_t first = number * columns, stride = 1;
#endif
    for (uint i = item; i < LENGTH; i += ITEMS)
        line[i] = x[first + i * stride];
    barrier(CLK_LOCAL_MEM_FENCE);

    for (uint apart = 1; apart < LENGTH; apart *= 2) {
        float2 sums[EACH], differences[EACH];
#pragma unroll
        for (uint e = 0; e < EACH; e++) {
            const uint j = item + e * ITEMS;
            const uint k = j & (apart - 1);
            const float2 a = line[j];
            const float2 b = line[j + LENGTH / 2];
            float cosine;
            const float sine = sincos(-M_PI_F * (float)k / (float)apart, &cosine);
            const float2 turned = (float2)(b.x * cosine - b.y * sine, b.x * sine + b.y * cosine);
            sums[e] = a + turned;
            differences[e] = a - turned;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
        for (uint e = 0; e < EACH; e++) {
            const uint j = item + e * ITEMS;
            const uint k = j & (apart - 1);
            const uint to = 2 * (j - k) + k;
            line[to] = sums[e];
            line[to + apart] = differences[e];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    for (uint i = item; i < LENGTH; i += ITEMS)
        y[first + i * stride] = line[i];
}

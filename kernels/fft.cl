// Fourier transforms of the rows or columns of a block, perhaps in place.
// src/codelet/fft/mod.rs describes the arguments.
//
// A work-group transforms a line by Stockham's algorithm: log2(LENGTH) passes of
// butterflies. The numbers of a pass are in registers, and pass from work-item to work-item
// through local memory: first the real parts, then the imaginary ones, so that one array of
// LENGTH numbers is enough.
//
// src/codelet/fft/opencl.rs defines LENGTH, a power of two; ITEMS, the size of a
// work-group; COLUMNS, 1 for columns and 0 for rows; and
// DOUBLES, 1 for double precision.

#if DOUBLES
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double real;
typedef double2 complex_number;
#define PI M_PI
#else
typedef float real;
typedef float2 complex_number;
#define PI M_PI_F
#endif

// Butterflies of a work-item.
#define EACH (LENGTH / 2 / ITEMS)

// Gives a part (x or y) of the results of a pass to the work-items that need them next.
#define EXCHANGE(part)                                            \
    barrier(CLK_LOCAL_MEM_FENCE);                                 \
    for (uint e = 0; e < EACH; e++) {                             \
        const uint j = item + e * ITEMS;                          \
        const uint k = j & (span - 1);                           \
        const uint next = 2 * (j - k) + k;                        \
        line[next] = a[e].part;                                   \
        line[next + span] = b[e].part;                           \
    }                                                             \
    barrier(CLK_LOCAL_MEM_FENCE);                                 \
    for (uint e = 0; e < EACH; e++) {                             \
        a[e].part = line[item + e * ITEMS];                       \
        b[e].part = line[item + e * ITEMS + LENGTH / 2];          \
    }

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void fft(__global const complex_number *x, __global complex_number *y, ulong x_first, uint x_stride,
         ulong y_first, uint y_stride, uint rows, uint columns)
{
    __local real line[LENGTH];
    const uint item = get_local_id(0);
    const size_t number = get_global_id(0) / ITEMS;
#if COLUMNS
    __global const complex_number *from = x + x_first + number;
    __global complex_number *to = y + y_first + number;
    const size_t from_step = x_stride, to_step = y_stride;
#else
    __global const complex_number *from = x + x_first + number * x_stride;
    __global complex_number *to = y + y_first + number * y_stride;
    const size_t from_step = 1, to_step = 1;
#endif
    complex_number a[EACH], b[EACH];
    for (uint e = 0; e < EACH; e++) {
        const uint j = item + e * ITEMS;
        a[e] = from[j * from_step];
        b[e] = from[(j + LENGTH / 2) * from_step];
    }

    for (uint span = 1; span < LENGTH; span *= 2) {
        for (uint e = 0; e < EACH; e++) {
            const uint k = (item + e * ITEMS) & (span - 1);
            real cosine;
            const real sine = sincos(-PI * (real)k / (real)span, &cosine);
            const complex_number turned =
                (complex_number)(b[e].x * cosine - b[e].y * sine, b[e].x * sine + b[e].y * cosine);
            b[e] = a[e] - turned;
            a[e] = a[e] + turned;
        }
        EXCHANGE(x)
        EXCHANGE(y)
    }

    for (uint e = 0; e < EACH; e++) {
        const uint j = item + e * ITEMS;
        to[j * to_step] = a[e];
        to[(j + LENGTH / 2) * to_step] = b[e];
    }
}

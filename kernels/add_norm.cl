// y = normalise(x + every z), row by row, in single precision; stored.h converts x, y and
// every z. Normalisation
// subtracts a row's mean and divides by its standard deviation.
// src/codelet/add_norm/mod.rs describes the arguments.
//
// A work-group computes one row. Each work-item reads and writes only its own
// columns, so it may read back what it wrote. Only the sums need the group.
//
// src/codelet/add_norm/opencl.rs defines FORMAT (stored.h) and three macros. LANES is the size of a
// work-group. Since the number of z varies, Z_PARAMETERS declares the buffers z0,
// z1 ... and their numbers of summands n0, n1 ... as parameters, and ADD_ALL(at)
// applies SUM_OF to each of them.

// Adds element `at` of every summand of `z` to `value`.

#define SUM_OF(z, n, at)                            \
    for (uint summand = 0; summand < n; summand++)  \
        value += value_of(z[at + summand * distance]);

// FIRST(at) declares `value` as the sum of element `at` of all, and AGAIN(at) declares it once
// more: y keeps sums of singles, and would round others.
#if FORMAT == FORMAT_F32
#define FIRST(at)        \
    float value = x[at]; \
    ADD_ALL(at)          \
    y[at] = value;
#define AGAIN(at) const float value = y[at];
#else
#define FIRST(at)                  \
    float value = value_of(x[at]); \
    ADD_ALL(at)
#define AGAIN(at) FIRST(at)
#endif

// Returns the sum of the work-items' values to every work-item. A `scratch` array
// serves one sum.
static inline float sum_of_group(float value, uint lane, __local float *scratch)
{
    scratch[lane] = value;
    barrier(CLK_LOCAL_MEM_FENCE);
    float sum = 0.0f;
#pragma unroll
    for (uint i = 0; i < LANES; i++)
        sum += scratch[i];
    return sum;
}

__kernel __attribute__((reqd_work_group_size(LANES, 1, 1)))
void add_norm(__global const stored *restrict x, __global stored *restrict y,
              uint width, float least, ulong distance Z_PARAMETERS)
{
    __local float sum_scratch[LANES];
    __local float square_scratch[LANES];
    const uint lane = get_local_id(0);
    const size_t begin = get_global_id(0) / LANES * width;

    float sum = 0.0f;
    for (uint column = lane; column < width; column += LANES) {
        FIRST(begin + column)
        sum += value;
    }
    const float mean = sum_of_group(sum, lane, sum_scratch) / width;

    float squares = 0.0f;
    for (uint column = lane; column < width; column += LANES) {
        AGAIN(begin + column)
        const float difference = value - mean;
        squares = fma(difference, difference, squares);
    }
    const float variance = sum_of_group(squares, lane, square_scratch) / width;

    const float scale = 1.0f / sqrt(variance + least);
    for (uint column = lane; column < width; column += LANES) {
        AGAIN(begin + column)
        y[begin + column] = stored_of((value - mean) * scale);
    }
}

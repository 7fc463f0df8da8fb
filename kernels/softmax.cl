// y = softmax(factor x), row by row, in single precision; stored.h converts x and y.
// src/codelet/softmax/mod.rs describes the arguments.
//
// A work-group computes one row. Exponentials are computed twice, once for their sum: y is
// rounded once, and nothing is read back.
//
// src/codelet/softmax/opencl.rs defines FORMAT (stored.h), and LANES, the size of a work-group.

__kernel __attribute__((reqd_work_group_size(LANES, 1, 1)))
void softmax(__global const stored *restrict x, __global stored *restrict y,
             uint width, float factor)
{
    // Every work-item reads the whole array, which replaces a tree reduction.
    __local float maxima[LANES];
    __local float sums[LANES];
    const uint lane = get_local_id(0);
    const size_t row = get_global_id(0) / LANES;
    x += row * width;
    y += row * width;

    float maximum = -INFINITY;
    for (uint column = lane; column < width; column += LANES)
        maximum = fmax(maximum, value_of(x[column]));
    maxima[lane] = maximum;
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (uint i = 0; i < LANES; i++)
        maximum = fmax(maximum, maxima[i]);

    float sum = 0.0f;
    for (uint column = lane; column < width; column += LANES)
        sum += exp(factor * (value_of(x[column]) - maximum));
    sums[lane] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    float total = 0.0f;
#pragma unroll
    for (uint i = 0; i < LANES; i++)
        total += sums[i];

    const float scale = 1.0f / total;
    for (uint column = lane; column < width; column += LANES)
        y[column] = stored_of(exp(factor * (value_of(x[column]) - maximum)) * scale);
}

// y = norm(x + every z), row by row, in single precision: a row's mean is
// subtracted, and it is divided by its standard deviation.
// Arguments: src/codelet/add_norm/mod.rs.
//
// A work-group computes a row. Each work-item keeps to its own columns, so what
// it wrote it may read again; only the sums need the group.
//
// From src/codelet/add_norm/opencl.rs: LANES; and, as there are any number of
// them, Z_PARAMETERS, the memories z0, z1 ... and their numbers of summands n0,
// n1 ... as parameters, and ADD_ALL(at), which adds the numbers at this place of
// all their summands to `value`, by SUM_OF.

#define SUM_OF(z, n, at)                            \
    for (uint summand = 0; summand < n; summand++)  \
        value += z[at + summand * apart];

// The sum of every work-item's value, in all of them. `room` serves one sum.
static inline float sum_of_group(float value, uint lane, __local float *room)
{
    room[lane] = value;
    barrier(CLK_LOCAL_MEM_FENCE);
    float sum = 0.0f;
#pragma unroll
    for (uint i = 0; i < LANES; i++)
        sum += room[i];
    return sum;
}

__kernel __attribute__((reqd_work_group_size(LANES, 1, 1)))
void add_norm(__global const float *restrict x, __global float *restrict y,
              uint width, float least, ulong apart Z_PARAMETERS)
{
    __local float sum_room[LANES];
    __local float square_room[LANES];
    const uint lane = get_local_id(0);
    const size_t begin = get_global_id(0) / LANES * width;

    float sum = 0.0f;
    for (uint column = lane; column < width; column += LANES) {
        const size_t at = begin + column;
        float value = x[at];
        ADD_ALL(at)
        y[at] = value;
        sum += value;
    }
    const float mean = sum_of_group(sum, lane, sum_room) / width;

    float squares = 0.0f;
    for (uint column = lane; column < width; column += LANES) {
        const float away = y[begin + column] - mean;
        squares = fma(away, away, squares);
    }
    const float variance = sum_of_group(squares, lane, square_room) / width;

    const float scale = 1.0f / sqrt(variance + least);
    for (uint column = lane; column < width; column += LANES)
        y[begin + column] = (y[begin + column] - mean) * scale;
}

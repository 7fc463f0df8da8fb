// c = a b for square matrices of n rows, in tiles of TS x TS. n is a multiple of TS.
__kernel void matmul(__global const float *a, __global const float *b, __global float *c, int n)
{
    __local float a_tile[TS][TS];
    __local float b_tile[TS][TS];
    int x = get_local_id(0), y = get_local_id(1);
    int column = get_group_id(0) * TS + x, row = get_group_id(1) * TS + y;
    float sum = 0.0f;
    for (int tile = 0; tile < n / TS; tile++) {
        a_tile[y][x] = a[row * n + tile * TS + x];
        b_tile[y][x] = b[(tile * TS + y) * n + column];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TS; k++)
            sum += a_tile[y][k] * b_tile[k][x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[row * n + column] = sum;
}

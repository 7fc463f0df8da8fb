// Softmax of each row; the row's maximum is subtracted first.
__kernel void softmax(__global const float *in, __global float *out, int n)
{
    int row = get_global_id(0);
    float maximum = in[row * n];
    for (int i = 1; i < n; i++)
        maximum = fmax(maximum, in[row * n + i]);
    float sum = 0.0f;
    for (int i = 0; i < n; i++)
        sum += exp(in[row * n + i] - maximum);
    for (int i = 0; i < n; i++)
        out[row * n + i] = exp(in[row * n + i] - maximum) / sum;
}

__kernel void transpose(__global const float *in, __global float *out, int n)
{
    int x = get_global_id(0), y = get_global_id(1);
    out[x * n + y] = in[y * n + x];
}

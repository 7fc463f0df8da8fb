// A work-item sums the accelerations of one body by all others. `from` is the first body of
// `to`; `all` are the bodies of everybody, each with its place and its mass.

__kernel void accelerations(__global const float4 *all, __global float4 *to, ulong from, ulong count)
{
    const float4 own = all[from + get_global_id(0)];
    float4 sum = 0;
    for (ulong other = 0; other < count; ++other) {
        const float4 away = all[other] - own;
        const float squared = away.x * away.x + away.y * away.y + away.z * away.z + 1e-6f;
        const float nearness = rsqrt(squared);
        sum += all[other].w * nearness * nearness * nearness * away;
    }
    to[get_global_id(0)] = sum;
}

// What a compiler does not compute in advance: it only has to compile.

#pragma OPENCL EXTENSION cl_khr_fp64 : enable

typedef struct {
    float4 place;
    int number;
} item;

static float helper(local const float *numbers, uint at) { return numbers[at]; }

inline size_t everywhere(void)
{
    return get_global_id(0) + get_global_id(1) * get_global_size(0) + get_local_id(2)
        + get_group_id(1) * get_local_size(1) + get_num_groups(2) + get_global_offset(0);
}

__kernel void functions(global const float *restrict in, __global float *out, __global double *wide,
                        const item one, float4 four)
{
    const size_t at = everywhere();
    float x = in[at], y = in[at + 1], kept;
    int exponent;
    x = acos(x) + acosh(x) + acospi(x) + asin(x) + asinh(x) + asinpi(x) + atan(x) + atan2(x, y)
        + atanh(x) + atanpi(x) + atan2pi(x, y) + cbrt(x) + cos(x) + cosh(x) + cospi(x) + erf(x)
        + erfc(x) + exp(x) + exp2(x) + exp10(x) + expm1(x) + fdim(x, y) + fmod(x, y) + hypot(x, y)
        + ilogb(x) + ldexp(x, 3) + lgamma(x) + log(x) + log2(x) + log10(x) + log1p(x) + logb(x)
        + nextafter(x, y) + pow(x, y) + pown(x, 3) + powr(x, y) + remainder(x, y) + rootn(x, 3)
        + round(x) + rsqrt(x) + sin(x) + sinh(x) + sinpi(x) + sqrt(x) + tan(x) + tanh(x) + tanpi(x)
        + tgamma(x) + sincos(x, &kept) + frexp(x, &exponent) + modf(x, &kept)
        + remquo(x, y, &exponent) + nan(3u);
    x += native_cos(x) + native_divide(x, y) + native_exp(x) + native_exp2(x) + native_exp10(x)
        + native_log(x) + native_log2(x) + native_log10(x) + native_powr(x, y) + native_recip(x)
        + native_rsqrt(x) + native_sin(x) + native_sqrt(x) + native_tan(x) + half_sin(x)
        + half_divide(x, y);
    double z = wide[at];
    z = exp(z) + sin(z) + pow(z, 2.0) + sqrt(z) + rsqrt(z) + fma(z, z, z) + log(z) + tgamma(z);
    float4 v = exp(four) + sin(four) * one.place + pow(four, four) + native_exp(four) + one.number
        + ldexp(four, 2) + pown(four, (int4)(3)) + sqrt(four.wzyx) + length(four)
        + normalize(four.xyz).x + distance(four, one.place) + fast_normalize(four);
    double2 w = (double2)(z, 1.0);
    w = sqrt(w) + exp(w) + convert_double2_rtz(convert_int2_sat_rte(w));
    out[at] = x + v.x + v.s3 + radians(kept) + as_float(exponent)
        + convert_float_rtp(convert_int_rtn(x) + convert_uchar4_sat(v).w) + mul_hi(1L, (long)at);
    wide[at] = z + w.y;
}

kernel void memories(__global const half *halves, __global float *out, __global int *counts,
                     volatile __global ulong *large, __local float *first,
                     __local float2 * restrict second, __constant float *weights)
{
    __local int total, places[8];
    local float tile[4][5];
    const int item = get_local_id(0);
    if (item == 0)
        total = 0;
    places[item % 8] = item;
    tile[item % 4][0] = vload_half(item, halves);
    second[item] = vload_half2(item, halves);
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    local float *pointer = first + item;
    *pointer = helper(tile[1], 2) + weights[item] + vloada_half3(item, halves).z;
    event_t event = async_work_group_copy(first, (global const float *)out, 16, 0);
    wait_group_events(1, &event);
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    atomic_add(&total, 1);
    atomic_inc(counts);
    atomic_dec(counts + 1);
    atomic_sub(counts + 2, 5);
    atomic_xchg(counts + 3, 6);
    atomic_cmpxchg(counts + 4, 7, 8);
    atomic_min(counts + 5, 9);
    atomic_max((volatile __global uint *)counts + 6, 10u);
    atomic_and(counts + 7, 11);
    atomic_or(counts + 8, 12);
    atomic_xor(counts + 9, 13);
    atomic_xchg(out, 1.0f);
    atom_add(large, 1UL);
    atom_cmpxchg(large + 1, 2UL, 3UL);
    for (uint i = 0; i < 4; i++) {
        vstore_half(second[i].x, i, (global half *)counts);
        vstore_half2_rtz(second[i], i, (global half *)counts);
    }
    vstore4((float4)(total, pointer[0], places[0], second[item].y), item, out);
    prefetch(out, 4);
}

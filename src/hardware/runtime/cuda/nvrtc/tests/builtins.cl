// Each check is a constant expression, which the compiler computes: a kernel in which all hold
// stores nothing (`builtins_compute_what_opencl_says`).

#define CHECK(holds)      \
    if (!(holds))         \
        failed[__LINE__] = 1;
// All components of a vector of 2, 3 or 4.
#define ALL2(v, a, b) CHECK((v).x == (a) && (v).y == (b))
#define ALL3(v, a, b, c) CHECK((v).x == (a) && (v).y == (b) && (v).z == (c))
#define ALL4(v, a, b, c, d) \
    CHECK((v).x == (a) && (v).y == (b) && (v).z == (c) && (v).w == (d))

// A part of a vector.
#define IS(type, v, ...) CHECK(all((v) == (type)(__VA_ARGS__)))

typedef float4 quad;
#define PAIR(a, b) (float2)(a, b)
__constant int table[] = {4, 5, 6};
constant float weights[3] = {0.5f, 0.25f, 2};
static __constant float4 quads[2] = {(float4)(1, 2, 3, 4), (float4)(5)};

kernel void literals_and_components(global int *failed)
{
    const float4 v = (float4)(1.0f, 2.0f, 3.0f, 4.0f);
    ALL4(v, 1, 2, 3, 4)
    ALL4((quad)(v.x, PAIR(7, 8), 9), 1, 7, 8, 9)
    ALL4((quad)(5), 5, 5, 5, 5)
    ALL4((float4)
             (v.zw,
              v.xy),
         3, 4, 1, 2)
    IS(float4, v.wzyx, 4, 3, 2, 1)
    IS(float3, v.s210, 3, 2, 1)
    IS(float2, v.lo, 1, 2)
    IS(float2, v.hi, 3, 4)
    IS(float2, v.even, 1, 3)
    IS(float2, v.odd, 2, 4)
    float4 w = 0;
    ALL4(w, 0, 0, 0, 0)
    w.zw = v.xy;
    ALL4(w, 0, 0, 1, 2)
    // The same parts of two vectors.
    w.xy = v.xy;
    w.zw = v.zw;
    ALL4(w, 1, 2, 3, 4)
    w.hi = w.lo;
    w.yx += v.xx;
    ALL4(w, 2, 3, 1, 2)
    w.lo = 6.0f;
    w.x++;
    ALL4(w, 7, 6, 1, 2)
    float3 three = (float3)(1, 2, 3);
    CHECK(sizeof(three) == 16 && sizeof(float2) == 8 && sizeof(uchar16) == 16)
    three = three.zxy * 2.0f;
    ALL3(three, 6, 2, 4)
    const int8 eight = (int8)((int4)(0, 1, 2, 3), 4, 5, (int2)(6));
    CHECK(eight.s5 == 5 && eight.s7 == 6)
    const char16 wide = (char16)(eight.s0 == 0 ? 3 : 4);
    CHECK(wide.sF == 3 && wide.sa == 3 && wide.s0 == 3)
    const float4 listed = {1, 2, 3, 4};
    ALL4(listed, 1, 2, 3, 4)
    const int2 compound = (int2){8, 9};
    ALL2(compound, 8, 9)
    CHECK(table[1] == 5 && weights[2] == 2 && quads[0].z == 3 && quads[1].w == 5)
    union {
        float2 pair;
        uint words[2];
    } both;
    both.pair = (float2)(1.0f, 2.0f);
    CHECK(both.words[0] == 0x3f800000u && both.words[1] == 0x40000000u)
    const int new = 1, class = 2;
    CHECK(new + class == 3)
}

kernel void operators(global int *failed)
{
    const int4 a = (int4)(7, -8, 9, 10), b = (int4)(2, 3, -4, 5);
    ALL4(a + b, 9, -5, 5, 15)
    ALL4(a - b, 5, -11, 13, 5)
    ALL4(a * b, 14, -24, -36, 50)
    ALL4(a / b, 3, -2, -2, 2)
    ALL4(a % b, 1, -2, 1, 0)
    ALL4(2 * a + 1, 15, -15, 19, 21)
    ALL4(a << 1, 14, -16, 18, 20)
    ALL4(a >> (int4)(1, 2, 33, 0), 3, -2, 4, 10)
    ALL4(a & 3, 3, 0, 1, 2)
    ALL4(~a, -8, 7, -10, -11)
    ALL4(-a, -7, 8, -9, -10)
    ALL4(a > b, -1, 0, -1, -1)
    ALL4(a == 9, 0, 0, -1, 0)
    ALL4(a > 0 && b > 0, -1, 0, 0, -1)
    ALL4(!(a - 7), -1, 0, 0, 0)
    int4 c = a;
    c += b;
    c *= 2;
    c.x <<= 2;
    ALL4(c, 72, -10, 10, 30)
    const int4 before = c++;
    ALL2(before, 72, -10)
    ALL2(c, 73, -9)
    const uchar4 small = (uchar4)(250, 1, 2, 3) + (uchar)10;
    ALL4(small, 4, 11, 12, 13)
    const float2 f = (float2)(1.5f, -2.0f);
    const int2 less = f < 0.0f;
    ALL2(less, 0, -1)
    const long2 greater = (double2)(1.0, 2.0) >= (double2)(2.0, 2.0);
    ALL2(greater, 0, -1)
    CHECK(any(less) == 1 && all(less) == 0)
    const float4 g = (float4)(1, 2, 4, 8);
    ALL4(g * g - g / 2.0f, 0.5f, 3, 14, 60)
    ALL4(1 / g, 1, 0.5f, 0.25f, 0.125f)
    ALL2(g.xy * g.zw, 4, 16)
}

kernel void integers(global int *failed)
{
    CHECK(abs(-5) == 5u && abs(INT_MIN) == 0x80000000u && abs((char)-128) == 128)
    CHECK(abs_diff(-2000000000, 2000000000) == 4000000000u)
    CHECK(abs_diff((uint)3, (uint)5) == 2u)
    CHECK(add_sat(2000000000, 2000000000) == INT_MAX && add_sat(-2000000000, -2000000000) == INT_MIN)
    CHECK(add_sat((uchar)200, (uchar)100) == 255 && add_sat((char)100, (char)27) == 127)
    CHECK(sub_sat(-2000000000, 2000000000) == INT_MIN && sub_sat(2000000000, -2000000000) == INT_MAX)
    CHECK(sub_sat(3u, 5u) == 0u && sub_sat((short)-5, (short)3) == -8)
    CHECK(hadd(INT_MAX, INT_MAX) == INT_MAX && hadd(-3, 2) == -1 && rhadd(2u, 3u) == 3u)
    CHECK(mul_hi(0x40000000, 8) == 2 && mul_hi(0xffffffffu, 0xffffffffu) == 0xfffffffeu)
    CHECK(mul_hi((uchar)200, (uchar)200) == 156 && mul_hi((short)-300, (short)300) == -2)
    CHECK(mad_hi(0x40000000, 8, 5) == 7)
    CHECK(mad_sat(100000, 100000, 0) == INT_MAX && mad_sat(-100000, 100000, 7) == INT_MIN)
    CHECK(mad_sat(65536, 32768, -1) == INT_MAX && mad_sat(3, 4, -20) == -8)
    CHECK(mad_sat(0xffffffffu, 2u, 1u) == UINT_MAX && mad_sat(7u, 3u, 4u) == 25u)
    CHECK(mad_sat((char)10, (char)13, (char)-5) == 125 && mad_sat((char)-10, (char)13, (char)-5) == -128)
    CHECK(clz(1) == 31 && clz(0) == 32 && clz((uchar)1) == 7 && clz((short)-1) == 0)
    CHECK(clz(1L) == 63 && ctz(8) == 3 && ctz(0) == 32)
    CHECK(popcount(255) == 8 && popcount((char)-1) == 8 && popcount(-1L) == 64)
    CHECK(rotate(0x80000001u, 1u) == 3u && rotate((uchar)0x81, (uchar)9) == 3)
    CHECK(rotate(5, 0) == 5 && rotate(1UL, 63UL) == 1UL << 63)
    CHECK(mul24(1000, -1000) == -1000000 && mad24(3u, 4u, 5u) == 17u)
    CHECK(upsample((uchar)1, (uchar)2) == 258 && upsample((short)-1, (ushort)1) == -65535)
    CHECK(min(3, -4) == -4 && max(3u, 4u) == 4u && min((uint)5, 7u) == 5u)
    CHECK(clamp(9, 1, 5) == 5 && clamp(-9, 1, 5) == 1 && clamp(2.5f, 0.0f, 1.0f) == 1.0f)
    CHECK(max(2.0f, 3.0f) == 3.0f && min((ulong)3, (ulong)4) == 3)
    ALL2(max((int2)(1, 5), (int2)(4, 2)), 4, 5)
    ALL2(min((float2)(1, 5), 3.0f), 1, 3)
    ALL2(clamp((int2)(-7, 7), -2, 2), -2, 2)
    ALL2(abs((int2)(-7, 7)), 7u, 7u)
    ALL2(popcount((int2)(3, 1)), 2, 1)
    CHECK(select(1, 2, 1) == 2 && select(1.0f, 2.0f, 0) == 1.0f)
    ALL2(select((float2)(1, 2), (float2)(3, 4), (int2)(0, -1)), 1, 4)
    CHECK(bitselect(0x0f, 0xf0, 0x3c) == 0x33 && bitselect(1.0f, -1.0f, -0.0f) == -1.0f)
}

kernel void conversions(global int *failed)
{
    CHECK(convert_uchar_sat(300.0f) == 255 && convert_uchar_sat(-3) == 0 && convert_char_sat(200u) == 127)
    CHECK(convert_uchar_sat(-0.5f) == 0 && convert_int_sat(1e20f) == INT_MAX)
    CHECK(convert_uchar(300) == 44 && convert_short_sat(-70000L) == -32768)
    CHECK(convert_uint_sat(-1) == 0u && convert_ulong_sat(-1) == 0UL && convert_long_sat(~0UL) == LONG_MAX)
    CHECK(convert_float(16777217) == 16777216.0f && convert_double(3u) == 3.0)
    ALL4(convert_uchar4_sat((int4)(-1, 5, 256, 7)), 0, 5, 255, 7)
    uchar4 bytes = (uchar4)(1, 2, 3, 4);
    ALL2(convert_float2(bytes.yw), 2, 4)
    CHECK(as_uint(1.0f) == 0x3f800000u && as_float(0x40000000) == 2.0f && as_long(1.0) == 0x3ff0000000000000L)
    ALL2(as_uint2(1.0), 0u, 0x3ff00000u)
    ALL4(as_uchar4(0x04030201), 1, 2, 3, 4)
    ALL4(shuffle((int4)(5, 6, 7, 8), (uint4)(3, 2, 0, 0)), 8, 7, 5, 5)
    ALL2(shuffle2((int2)(5, 6), (int2)(7, 8), (uint2)(3, 0)), 8, 5)
    float numbers[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    ALL3(vload3(1, numbers), 3, 4, 5)
    vstore2((float2)(8, 9), 1, numbers);
    ALL4(vload4(0, numbers), 0, 1, 8, 9)
}

kernel void mathematics(global int *failed)
{
    CHECK(fabs(-2.0f) == 2.0f && floor(-1.5f) == -2.0f && ceil(1.2) == 2.0)
    CHECK(fmax(1.0f, 2.0f) == 2.0f && fmin(1.0, 2.0) == 1.0)
    ALL2(fmax((float2)(1, 5), 3.0f), 3, 5)
    CHECK(sign(-3.0f) == -1.0f && sign(0.0) == 0.0 && step(1.0f, 0.5f) == 0.0f)
    CHECK(mix(1.0f, 3.0f, 0.5f) == 2.0f && smoothstep(0.0f, 1.0f, 0.5f) == 0.5f)
    ALL2(mix((float2)(1, 2), (float2)(3, 4), 0.5f), 2, 3)
    ALL2(step((float2)(1, 2), (float2)(1.5f, 1.5f)), 1, 0)
    CHECK(isnan(NAN) == 1 && isnan(1.0) == 0 && INFINITY > FLT_MAX)
    CHECK(isless(1.0f, 2.0f) == 1 && isunordered(NAN, 1.0f) == 1 && isordered(1.0, 1.0) == 1)
    ALL2(isnan((float2)(NAN, 1.0f)), -1, 0)
    ALL2(isgreater((double2)(2.0, 1.0), (double2)(1.0, 1.0)), -1, 0)
    CHECK(dot((float3)(1, 2, 3), (float3)(4, 5, 6)) == 32.0f && dot(2.0f, 3.0f) == 6.0f)
    ALL3(cross((float3)(1, 0, 0), (float3)(0, 1, 0)), 0, 0, 1)
    float whole;
    CHECK(fract(2.25f, &whole) == 0.25f && whole == 2.0f)
    float2 wholes;
    ALL2(fract((float2)(1.5f, 3.25f), &wholes), 0.5f, 0.25f)
    ALL2(wholes, 1, 3)
    CHECK(maxmag(-3.0f, 2.0f) == -3.0f && minmag(-3.0, 2.0) == 2.0)
    CHECK(M_PI_F > 3.14f && FLT_EPSILON == 0x1p-23f && DBL_EPSILON == 0x1p-52)
}

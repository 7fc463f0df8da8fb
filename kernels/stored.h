// Numbers as they are stored, and the floats that kernels compute with.
//
// src/codelet/number_format.rs defines FORMAT:
//   FORMAT_F16   IEEE 754's binary16
//   FORMAT_BF16  the upper half of a float
//   FORMAT_TF32  a float; the factors of products are rounded to 10 bits of the mantissa
//   FORMAT_F32   a float
//
// value_of and values_of convert a stored number and four of them, stored_of and fours_of
// the other way round, to the nearest. factor_of and factors_of convert to factors of products.

#define FORMAT_F32 0
#define FORMAT_F16 1
#define FORMAT_BF16 2
#define FORMAT_TF32 3

#if FORMAT == FORMAT_F16
typedef ushort stored;
typedef ushort4 stored4;

// OpenCL C has no numbers of half precision without an extension, but loads and stores them.
static inline float value_of(stored one) { return vload_half(0, (const half *)&one); }
static inline float4 values_of(stored4 four) { return vload_half4(0, (const half *)&four); }
static inline stored stored_of(float value)
{
    stored one;
    vstore_half_rte(value, 0, (half *)&one);
    return one;
}
static inline stored4 fours_of(float4 values)
{
    stored4 four;
    vstore_half4_rte(values, 0, (half *)&four);
    return four;
}
#elif FORMAT == FORMAT_BF16
typedef ushort stored;
typedef ushort4 stored4;

static inline float value_of(stored one) { return as_float((uint)one << 16); }
static inline float4 values_of(stored4 four) { return as_float4(convert_uint4(four) << 16); }
// What is no number stays none: rounding could carry into the exponent.
static inline stored stored_of(float value)
{
    const uint bits = as_uint(value);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (stored)(bits >> 16 | 0x40);
    return (stored)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
static inline stored4 fours_of(float4 values)
{
    return (ushort4)(stored_of(values.x), stored_of(values.y), stored_of(values.z),
                     stored_of(values.w));
}
#else
typedef float stored;
typedef float4 stored4;

static inline float value_of(stored one) { return one; }
static inline float4 values_of(stored4 four) { return four; }
static inline stored stored_of(float value) { return value; }
static inline stored4 fours_of(float4 values) { return values; }
#endif

#if FORMAT == FORMAT_TF32
static inline float factor_of(stored one)
{
    const uint bits = as_uint(one);
    if ((bits & 0x7f800000) == 0x7f800000)
        return one;
    return as_float((bits + 0xfff + (bits >> 13 & 1)) & 0xffffe000);
}
static inline float4 factors_of(stored4 four)
{
    return (float4)(factor_of(four.x), factor_of(four.y), factor_of(four.z), factor_of(four.w));
}
#else
#define factor_of value_of
#define factors_of values_of
#endif

// Functions of numbers with a point: mathematics, common, relational and geometric ones.

namespace opencl {

#define PDAWL_MATH_1(name, single, twice)                    \
    __forceinline__ float name(float a) { return single; }   \
    __forceinline__ double name(double a) { return twice; }  \
    PDAWL_VECTORS_1(name)
#define PDAWL_MATH_2(name, single, twice)                                 \
    __forceinline__ float name(float a, float b) { return single; }       \
    __forceinline__ double name(double a, double b) { return twice; }     \
    PDAWL_VECTORS_2(name)
#define PDAWL_MATH_3(name, single, twice)                                           \
    __forceinline__ float name(float a, float b, float c) { return single; }        \
    __forceinline__ double name(double a, double b, double c) { return twice; }     \
    PDAWL_VECTORS_3(name)

#define PDAWL_SAME_1(name) PDAWL_MATH_1(name, ::name##f(a), ::name(a))
#define PDAWL_SAME_2(name) PDAWL_MATH_2(name, ::name##f(a, b), ::name(a, b))

PDAWL_SAME_1(acos)
PDAWL_SAME_1(acosh)
PDAWL_SAME_1(asin)
PDAWL_SAME_1(asinh)
PDAWL_SAME_1(atan)
PDAWL_SAME_1(atanh)
PDAWL_SAME_1(cbrt)
PDAWL_SAME_1(ceil)
PDAWL_SAME_1(cos)
PDAWL_SAME_1(cosh)
PDAWL_SAME_1(cospi)
PDAWL_SAME_1(erf)
PDAWL_SAME_1(erfc)
PDAWL_SAME_1(exp)
PDAWL_SAME_1(exp2)
PDAWL_SAME_1(exp10)
PDAWL_SAME_1(expm1)
PDAWL_SAME_1(fabs)
PDAWL_SAME_1(floor)
PDAWL_SAME_1(lgamma)
PDAWL_SAME_1(log)
PDAWL_SAME_1(log2)
PDAWL_SAME_1(log10)
PDAWL_SAME_1(log1p)
PDAWL_SAME_1(logb)
PDAWL_SAME_1(rint)
PDAWL_SAME_1(round)
PDAWL_SAME_1(rsqrt)
PDAWL_SAME_1(sin)
PDAWL_SAME_1(sinh)
PDAWL_SAME_1(sinpi)
PDAWL_SAME_1(sqrt)
PDAWL_SAME_1(tan)
PDAWL_SAME_1(tanh)
PDAWL_SAME_1(tgamma)
PDAWL_SAME_1(trunc)
PDAWL_MATH_1(acospi, ::acosf(a) * M_1_PI_F, ::acos(a) * M_1_PI)
PDAWL_MATH_1(asinpi, ::asinf(a) * M_1_PI_F, ::asin(a) * M_1_PI)
PDAWL_MATH_1(atanpi, ::atanf(a) * M_1_PI_F, ::atan(a) * M_1_PI)
PDAWL_MATH_1(tanpi, ::sinpif(a) / ::cospif(a), ::sinpi(a) / ::cospi(a))

PDAWL_SAME_2(atan2)
PDAWL_SAME_2(copysign)
PDAWL_SAME_2(fdim)
PDAWL_SAME_2(fmax)
PDAWL_SAME_2(fmin)
PDAWL_SAME_2(fmod)
PDAWL_SAME_2(hypot)
PDAWL_SAME_2(nextafter)
PDAWL_SAME_2(pow)
PDAWL_SAME_2(remainder)
PDAWL_MATH_2(atan2pi, ::atan2f(a, b) * M_1_PI_F, ::atan2(a, b) * M_1_PI)
PDAWL_MATH_2(powr, a < 0 ? NAN : ::powf(a, b), a < 0 ? NAN : ::pow(a, b))
PDAWL_MATH_2(maxmag,
             ::fabsf(a) > ::fabsf(b) ? a : ::fabsf(b) > ::fabsf(a) ? b : ::fmaxf(a, b),
             ::fabs(a) > ::fabs(b) ? a : ::fabs(b) > ::fabs(a) ? b : ::fmax(a, b))
PDAWL_MATH_2(minmag,
             ::fabsf(a) < ::fabsf(b) ? a : ::fabsf(b) < ::fabsf(a) ? b : ::fminf(a, b),
             ::fabs(a) < ::fabs(b) ? a : ::fabs(b) < ::fabs(a) ? b : ::fmin(a, b))

PDAWL_MATH_3(fma, ::fmaf(a, b, c), ::fma(a, b, c))
// More precise than it has to be, and as fast.
PDAWL_MATH_3(mad, ::fmaf(a, b, c), ::fma(a, b, c))

__forceinline__ int ilogb(float a) { return ::ilogbf(a); }
__forceinline__ int ilogb(double a) { return ::ilogb(a); }
PDAWL_VECTORS_1(ilogb)
__forceinline__ float nan(uint bits) { return __int_as_float(0x7fc00000 | (bits & 0x3fffff)); }
__forceinline__ double nan(ulong bits)
{
    return __longlong_as_double(0x7ff8000000000000L | (bits & 0x7ffffffffffffL));
}
PDAWL_VECTORS_1(nan)

__forceinline__ float ldexp(float a, int b) { return ::ldexpf(a, b); }
__forceinline__ double ldexp(double a, int b) { return ::ldexp(a, b); }
PDAWL_VECTORS_OTHER(ldexp)
__forceinline__ float pown(float a, int b) { return ::powf(a, (float)b); }
__forceinline__ double pown(double a, int b) { return ::pow(a, (double)b); }
PDAWL_VECTORS_OTHER(pown)
// The root of a negative number is one of odd degree.
__forceinline__ float rootn(float a, int b)
{
    return a < 0 && b % 2 != 0 ? -::powf(-a, 1.0f / b) : ::powf(a, 1.0f / b);
}
__forceinline__ double rootn(double a, int b)
{
    return a < 0 && b % 2 != 0 ? -::pow(-a, 1.0 / b) : ::pow(a, 1.0 / b);
}
PDAWL_VECTORS_OTHER(rootn)

__forceinline__ float sincos(float a, float *cosine)
{
    float sine;
    ::sincosf(a, &sine, cosine);
    return sine;
}
__forceinline__ double sincos(double a, double *cosine)
{
    double sine;
    ::sincos(a, &sine, cosine);
    return sine;
}
PDAWL_VECTORS_POINTER(sincos)
__forceinline__ float fract(float a, float *whole)
{
    *whole = ::floorf(a);
    return ::fminf(a - *whole, 0x1.fffffep-1f);
}
__forceinline__ double fract(double a, double *whole)
{
    *whole = ::floor(a);
    return ::fmin(a - *whole, 0x1.fffffffffffffp-1);
}
PDAWL_VECTORS_POINTER(fract)
__forceinline__ float frexp(float a, int *exponent) { return ::frexpf(a, exponent); }
__forceinline__ double frexp(double a, int *exponent) { return ::frexp(a, exponent); }
PDAWL_VECTORS_POINTER(frexp)
__forceinline__ float modf(float a, float *whole) { return ::modff(a, whole); }
__forceinline__ double modf(double a, double *whole) { return ::modf(a, whole); }
PDAWL_VECTORS_POINTER(modf)
__forceinline__ float remquo(float a, float b, int *quotient) { return ::remquof(a, b, quotient); }
__forceinline__ double remquo(double a, double b, int *quotient)
{
    return ::remquo(a, b, quotient);
}

// Fast ones, whose precision the device decides.
#define PDAWL_FAST_1(name, single)                                     \
    __forceinline__ float native_##name(float a) { return single; }    \
    PDAWL_VECTORS_1(native_##name)                                     \
    __forceinline__ float half_##name(float a) { return name(a); }     \
    PDAWL_VECTORS_1(half_##name)
PDAWL_FAST_1(cos, ::__cosf(a))
PDAWL_FAST_1(exp, ::__expf(a))
PDAWL_FAST_1(exp2, ::exp2f(a))
PDAWL_FAST_1(exp10, ::__exp10f(a))
PDAWL_FAST_1(log, ::__logf(a))
PDAWL_FAST_1(log2, ::__log2f(a))
PDAWL_FAST_1(log10, ::__log10f(a))
PDAWL_FAST_1(rsqrt, ::rsqrtf(a))
PDAWL_FAST_1(sin, ::__sinf(a))
PDAWL_FAST_1(sqrt, ::sqrtf(a))
PDAWL_FAST_1(tan, ::__tanf(a))
#undef PDAWL_FAST_1
#define PDAWL_FAST(name, ARGUMENTS, single)                   \
    __forceinline__ float native_##name ARGUMENTS { return single; } \
    __forceinline__ float half_##name ARGUMENTS { return single; }
PDAWL_FAST(recip, (float a), 1.0f / a)
PDAWL_VECTORS_1(native_recip)
PDAWL_VECTORS_1(half_recip)
PDAWL_FAST(divide, (float a, float b), a / b)
PDAWL_VECTORS_2(native_divide)
PDAWL_VECTORS_2(half_divide)
PDAWL_FAST(powr, (float a, float b), ::__powf(a, b))
PDAWL_VECTORS_2(native_powr)
PDAWL_VECTORS_2(half_powr)
#undef PDAWL_FAST

PDAWL_MATH_1(degrees, a * (180 / M_PI_F), a * (180 / M_PI))
PDAWL_MATH_1(radians, a * (M_PI_F / 180), a * (M_PI / 180))
PDAWL_MATH_1(sign, a > 0 ? 1.0f : a < 0 ? -1.0f : a == 0 ? a : 0.0f,
             a > 0 ? 1.0 : a < 0 ? -1.0 : a == 0 ? a : 0.0)
PDAWL_MATH_2(step, b < a ? 0.0f : 1.0f, b < a ? 0.0 : 1.0)
PDAWL_MATH_3(mix, a + (b - a) * c, a + (b - a) * c)
__forceinline__ float smoothstep(float a, float b, float c)
{
    const float t = ::fminf(::fmaxf((c - a) / (b - a), 0.0f), 1.0f);
    return t * t * (3 - 2 * t);
}
__forceinline__ double smoothstep(double a, double b, double c)
{
    const double t = ::fmin(::fmax((c - a) / (b - a), 0.0), 1.0);
    return t * t * (3 - 2 * t);
}
PDAWL_VECTORS_3(smoothstep)

// Of numbers 1 is true; of vectors all bits of a component are set.
#define PDAWL_IS_1(name, is)                                                                \
    __forceinline__ int name(float a) { return is; }                                        \
    __forceinline__ int name(double a) { return is; }                                       \
    template <class A, class V = own<A>> __forceinline__ with_sign<V> name(const A &v_of)   \
    {                                                                                       \
        PDAWL_VALUE(v)                                                                      \
        with_sign<V> all;                                                                   \
        PDAWL_EACH(i, count_of<V>()) all[i] = -name(part(v, i));                            \
        return all;                                                                         \
    }
#define PDAWL_IS_2(name, is)                                                                \
    __forceinline__ int name(float a, float b) { return is; }                               \
    __forceinline__ int name(double a, double b) { return is; }                             \
    template <class A, class B, class V = both<A, B>>                                       \
    __forceinline__ with_sign<V> name(const A &v_of, const B &w_of)                         \
    {                                                                                       \
        PDAWL_VALUE(v) PDAWL_VALUE(w)                                                       \
        with_sign<V> all;                                                                   \
        PDAWL_EACH(i, count_of<V>())                                                        \
            all[i] = -name((element<V>)part(v, i), (element<V>)part(w, i));            \
        return all;                                                                         \
    }
PDAWL_IS_1(isfinite, ::isfinite(a))
PDAWL_IS_1(isinf, ::isinf(a))
PDAWL_IS_1(isnan, a != a)
PDAWL_IS_1(isnormal, ::isfinite(a) && ::fabs(a) >= (sizeof(a) == 4 ? FLT_MIN : DBL_MIN))
PDAWL_IS_1(signbit, ::signbit(a) ? 1 : 0)
PDAWL_IS_2(isequal, a == b)
PDAWL_IS_2(isnotequal, a != b)
PDAWL_IS_2(isgreater, a > b)
PDAWL_IS_2(isgreaterequal, a >= b)
PDAWL_IS_2(isless, a < b)
PDAWL_IS_2(islessequal, a <= b)
PDAWL_IS_2(islessgreater, a < b || a > b)
PDAWL_IS_2(isordered, a == a && b == b)
PDAWL_IS_2(isunordered, a != a || b != b)
#undef PDAWL_IS_1
#undef PDAWL_IS_2

template <class A, class B, class V = own<A>>
__forceinline__ element<V> dot(const A &a_of, const B &b_of)
{
    PDAWL_VALUE(a) PDAWL_VALUE(b)
    element<V> sum = part(a, 0) * part(b, 0);
    PDAWL_EACH(i, count_of<V>() - 1) sum += part(a, i + 1) * part(b, i + 1);
    return sum;
}
__forceinline__ float dot(float a, float b) { return a * b; }
__forceinline__ double dot(double a, double b) { return a * b; }

template <class T, int N> __forceinline__ vector<T, N> cross_of(vector<T, N> a, vector<T, N> b)
{
    vector<T, N> c = (T)0;
    c.x = a.y * b.z - a.z * b.y;
    c.y = a.z * b.x - a.x * b.z;
    c.z = a.x * b.y - a.y * b.x;
    return c;
}
template <class A, class B, class V = own<A>> __forceinline__ V cross(const A &a, const B &b)
{
    return cross_of(V(a), V(b));
}
// Divided by the largest number, so that the squares do not overflow.
template <class A, class V = own<A>> __forceinline__ element<V> length(const A &a_of)
{
    PDAWL_VALUE(a)
    element<V> most = 0, sum = 0;
    PDAWL_EACH(i, count_of<V>()) most = fmax(most, fabs(part(a, i)));
    if (most == 0 || isinf(most))
        return most;
    PDAWL_EACH(i, count_of<V>()) sum += part(a, i) / most * (part(a, i) / most);
    return isnan(sum) ? sum : most * sqrt(sum);
}
__forceinline__ float length(float a) { return ::fabsf(a); }
__forceinline__ double length(double a) { return ::fabs(a); }
template <class A, class B> __forceinline__ auto distance(const A &a, const B &b)
{
    return length(a - b);
}
template <class A, class V = own<A>> __forceinline__ V normalize(const A &a_of)
{
    PDAWL_VALUE(a)
    const element<V> size = length(a);
    return size == 0 ? V(a) : a / size;
}
__forceinline__ float normalize(float a) { return sign(a); }
__forceinline__ double normalize(double a) { return sign(a); }
template <class A> __forceinline__ float fast_length(const A &a) { return ::sqrtf(dot(a, a)); }
template <class A, class B> __forceinline__ float fast_distance(const A &a, const B &b)
{
    return fast_length(a - b);
}
template <class A, class V = own<A>> __forceinline__ V fast_normalize(const A &a_of)
{
    PDAWL_VALUE(a)
    const float square = dot(a, a);
    return square == 0 ? V(a) : a * ::rsqrtf(square);
}

} // namespace opencl

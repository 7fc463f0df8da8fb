// Other views of numbers: conversions, loads and stores of vectors and of half precision,
// atomic operations, copies by a group.

namespace opencl {

// ---- Other types of the same bits.

template <class To, class From> __forceinline__ To as(const From &from)
{
    static_assert(sizeof(To) == sizeof(From), "as_type is for types of equal sizes");
    To to;
    memcpy(&to, &from, sizeof(to));
    return to;
}
#define PDAWL_AS_1(type)                                             \
    template <class V> __forceinline__ type as_##type(const V &from) \
    {                                                                \
        return as<type>(value(from));                        \
    }
#define PDAWL_AS(T) \
    PDAWL_AS_1(T) PDAWL_AS_1(T##2) PDAWL_AS_1(T##3) PDAWL_AS_1(T##4) PDAWL_AS_1(T##8) \
    PDAWL_AS_1(T##16)
PDAWL_AS(char)
PDAWL_AS(uchar)
PDAWL_AS(short)
PDAWL_AS(ushort)
PDAWL_AS(int)
PDAWL_AS(uint)
PDAWL_AS(long)
PDAWL_AS(ulong)
PDAWL_AS(float)
PDAWL_AS(double)
#undef PDAWL_AS
#undef PDAWL_AS_1

// ---- Conversions.

enum rounding { NEAREST, ZERO, UP, DOWN };

// Conversion to an integer drops what is behind the point.
template <class From> __forceinline__ From rounded(From from, rounding how)
{
    return how == NEAREST ? rint(from) : how == UP ? ceil(from) : how == DOWN ? floor(from) : from;
}
__forceinline__ float single(float from, rounding) { return from; }
#define PDAWL_SINGLE(From, nearest, zero, up, down)                                 \
    __forceinline__ float single(From from, rounding how)                           \
    {                                                                               \
        return how == ZERO ? zero(from) : how == UP ? up(from)                      \
            : how == DOWN ? down(from) : nearest;                                   \
    }
PDAWL_SINGLE(double, (float)from, __double2float_rz, __double2float_ru, __double2float_rd)
PDAWL_SINGLE(int, (float)from, __int2float_rz, __int2float_ru, __int2float_rd)
PDAWL_SINGLE(uint, (float)from, __uint2float_rz, __uint2float_ru, __uint2float_rd)
PDAWL_SINGLE(long, (float)from, __ll2float_rz, __ll2float_ru, __ll2float_rd)
PDAWL_SINGLE(ulong, (float)from, __ull2float_rz, __ull2float_ru, __ull2float_rd)
#undef PDAWL_SINGLE
__forceinline__ double twice(float from, rounding) { return from; }
__forceinline__ double twice(double from, rounding) { return from; }
__forceinline__ double twice(int from, rounding) { return from; }
__forceinline__ double twice(uint from, rounding) { return from; }
#define PDAWL_TWICE(From, nearest, zero, up, down)                                  \
    __forceinline__ double twice(From from, rounding how)                           \
    {                                                                               \
        return how == ZERO ? zero(from) : how == UP ? up(from)                      \
            : how == DOWN ? down(from) : nearest;                                   \
    }
PDAWL_TWICE(long, (double)from, __ll2double_rz, __ll2double_ru, __ll2double_rd)
PDAWL_TWICE(ulong, (double)from, __ull2double_rz, __ull2double_ru, __ull2double_rd)
#undef PDAWL_TWICE

template <class To, class From>
__forceinline__ To converted(From from, bool saturates, rounding how, bool is_how_given)
{
    if constexpr (same<To, float>::is()) {
        return single(from, is_how_given ? how : NEAREST);
    } else if constexpr (same<To, double>::is()) {
        return twice(from, is_how_given ? how : NEAREST);
    } else if constexpr (number<From>::is_whole()) {
        if (saturates) {
            typedef limits<To> to;
            // Compared as the widest type of the same sign.
            if (limits<From>::has_sign && from < 0)
                return !to::has_sign ? (To)0 : (long)from < (long)to::least ? to::least : (To)from;
            return (ulong)from > (ulong)to::most ? to::most : (To)from;
        }
        return (To)from;
    } else {
        const From whole = rounded(from, is_how_given ? how : ZERO);
        if (saturates) {
            typedef limits<To> to;
            if (whole != whole)
                return 0;
            if (whole <= (From)to::least)
                return to::least;
            if (whole >= (From)to::most)
                return to::most;
        }
        return (To)whole;
    }
}
template <class To, class From>
__forceinline__ To convert(const From &from, bool saturates, rounding how, bool is_how_given)
{
    if constexpr (count_of<To>() == 0) {
        return converted<To>(from, saturates, how, is_how_given);
    } else {
        static_assert(count_of<To>() == count_of<From>(), "convert_type keeps how many there are");
        To to;
        PDAWL_EACH(i, count_of<To>())
            to[i] = converted<element<To>>(part(from, i), saturates, how, is_how_given);
        return to;
    }
}
#define PDAWL_CONVERT_1(name, type, saturates, how, is_given)          \
    template <class V> __forceinline__ type name(const V &from)        \
    {                                                                  \
        return convert<type>(value(from), saturates, how, is_given);          \
    }
#define PDAWL_CONVERT_2(name, type, saturates)                  \
    PDAWL_CONVERT_1(name, type, saturates, ZERO, false)         \
    PDAWL_CONVERT_1(name##_rte, type, saturates, NEAREST, true) \
    PDAWL_CONVERT_1(name##_rtz, type, saturates, ZERO, true)    \
    PDAWL_CONVERT_1(name##_rtp, type, saturates, UP, true)      \
    PDAWL_CONVERT_1(name##_rtn, type, saturates, DOWN, true)
#define PDAWL_CONVERT_3(type)                    \
    PDAWL_CONVERT_2(convert_##type, type, false) \
    PDAWL_CONVERT_2(convert_##type##_sat, type, true)
#define PDAWL_CONVERT(T)                                                        \
    PDAWL_CONVERT_3(T) PDAWL_CONVERT_3(T##2) PDAWL_CONVERT_3(T##3) PDAWL_CONVERT_3(T##4)    \
    PDAWL_CONVERT_3(T##8) PDAWL_CONVERT_3(T##16)
PDAWL_CONVERT(char)
PDAWL_CONVERT(uchar)
PDAWL_CONVERT(short)
PDAWL_CONVERT(ushort)
PDAWL_CONVERT(int)
PDAWL_CONVERT(uint)
PDAWL_CONVERT(long)
PDAWL_CONVERT(ulong)
PDAWL_CONVERT(float)
PDAWL_CONVERT(double)
#undef PDAWL_CONVERT
#undef PDAWL_CONVERT_1
#undef PDAWL_CONVERT_2
#undef PDAWL_CONVERT_3

// ---- Vectors at places that are aligned to one component.

#define PDAWL_LOAD(N)                                                                       \
    template <class T> __forceinline__ vector<T, N> vload##N(size_t at, const T *from)      \
    {                                                                                       \
        vector<T, N> v;                                                                     \
        PDAWL_EACH(i, N) v[i] = from[at * N + i];                                      \
        return v;                                                                           \
    }                                                                                       \
    template <class V, class T>                                                             \
    __forceinline__ void vstore##N(const V &v_of, size_t at, T *to)                         \
    {                                                                                       \
        PDAWL_VALUE(v)                                                                      \
        static_assert(count_of<V>() == N, "vstoreN stores vectors of N components");        \
        PDAWL_EACH(i, N) to[at * N + i] = part(v, i);                                       \
    }
PDAWL_LOAD(2)
PDAWL_LOAD(3)
PDAWL_LOAD(4)
PDAWL_LOAD(8)
PDAWL_LOAD(16)
#undef PDAWL_LOAD

// ---- Half precision.

__forceinline__ float whole_of(half from)
{
    float to;
    asm("cvt.f32.f16 %0, %1;" : "=f"(to) : "h"(from.bits));
    return to;
}
#define PDAWL_HALF(suffix, mode)                                                            \
    __forceinline__ half half_of##suffix(float from)                                        \
    {                                                                                       \
        half to;                                                                            \
        asm("cvt." #mode ".f16.f32 %0, %1;" : "=h"(to.bits) : "f"(from));                   \
        return to;                                                                          \
    }                                                                                       \
    __forceinline__ half half_of##suffix(double from)                                       \
    {                                                                                       \
        half to;                                                                            \
        asm("cvt." #mode ".f16.f64 %0, %1;" : "=h"(to.bits) : "d"(from));                   \
        return to;                                                                          \
    }                                                                                       \
    template <class T> __forceinline__ void vstore_half##suffix(T v, size_t at, half *to)   \
    {                                                                                       \
        to[at] = half_of##suffix(v);                                                        \
    }                                                                                       \
    PDAWL_HALVES(2, suffix)                                                                 \
    PDAWL_HALVES(3, suffix)                                                                 \
    PDAWL_HALVES(4, suffix)                                                                 \
    PDAWL_HALVES(8, suffix)                                                                 \
    PDAWL_HALVES(16, suffix)
// Aligned vectors of 3 are 4 apart.
#define PDAWL_HALVES(N, suffix)                                                             \
    template <class V>                                                                      \
    __forceinline__ void vstore_half##N##suffix(const V &v_of, size_t at, half *to)         \
    {                                                                                       \
        PDAWL_VALUE(v)                                                                      \
        PDAWL_EACH(i, N) to[at * N + i] = half_of##suffix(part(v, i));                      \
    }                                                                                       \
    template <class V>                                                                      \
    __forceinline__ void vstorea_half##N##suffix(const V &v_of, size_t at, half *to)        \
    {                                                                                       \
        PDAWL_VALUE(v)                                                                      \
        PDAWL_EACH(i, N) to[at * (N == 3 ? 4 : N) + i] = half_of##suffix(part(v, i));       \
    }
PDAWL_HALF(, rn)
PDAWL_HALF(_rte, rn)
PDAWL_HALF(_rtz, rz)
PDAWL_HALF(_rtp, rp)
PDAWL_HALF(_rtn, rm)
#undef PDAWL_HALF
#undef PDAWL_HALVES
__forceinline__ float vload_half(size_t at, const half *from) { return whole_of(from[at]); }
#define PDAWL_HALVES(N)                                                                     \
    __forceinline__ vector<float, N> vload_half##N(size_t at, const half *from)             \
    {                                                                                       \
        vector<float, N> v;                                                                 \
        PDAWL_EACH(i, N) v[i] = whole_of(from[at * N + i]);                            \
        return v;                                                                           \
    }                                                                                       \
    __forceinline__ vector<float, N> vloada_half##N(size_t at, const half *from)            \
    {                                                                                       \
        vector<float, N> v;                                                                 \
        PDAWL_EACH(i, N) v[i] = whole_of(from[at * (N == 3 ? 4 : N) + i]);             \
        return v;                                                                           \
    }
PDAWL_HALVES(2)
PDAWL_HALVES(3)
PDAWL_HALVES(4)
PDAWL_HALVES(8)
PDAWL_HALVES(16)
#undef PDAWL_HALVES

// ---- Atomic operations, under the names of both the core and the extensions.

#define PDAWL_ATOMIC_FOR(T, Of, name, call)                                                 \
    __forceinline__ T atomic_##name(volatile T *at, T value)                                \
    {                                                                                       \
        Of *place = (Of *)at;                                                               \
        return (T)call;                                                                     \
    }                                                                                       \
    __forceinline__ T atom_##name(volatile T *at, T value) { return atomic_##name(at, value); }
#define PDAWL_ATOMIC(name, call)                                    \
    PDAWL_ATOMIC_FOR(int, int, name, call)                          \
    PDAWL_ATOMIC_FOR(uint, uint, name, call)                        \
    PDAWL_ATOMIC_FOR(long, long long, name, call)                   \
    PDAWL_ATOMIC_FOR(ulong, unsigned long long, name, call)
template <class T, class V> __forceinline__ T summed(T *place, V value)
{
    return (T)::atomicAdd((typename chosen<sizeof(T) == 4, T, unsigned long long>::type *)place,
                          (typename chosen<sizeof(T) == 4, T, unsigned long long>::type)value);
}
template <class T, class V> __forceinline__ T exchanged(T *place, V value)
{
    return (T)::atomicExch((typename chosen<sizeof(T) == 4, T, unsigned long long>::type *)place,
                           (typename chosen<sizeof(T) == 4, T, unsigned long long>::type)value);
}
PDAWL_ATOMIC(add, summed(place, value))
PDAWL_ATOMIC(sub, summed(place, 0 - value))
PDAWL_ATOMIC(xchg, exchanged(place, value))
PDAWL_ATOMIC(min, ::atomicMin(place, value))
PDAWL_ATOMIC(max, ::atomicMax(place, value))
PDAWL_ATOMIC(and, ::atomicAnd(place, value))
PDAWL_ATOMIC(or, ::atomicOr(place, value))
PDAWL_ATOMIC(xor, ::atomicXor(place, value))
#undef PDAWL_ATOMIC
#undef PDAWL_ATOMIC_FOR
__forceinline__ float atomic_xchg(volatile float *at, float value)
{
    return ::atomicExch((float *)at, value);
}
#define PDAWL_ATOMIC_1(T, Of)                                                               \
    __forceinline__ T atomic_inc(volatile T *at) { return atomic_add(at, (T)1); }           \
    __forceinline__ T atomic_dec(volatile T *at) { return atomic_sub(at, (T)1); }           \
    __forceinline__ T atom_inc(volatile T *at) { return atomic_add(at, (T)1); }             \
    __forceinline__ T atom_dec(volatile T *at) { return atomic_sub(at, (T)1); }             \
    __forceinline__ T atomic_cmpxchg(volatile T *at, T expected, T value)                   \
    {                                                                                       \
        return (T)::atomicCAS((Of *)at, (Of)expected, (Of)value);                           \
    }                                                                                       \
    __forceinline__ T atom_cmpxchg(volatile T *at, T expected, T value)                     \
    {                                                                                       \
        return atomic_cmpxchg(at, expected, value);                                         \
    }
PDAWL_ATOMIC_1(int, int)
PDAWL_ATOMIC_1(uint, uint)
PDAWL_ATOMIC_1(long, unsigned long long)
PDAWL_ATOMIC_1(ulong, unsigned long long)
#undef PDAWL_ATOMIC_1

// ---- Copies by a group, and other components.

typedef int event_t;

template <class T>
__forceinline__ event_t async_work_group_strided_copy_by(T *to, const T *from, size_t count,
                                                         size_t to_step, size_t from_step)
{
    const size_t items = blockDim.x * blockDim.y * blockDim.z;
    for (size_t i = get_local_linear_id(); i < count; i += items)
        to[i * to_step] = from[i * from_step];
    return 0;
}
template <class T>
__forceinline__ event_t async_work_group_copy(T *to, const T *from, size_t count, event_t)
{
    return async_work_group_strided_copy_by(to, from, count, 1, 1);
}
// The stride is that of the memory that is not local.
template <class T>
__forceinline__ event_t async_work_group_strided_copy(T *to, const T *from, size_t count,
                                                      size_t stride, event_t)
{
    const bool is_to_local = __isShared(to);
    return async_work_group_strided_copy_by(to, from, count, is_to_local ? 1 : stride,
                                            is_to_local ? stride : 1);
}
__forceinline__ void wait_group_events(int, const event_t *) { __syncthreads(); }
template <class T> __forceinline__ void prefetch(const T *, size_t) {}

template <class A, class M, class V = own<A>>
__forceinline__ vector<element<V>, count_of<M>()> shuffle(const A &a_of, const M &mask_of)
{
    PDAWL_VALUE(a) PDAWL_VALUE(mask)
    vector<element<V>, count_of<M>()> v;
    PDAWL_EACH(i, count_of<M>()) v[i] = part(a, (int)(part(mask, i) & (count_of<V>() - 1)));
    return v;
}
template <class A, class B, class M, class V = own<A>>
__forceinline__ vector<element<V>, count_of<M>()> shuffle2(const A &a_of, const B &b_of, const M &mask_of)
{
    PDAWL_VALUE(a) PDAWL_VALUE(b) PDAWL_VALUE(mask)
    vector<element<V>, count_of<M>()> v;
    PDAWL_EACH(i, count_of<M>())
    {
        const int at = (int)(part(mask, i) & (2 * count_of<V>() - 1));
        v[i] = at < count_of<V>() ? part(a, at) : part(b, at - count_of<V>());
    }
    return v;
}

} // namespace opencl

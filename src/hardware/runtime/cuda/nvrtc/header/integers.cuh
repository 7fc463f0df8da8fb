// Functions of integers, and those of all numbers: min, max, clamp, select.

namespace opencl {

template <class A, class B> using plain = decltype(A() + B());
template <class A, class B> struct wide { typedef plain<A, B> type; };
// Small integers stay what they are.
template <class A> struct wide<A, A> { typedef A type; };
#define PDAWL_IF_NUMBERS(A, B) typename enable<number<A>::is() &&number<B>::is()>::type = 0
#define PDAWL_IF_WHOLE(A) typename enable<number<A>::is_whole()>::type = 0

template <class A, class B, PDAWL_IF_NUMBERS(A, B)>
__forceinline__ typename wide<A, B>::type min(A a, B b)
{
    typedef typename wide<A, B>::type T;
    return (T)b < (T)a ? (T)b : (T)a;
}
PDAWL_VECTORS_2(min)
template <class A, class B, PDAWL_IF_NUMBERS(A, B)>
__forceinline__ typename wide<A, B>::type max(A a, B b)
{
    typedef typename wide<A, B>::type T;
    return (T)a < (T)b ? (T)b : (T)a;
}
PDAWL_VECTORS_2(max)
template <class A, class B, class C, PDAWL_IF_NUMBERS(A, B)>
__forceinline__ typename enable<number<C>::is(), A>::type clamp(A a, B least, C most)
{
    return (A)min(max(a, (A)least), (A)most);
}
PDAWL_VECTORS_3(clamp)

template <class A, PDAWL_IF_WHOLE(A)>
__forceinline__ typename number<A>::without_sign abs(A a)
{
    typedef typename number<A>::without_sign U;
    return a < 0 ? (U)(0 - (U)a) : (U)a;
}
PDAWL_VECTORS_1(abs)
template <class A, PDAWL_IF_WHOLE(A)>
__forceinline__ typename number<A>::without_sign abs_diff(A a, A b)
{
    typedef typename number<A>::without_sign U;
    return a < b ? (U)((U)b - (U)a) : (U)((U)a - (U)b);
}
PDAWL_VECTORS_2(abs_diff)

template <class T> struct limits {
    typedef typename number<T>::without_sign U;
    static constexpr int bits = 8 * sizeof(T);
    static constexpr bool has_sign = (T)-1 < (T)0;
    static constexpr T most = has_sign ? (T)((U)-1 >> 1) : (T)-1;
    static constexpr T least = has_sign ? (T)(-most - 1) : (T)0;
};

template <class A, PDAWL_IF_WHOLE(A)> __forceinline__ A add_sat(A a, A b)
{
    typedef limits<A> of;
    if (b > 0 && a > (A)(of::most - b))
        return of::most;
    if (b < 0 && a < (A)(of::least - b))
        return of::least;
    return (A)(a + b);
}
PDAWL_VECTORS_2(add_sat)
template <class A, PDAWL_IF_WHOLE(A)> __forceinline__ A sub_sat(A a, A b)
{
    typedef limits<A> of;
    if (b > 0 && a < (A)(of::least + b))
        return of::least;
    if (b < 0 && a > (A)(of::most + b))
        return of::most;
    return (A)(a - b);
}
PDAWL_VECTORS_2(sub_sat)
template <class A, PDAWL_IF_WHOLE(A)> __forceinline__ A hadd(A a, A b)
{
    return (A)((a >> 1) + (b >> 1) + (a & b & 1));
}
PDAWL_VECTORS_2(hadd)
template <class A, PDAWL_IF_WHOLE(A)> __forceinline__ A rhadd(A a, A b)
{
    return (A)((a >> 1) + (b >> 1) + ((a | b) & 1));
}
PDAWL_VECTORS_2(rhadd)

__forceinline__ int mul_hi(int a, int b) { return (int)(((long)a * b) >> 32); }
__forceinline__ uint mul_hi(uint a, uint b) { return (uint)(((ulong)a * b) >> 32); }
__forceinline__ long mul_hi(long a, long b) { return __mul64hi(a, b); }
__forceinline__ ulong mul_hi(ulong a, ulong b) { return __umul64hi(a, b); }
__forceinline__ char mul_hi(char a, char b) { return (char)((a * b) >> 8); }
__forceinline__ uchar mul_hi(uchar a, uchar b) { return (uchar)((a * b) >> 8); }
__forceinline__ short mul_hi(short a, short b) { return (short)((a * b) >> 16); }
__forceinline__ ushort mul_hi(ushort a, ushort b) { return (ushort)(((uint)a * b) >> 16); }
PDAWL_VECTORS_2(mul_hi)
template <class A, PDAWL_IF_WHOLE(A)> __forceinline__ A mad_hi(A a, A b, A c)
{
    return (A)(mul_hi(a, b) + c);
}
PDAWL_VECTORS_3(mad_hi)
template <class A, PDAWL_IF_WHOLE(A)> __forceinline__ A mul_sat(A a, A b)
{
    typedef limits<A> of;
    typedef typename number<A>::without_sign U;
    const A high = mul_hi(a, b), low = (A)((U)a * (U)b);
    // The upper half of what fits repeats the sign of the lower one.
    const A fits = of::has_sign && low < 0 ? (A)-1 : (A)0;
    if (high == fits)
        return low;
    return of::has_sign && high < 0 ? of::least : of::most;
}
// A product that does not fit may still have a sum that does.
template <class A, PDAWL_IF_WHOLE(A)> __forceinline__ A mad_sat(A a, A b, A c)
{
    typedef limits<A> of;
    typedef typename number<A>::without_sign U;
    const U low = (U)((U)a * (U)b), sum = (U)(low + (U)c);
    A high = mul_hi(a, b);
    high = (A)(high + (sum < low ? 1 : 0) + (of::has_sign && c < 0 ? -1 : 0));
    const A fits = of::has_sign && (A)sum < 0 ? (A)-1 : (A)0;
    if (high == fits)
        return (A)sum;
    return of::has_sign && high < 0 ? of::least : of::most;
}
PDAWL_VECTORS_3(mad_sat)

__forceinline__ int mul24(int a, int b) { return __mul24(a, b); }
__forceinline__ uint mul24(uint a, uint b) { return __umul24(a, b); }
PDAWL_VECTORS_2(mul24)
__forceinline__ int mad24(int a, int b, int c) { return __mul24(a, b) + c; }
__forceinline__ uint mad24(uint a, uint b, uint c) { return __umul24(a, b) + c; }
PDAWL_VECTORS_3(mad24)

template <class A, PDAWL_IF_WHOLE(A)> __forceinline__ A clz(A a)
{
    typedef typename number<A>::without_sign U;
    return (A)(sizeof(A) == 8 ? __clzll((long long)a)
                              : __clz((int)(U)a) - (32 - 8 * (int)sizeof(A)));
}
PDAWL_VECTORS_1(clz)
template <class A, PDAWL_IF_WHOLE(A)> __forceinline__ A ctz(A a)
{
    if (a == 0)
        return (A)(8 * sizeof(A));
    return (A)(__ffsll((long long)a) - 1);
}
PDAWL_VECTORS_1(ctz)
template <class A, PDAWL_IF_WHOLE(A)> __forceinline__ A popcount(A a)
{
    typedef typename number<A>::without_sign U;
    return (A)__popcll((unsigned long long)(U)a);
}
PDAWL_VECTORS_1(popcount)
template <class A, PDAWL_IF_WHOLE(A)> __forceinline__ A rotate(A a, A by)
{
    typedef typename number<A>::without_sign U;
    const uint bits = 8 * sizeof(A), left = (uint)by & (bits - 1);
    return (A)(U)((U)a << left | (U)a >> ((bits - left) & (bits - 1)));
}
PDAWL_VECTORS_2(rotate)

__forceinline__ short upsample(char high, uchar low) { return (short)((uint)high << 8 | low); }
__forceinline__ ushort upsample(uchar high, uchar low) { return (ushort)((uint)high << 8 | low); }
__forceinline__ int upsample(short high, ushort low) { return (int)((uint)high << 16 | low); }
__forceinline__ uint upsample(ushort high, ushort low) { return (uint)high << 16 | low; }
__forceinline__ long upsample(int high, uint low) { return (long)((ulong)high << 32 | low); }
__forceinline__ ulong upsample(uint high, uint low) { return (ulong)high << 32 | low; }
PDAWL_VECTORS_OTHER(upsample)

// Of numbers, what is not 0 chooses b; of vectors, the highest bit of a component.
template <class A, class B, class C, PDAWL_IF_NUMBERS(A, B)>
__forceinline__ typename enable<number<C>::is(), A>::type select(A a, B b, C chooses)
{
    return chooses ? (A)b : a;
}
template <class A, class B, class C, class V = both<A, B>>
__forceinline__ V select(const A &a_of, const B &b_of, const C &chooses_of)
{
    PDAWL_VALUE(a) PDAWL_VALUE(b) PDAWL_VALUE(chooses)
    V v;
    PDAWL_EACH(i, count_of<V>())
    {
        typedef typename number<element<C>>::with_sign S;
        v[i] = (S)part(chooses, i) < 0 ? part(b, i) : part(a, i);
    }
    return v;
}
template <class T> __forceinline__ typename number<T>::without_sign bits_of(T a)
{
    typename number<T>::without_sign bits;
    memcpy(&bits, &a, sizeof(a));
    return bits;
}
template <class A, PDAWL_IF_NUMBERS(A, A)> __forceinline__ A bitselect(A a, A b, A c)
{
    typedef typename number<A>::without_sign U;
    const U chooses = bits_of(c);
    const U bits = (U)((bits_of(a) & ~chooses) | (bits_of(b) & chooses));
    A made;
    memcpy(&made, &bits, sizeof(made));
    return made;
}
PDAWL_VECTORS_3(bitselect)

template <class A, PDAWL_IF_WHOLE(A)> __forceinline__ int any(A a) { return a < 0; }
template <class A, PDAWL_IF_WHOLE(A)> __forceinline__ int all(A a) { return a < 0; }
template <class A, class V = own<A>> __forceinline__ int any(const A &a_of)
{
    PDAWL_VALUE(a)
    int is = 0;
    PDAWL_EACH(i, count_of<V>()) is |= part(a, i) < 0;
    return is;
}
template <class A, class V = own<A>> __forceinline__ int all(const A &a_of)
{
    PDAWL_VALUE(a)
    int is = 1;
    PDAWL_EACH(i, count_of<V>()) is &= part(a, i) < 0;
    return is;
}

} // namespace opencl

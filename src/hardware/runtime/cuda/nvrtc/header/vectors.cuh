// Vectors of 2, 3, 4, 8 and 16 components: parts, operators, and functions of components.
//
// PDAWL_SWIZZLES_4 and its like declare the parts that the source names, such as
// `swizzle<T, 2, 1> zy;` (`swizzle_macros` in src/hardware/runtime/cuda/nvrtc/source).

namespace opencl {

template <class T, int N> struct vector;

template <bool IS, class T = int> struct enable {};
template <class T> struct enable<true, T> { typedef T type; };
template <class A, class B> struct same { static constexpr bool is() { return false; } };
template <class A> struct same<A, A> { static constexpr bool is() { return true; } };

template <class T> struct number { static constexpr bool is() { return false; } };
template <> struct number<bool> { static constexpr bool is() { return true; } };
// Kinds of numbers, and the types of the same size that have or have no sign.
#define PDAWL_NUMBER(T, WHOLE, SIGNED, UNSIGNED)             \
    template <> struct number<T> {                           \
        static constexpr bool is() { return true; }          \
        static constexpr bool is_whole() { return WHOLE; }   \
        typedef SIGNED with_sign;                            \
        typedef UNSIGNED without_sign;                       \
    };
PDAWL_NUMBER(char, true, char, uchar)
PDAWL_NUMBER(signed char, true, char, uchar)
PDAWL_NUMBER(uchar, true, char, uchar)
PDAWL_NUMBER(short, true, short, ushort)
PDAWL_NUMBER(ushort, true, short, ushort)
PDAWL_NUMBER(int, true, int, uint)
PDAWL_NUMBER(uint, true, int, uint)
PDAWL_NUMBER(long, true, long, ulong)
PDAWL_NUMBER(ulong, true, long, ulong)
PDAWL_NUMBER(long long, true, long, ulong)
PDAWL_NUMBER(unsigned long long, true, long, ulong)
PDAWL_NUMBER(float, false, int, uint)
PDAWL_NUMBER(double, false, long, ulong)
#undef PDAWL_NUMBER

// Some components of a vector. It lies where the vector does, and is as large as one component,
// so that it is not copied: what takes it has a vector of its components.
template <class T, int... I> struct swizzle {
    T first;

    swizzle() = default;
    swizzle(const swizzle &) = delete;
    __forceinline__ T &at(int i) { return ((T *)this)[i]; }
    __forceinline__ const T &at(int i) const { return ((const T *)this)[i]; }
    __forceinline__ operator vector<T, sizeof...(I)>() const
    {
        return vector<T, sizeof...(I)>(at(I)...);
    }
    template <class V> __forceinline__ swizzle &operator=(const V &from)
    {
        return set(vector<T, sizeof...(I)>(from));
    }
    __forceinline__ swizzle &operator=(const swizzle &from)
    {
        return set(vector<T, sizeof...(I)>(from));
    }
    __forceinline__ swizzle &set(const vector<T, sizeof...(I)> &from)
    {
        int i = 0;
        ((at(I) = from[i++]), ...);
        return *this;
    }
    template <class V> __forceinline__ swizzle &operator+=(const V &v) { return set(*this + v); }
    template <class V> __forceinline__ swizzle &operator-=(const V &v) { return set(*this - v); }
    template <class V> __forceinline__ swizzle &operator*=(const V &v) { return set(*this * v); }
    template <class V> __forceinline__ swizzle &operator/=(const V &v) { return set(*this / v); }
};

// What something has: components of a vector or its part, or one number.
template <class V> struct shape {
    static constexpr int count() { return 0; }
    typedef V element;
};
template <class T, int N> struct shape<vector<T, N>> {
    static constexpr int count() { return N; }
    typedef T element;
};
template <class T, int... I> struct shape<swizzle<T, I...>> {
    static constexpr int count() { return sizeof...(I); }
    typedef T element;
};
template <class V> using element = typename shape<V>::element;
// How many components it is made of; 0 if it is no vector.
template <class V> constexpr int count_of() { return shape<V>::count(); }
template <class V> constexpr int places_of() { return count_of<V>() == 0 ? 1 : count_of<V>(); }

template <class V> __forceinline__ V part(const V &number, int) { return number; }
template <class T, int N> __forceinline__ T part(const vector<T, N> &v, int i) { return v[i]; }

// A number or a vector of its own, which is read at once.
template <class V> __forceinline__ V value(const V &number) { return number; }
template <class T, int... I> __forceinline__ vector<T, sizeof...(I)> value(const swizzle<T, I...> &v)
{
    return v;
}
#define PDAWL_VALUE(name) const auto name = value(name##_of);

template <class T, int N> struct alignas(N * sizeof(T)) together {
    T data[N];
};

#define PDAWL_EACH(i, N) _Pragma("unroll") for (int i = 0; i < (N); i++)

template <class... S> struct numbers { static constexpr bool are() { return true; } };
template <class S, class... R> struct numbers<S, R...> {
    static constexpr bool are() { return number<S>::is() && numbers<R...>::are(); }
};
struct of_components {};

// A vector's constructors: one number for all components, a number for each, or numbers and
// vectors one after the other. Those of numbers are constant, for tables.
#define PDAWL_CONSTRUCTORS(N)                                                               \
    vector() = default;                                                                     \
    __forceinline__ vector(const vector &from) { copy(from); }                              \
    template <class... S, typename enable<sizeof...(S) == N && numbers<S...>::are()>::type = 0> \
    __forceinline__ constexpr vector(S... all) : vector(of_components(), (T)all...)         \
    {                                                                                       \
    }                                                                                       \
    template <class A, class B, class... R,                                                 \
              typename enable<!(sizeof...(R) + 2 == N && numbers<A, B, R...>::are())>::type = 0> \
    __forceinline__ vector(const A &a, const B &b, const R &...rest)                        \
    {                                                                                       \
        static_assert(components<A, B, R...>::count() == N,                                 \
                      "a vector is made of as many numbers as it has components");          \
        fill(0, a, b, rest...);                                                             \
    }                                                                                       \
    __forceinline__ vector &operator=(const vector &from)                                   \
    {                                                                                       \
        copy(from);                                                                         \
        return *this;                                                                       \
    }                                                                                       \
    /* At once: a vector of 16 bytes is one access to memory. */                            \
    __forceinline__ void copy(const vector &from)                                           \
    {                                                                                       \
        typedef together<T, sizeof(vector) / sizeof(T)> all;                                \
        *(all *)this = *(const all *)&from;                                                 \
    }                                                                                       \
    __forceinline__ void fill(int) {}                                                       \
    template <class A, class... R>                                                          \
    __forceinline__ void fill(int at, const A &first, const R &...rest)                     \
    {                                                                                       \
        const auto a = value(first);                                                        \
        PDAWL_EACH(i, places_of<A>()) (*this)[at + i] = (T)part(a, i);                      \
        fill(at + places_of<A>(), rest...);                                                 \
    }                                                                                       \
    __forceinline__ T &operator[](int i) { return ((T *)this)[i]; }                         \
    __forceinline__ const T &operator[](int i) const { return ((const T *)this)[i]; }

template <class... V> struct components { static constexpr int count() { return 0; } };
template <class V, class... R> struct components<V, R...> {
    static constexpr int count() { return places_of<V>() + components<R...>::count(); }
};

// The first component has the parts of a vector in its place.
template <class T> struct alignas(2 * sizeof(T)) vector<T, 2> {
    union {
        T x, s0, lo, even;
        PDAWL_SWIZZLES_2
    };
    union { T y, s1, hi, odd; };
    PDAWL_CONSTRUCTORS(2)
    template <class S, typename enable<number<S>::is()>::type = 0>
    __forceinline__ constexpr vector(S all)
        : vector(of_components(), (T)all, (T)all)
    {
    }
    __forceinline__ constexpr vector(of_components,
                                     T a0, T a1)
        : x(a0), y(a1)
    {
    }
};

template <class T> struct alignas(4 * sizeof(T)) vector<T, 3> {
    union {
        T x, s0;
        swizzle<T, 0, 1> lo;
        PDAWL_SWIZZLES_3
    };
    union { T y, s1; };
    union { T z, s2; };
    PDAWL_CONSTRUCTORS(3)
    template <class S, typename enable<number<S>::is()>::type = 0>
    __forceinline__ constexpr vector(S all)
        : vector(of_components(), (T)all, (T)all, (T)all)
    {
    }
    __forceinline__ constexpr vector(of_components,
                                     T a0, T a1, T a2)
        : x(a0), y(a1), z(a2)
    {
    }
};

template <class T> struct alignas(4 * sizeof(T)) vector<T, 4> {
    union {
        T x, s0;
        swizzle<T, 0, 1> lo;
        swizzle<T, 2, 3> hi;
        swizzle<T, 0, 2> even;
        swizzle<T, 1, 3> odd;
        PDAWL_SWIZZLES_4
    };
    union { T y, s1; };
    union { T z, s2; };
    union { T w, s3; };
    PDAWL_CONSTRUCTORS(4)
    template <class S, typename enable<number<S>::is()>::type = 0>
    __forceinline__ constexpr vector(S all)
        : vector(of_components(), (T)all, (T)all, (T)all, (T)all)
    {
    }
    __forceinline__ constexpr vector(of_components,
                                     T a0, T a1, T a2, T a3)
        : x(a0), y(a1), z(a2), w(a3)
    {
    }
};

template <class T> struct alignas(8 * sizeof(T)) vector<T, 8> {
    union {
        T s0;
        swizzle<T, 0, 1, 2, 3> lo;
        swizzle<T, 4, 5, 6, 7> hi;
        swizzle<T, 0, 2, 4, 6> even;
        swizzle<T, 1, 3, 5, 7> odd;
        PDAWL_SWIZZLES_8
    };
    T s1, s2, s3, s4, s5, s6, s7;
    PDAWL_CONSTRUCTORS(8)
    template <class S, typename enable<number<S>::is()>::type = 0>
    __forceinline__ constexpr vector(S all)
        : vector(of_components(), (T)all, (T)all, (T)all, (T)all, (T)all, (T)all, (T)all,
        (T)all)
    {
    }
    __forceinline__ constexpr vector(of_components,
                                     T a0, T a1, T a2, T a3, T a4, T a5, T a6, T a7)
        : s0(a0), s1(a1), s2(a2), s3(a3), s4(a4), s5(a5), s6(a6), s7(a7)
    {
    }
};

template <class T> struct alignas(16 * sizeof(T)) vector<T, 16> {
    union {
        T s0;
        swizzle<T, 0, 1, 2, 3, 4, 5, 6, 7> lo;
        swizzle<T, 8, 9, 10, 11, 12, 13, 14, 15> hi;
        swizzle<T, 0, 2, 4, 6, 8, 10, 12, 14> even;
        swizzle<T, 1, 3, 5, 7, 9, 11, 13, 15> odd;
        PDAWL_SWIZZLES_16
    };
    T s1, s2, s3, s4, s5, s6, s7, s8, s9;
    union { T sa, sA; };
    union { T sb, sB; };
    union { T sc, sC; };
    union { T sd, sD; };
    union { T se, sE; };
    union { T sf, sF; };
    PDAWL_CONSTRUCTORS(16)
    template <class S, typename enable<number<S>::is()>::type = 0>
    __forceinline__ constexpr vector(S all)
        : vector(of_components(), (T)all, (T)all, (T)all, (T)all, (T)all, (T)all, (T)all,
        (T)all, (T)all, (T)all, (T)all, (T)all, (T)all, (T)all, (T)all, (T)all)
    {
    }
    __forceinline__ constexpr vector(of_components,
                                     T a0, T a1, T a2, T a3, T a4, T a5, T a6, T a7, T a8, T a9,
                                     T a10, T a11, T a12, T a13, T a14, T a15)
        : s0(a0), s1(a1), s2(a2), s3(a3), s4(a4), s5(a5), s6(a6), s7(a7), s8(a8), s9(a9),
        sa(a10), sb(a11), sc(a12), sd(a13), se(a14), sf(a15)
    {
    }
};
#undef PDAWL_CONSTRUCTORS

#define PDAWL_TYPES(T)           \
    typedef vector<T, 2> T##2;   \
    typedef vector<T, 3> T##3;   \
    typedef vector<T, 4> T##4;   \
    typedef vector<T, 8> T##8;   \
    typedef vector<T, 16> T##16;
PDAWL_TYPES(char)
PDAWL_TYPES(uchar)
PDAWL_TYPES(short)
PDAWL_TYPES(ushort)
PDAWL_TYPES(int)
PDAWL_TYPES(uint)
PDAWL_TYPES(long)
PDAWL_TYPES(ulong)
PDAWL_TYPES(float)
PDAWL_TYPES(double)
#undef PDAWL_TYPES

// The vector that an operator or a function makes of arguments of which at least one is a
// vector: numbers take its type.
template <int N, class T> struct made { typedef vector<T, N> type; };
template <class T> struct made<0, T> {};
template <bool IS_FIRST, class A, class B> struct chosen { typedef A type; };
template <class A, class B> struct chosen<false, A, B> { typedef B type; };
template <class A, class B> constexpr int count_of_both()
{
    constexpr int a = count_of<A>(), b = count_of<B>();
    if (a == b)
        return same<element<A>, element<B>>::is() ? a : 0;
    return (a == 0 && number<A>::is()) ? b : (b == 0 && number<B>::is()) ? a : 0;
}
template <class A, class B>
struct joined : made<count_of_both<A, B>(),
                     typename chosen<(count_of<A>() != 0), element<A>, element<B>>::type> {};
template <class V> using own = typename made<count_of<V>(), element<V>>::type;
template <class A, class B> using both = typename joined<A, B>::type;
// Of a vector, one of numbers of the same size with or without sign.
template <class V> using with_sign =
    typename made<count_of<V>(), typename number<element<V>>::with_sign>::type;
template <class V> using without_sign =
    typename made<count_of<V>(), typename number<element<V>>::without_sign>::type;

#define PDAWL_OPERATOR(op)                                                                  \
    template <class A, class B, class V = both<A, B>>                                       \
    __forceinline__ V operator op(const A &a_of, const B &b_of)                             \
    {                                                                                       \
        PDAWL_VALUE(a) PDAWL_VALUE(b)                                                       \
        typedef element<V> T;                                                               \
        V v;                                                                                \
        PDAWL_EACH(i, count_of<V>()) v[i] = (T)((T)part(a, i) op (T)part(b, i));            \
        return v;                                                                           \
    }                                                                                       \
    template <class T, int N, class B, class V = both<vector<T, N>, B>>                     \
    __forceinline__ vector<T, N> &operator op##=(vector<T, N> &a, const B &b)         \
    {                                                                                       \
        return a = a op b;                                                                  \
    }
PDAWL_OPERATOR(+)
PDAWL_OPERATOR(-)
PDAWL_OPERATOR(*)
PDAWL_OPERATOR(/)
PDAWL_OPERATOR(%)
PDAWL_OPERATOR(&)
PDAWL_OPERATOR(|)
PDAWL_OPERATOR(^)
#undef PDAWL_OPERATOR

// Bits are shifted by a number less than that of the type's bits.
#define PDAWL_SHIFT(op)                                                                     \
    template <class A, class B, class V = own<A>>                                           \
    __forceinline__ V operator op(const A &a_of, const B &b_of)                             \
    {                                                                                       \
        PDAWL_VALUE(a) PDAWL_VALUE(b)                                                       \
        typedef element<V> T;                                                               \
        V v;                                                                                \
        PDAWL_EACH(i, count_of<V>())                                                        \
            v[i] = (T)(part(a, i) op ((int)part(b, i) & (8 * (int)sizeof(T) - 1)));    \
        return v;                                                                           \
    }                                                                                       \
    template <class T, int N, class B>                                                      \
    __forceinline__ vector<T, N> &operator op##=(vector<T, N> &a, const B &b)         \
    {                                                                                       \
        return a = a op b;                                                                  \
    }
PDAWL_SHIFT(<<)
PDAWL_SHIFT(>>)
#undef PDAWL_SHIFT

// True is a number with all bits set.
#define PDAWL_COMPARISON(op)                                                                \
    template <class A, class B, class V = both<A, B>>                                       \
    __forceinline__ with_sign<V> operator op(const A &a_of, const B &b_of)                  \
    {                                                                                       \
        PDAWL_VALUE(a) PDAWL_VALUE(b)                                                       \
        typedef element<V> T;                                                               \
        with_sign<V> v;                                                                     \
        PDAWL_EACH(i, count_of<V>()) v[i] = (T)part(a, i) op (T)part(b, i) ? -1 : 0;        \
        return v;                                                                           \
    }
PDAWL_COMPARISON(==)
PDAWL_COMPARISON(!=)
PDAWL_COMPARISON(<)
PDAWL_COMPARISON(>)
PDAWL_COMPARISON(<=)
PDAWL_COMPARISON(>=)
PDAWL_COMPARISON(&&)
PDAWL_COMPARISON(||)
#undef PDAWL_COMPARISON

template <class A, class V = own<A>> __forceinline__ with_sign<V> operator!(const A &a_of)
{
    PDAWL_VALUE(a)
    return a == (element<V>)0;
}
template <class A, class V = own<A>> __forceinline__ V operator+(const A &a) { return a; }

template <class A, class V = own<A>> __forceinline__ V operator-(const A &a_of)
{
    PDAWL_VALUE(a)
    V v;
    PDAWL_EACH(i, count_of<V>()) v[i] = (element<V>)-part(a, i);
    return v;
}
template <class A, class V = own<A>> __forceinline__ V operator~(const A &a_of)
{
    PDAWL_VALUE(a)
    V v;
    PDAWL_EACH(i, count_of<V>()) v[i] = (element<V>)~part(a, i);
    return v;
}
template <class T, int N> __forceinline__ vector<T, N> &operator++(vector<T, N> &v)
{
    return v += (T)1;
}
template <class T, int N> __forceinline__ vector<T, N> &operator--(vector<T, N> &v)
{
    return v -= (T)1;
}
template <class T, int N> __forceinline__ vector<T, N> operator++(vector<T, N> &v, int)
{
    const vector<T, N> before = v;
    v += (T)1;
    return before;
}
template <class T, int N> __forceinline__ vector<T, N> operator--(vector<T, N> &v, int)
{
    const vector<T, N> before = v;
    v -= (T)1;
    return before;
}

// As `both`, and a number of two numbers.
template <class A, class B, bool ARE_NUMBERS = (number<A>::is() && number<B>::is())>
struct joined_or : joined<A, B> {};
template <class A, class B> struct joined_or<A, B, true> { typedef A type; };
template <class A, class B> using both_or_number = typename joined_or<A, B>::type;

// Functions of numbers become functions of vectors, component by component.
#define PDAWL_VECTORS_1(name)                                                               \
    template <class A, class V = own<A>> __forceinline__ auto name(const A &a_of)           \
    {                                                                                       \
        PDAWL_VALUE(a)                                                                      \
        typename made<count_of<V>(), decltype(name(part(a, 0)))>::type v;                   \
        PDAWL_EACH(i, count_of<V>()) v[i] = name(part(a, i));                               \
        return v;                                                                           \
    }
#define PDAWL_VECTORS_2(name)                                                               \
    template <class A, class B, class V = both<A, B>>                                       \
    __forceinline__ auto name(const A &a_of, const B &b_of)                                 \
    {                                                                                       \
        PDAWL_VALUE(a) PDAWL_VALUE(b)                                                       \
        typedef element<V> T;                                                               \
        typename made<count_of<V>(), decltype(name(T(), T()))>::type v;                     \
        PDAWL_EACH(i, count_of<V>()) v[i] = name((T)part(a, i), (T)part(b, i));             \
        return v;                                                                           \
    }
#define PDAWL_VECTORS_3(name)                                                               \
    template <class A, class B, class C, class V = both<both_or_number<A, B>, C>>           \
    __forceinline__ auto name(const A &a_of, const B &b_of, const C &c_of)                  \
    {                                                                                       \
        PDAWL_VALUE(a) PDAWL_VALUE(b) PDAWL_VALUE(c)                                        \
        typedef element<V> T;                                                               \
        typename made<count_of<V>(), decltype(name(T(), T(), T()))>::type v;                \
        PDAWL_EACH(i, count_of<V>())                                                        \
            v[i] = name((T)part(a, i), (T)part(b, i), (T)part(c, i));                  \
        return v;                                                                           \
    }
// For functions whose second argument has a type of its own, as `ldexp`.
#define PDAWL_VECTORS_OTHER(name)                                                           \
    template <class A, class B, class V = own<A>>                                           \
    __forceinline__ auto name(const A &a_of, const B &b_of)                                 \
    {                                                                                       \
        PDAWL_VALUE(a) PDAWL_VALUE(b)                                                       \
        typename made<count_of<V>(), decltype(name(part(a, 0), part(b, 0)))>::type v;       \
        PDAWL_EACH(i, count_of<V>()) v[i] = name(part(a, i), part(b, i));                   \
        return v;                                                                           \
    }
// For functions that also write a result.
#define PDAWL_VECTORS_POINTER(name)                                                         \
    template <class A, class P, int N, class V = own<A>>                                    \
    __forceinline__ V name(const A &a_of, vector<P, N> *to)                                 \
    {                                                                                       \
        PDAWL_VALUE(a)                                                                      \
        V v;                                                                                \
        PDAWL_EACH(i, N) v[i] = name(part(a, i), &(*to)[i]);                        \
        return v;                                                                           \
    }

} // namespace opencl

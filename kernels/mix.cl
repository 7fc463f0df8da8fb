// The parts of a checking kernel, which src/codelet/mix generates for each number of
// memories. src/codelet/mix/mod.rs describes the arguments and the bytes.

// The digest with these bytes taken in, one after the other.
static inline ulong take(ulong digest, __global const uchar *bytes, ulong count)
{
    for (ulong at = 0; at < count; at++)
        digest = (digest ^ bytes[at]) * 0x00000100000001b3UL;
    // The length, so that a byte more or less always matters.
    return (digest ^ count) * 0x9e3779b97f4a7c15UL;
}

// Writes the bytes of result `number`.
static inline void give(ulong digest, ulong number, __global uchar *bytes, ulong count)
{
    for (ulong at = 0; at < count; at++) {
        ulong mixed = (digest ^ (number << 32 | at)) * 0x9e3779b97f4a7c15UL;
        mixed = (mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9UL;
        bytes[at] = (uchar)(mixed >> 56);
    }
}

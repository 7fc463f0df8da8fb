// What trials do with the bytes of buffers at their device. A work-item has 16 bytes, fewer
// at the ends of a range.

#define PIECE 16

// Notes that two buffers differ in a range.
kernel void differ(global const uint4 *a, global const uint4 *b, ulong begin, ulong end,
                   uint slot, global uint *found)
{
    ulong piece = begin / PIECE + get_global_id(0);
    ulong at = max(piece * PIECE, begin);
    ulong last = min(piece * PIECE + PIECE, end);
    if (at + PIECE == last) {
        if (any(a[piece] != b[piece]))
            found[slot] = 1;
        return;
    }
    for (; at < last; at++)
        if (((global const uchar *)a)[at] != ((global const uchar *)b)[at])
            found[slot] = 1;
}

// Takes the bytes that a part has changed over into `all`. Notes that another part wrote an
// unlike value.
kernel void merge(global const uchar *base, global const uchar *part, global uchar *all,
                  ulong bytes, uint slot, global uint *found)
{
    ulong at = get_global_id(0) * PIECE;
    ulong last = min(at + PIECE, bytes);
    for (; at < last; at++) {
        if (part[at] == base[at])
            continue;
        if (all[at] != base[at] && all[at] != part[at])
            found[slot] = 1;
        all[at] = part[at];
    }
}

// Makes a buffer of another one, with each byte turned over.
kernel void turn(global const uchar *from, global uchar *to, ulong bytes)
{
    ulong at = get_global_id(0) * PIECE;
    ulong last = min(at + PIECE, bytes);
    for (; at < last; at++)
        to[at] = ~from[at];
}

// Fills a buffer with numbers of `size` bytes, a work-item each: fractions between 1 and 2,
// of which `head` has the exponent and `shift` leaves random digits, or whole numbers from
// 2 to 121 where `head` is zero.
kernel void fill(global uchar *to, ulong bytes, uint size, ulong head, uint shift, ulong seed)
{
    ulong number = get_global_id(0);
    // splitmix64
    ulong bits = seed + (number + 1) * 0x9e3779b97f4a7c15UL;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9UL;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebUL;
    bits ^= bits >> 31;
    ulong value = head ? head | bits >> shift : 2 + bits % 120;
    ulong at = number * size;
    ulong last = min(at + size, bytes);
    for (; at < last; at++, value >>= 8)
        to[at] = (uchar)value;
}

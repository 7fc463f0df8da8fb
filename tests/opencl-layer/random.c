/* Random commands, compared with a model in the host's memory.
 *
 *     random SEED COUNT ORDER [THREADS [KINDS]]
 *
 * Each thread has buffers of all kinds, whose halves are sub-buffers, and some queues of each
 * device, in order or not. ORDER says what keeps commands that share bytes apart:
 *
 *   finish   clFinish after every command
 *   chain    every command waits for the one before it
 *   events   a command waits for those that used its halves of buffers
 *   barrier  markers and barriers between any two commands
 *
 * KINDS is a set of bits, one for each kind of command, in the order of `kinds` below. The
 * first wrong byte is reported with its seed and its command, and the status is then 1; it is 2
 * if a call fails. Everything but the threads' timing is repeated by the same arguments. */
#include "check.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

enum { BUFFERS = 6, QUEUES = 4, READERS = 12, LATE = 16, POOL = 1 << 20, ROW = 64, ROWS = 8 };

typedef enum { FINISH, CHAIN, EVENTS, BARRIER } Order;
static const char *const orders[] = {"finish", "chain", "events", "barrier"};

enum { WRITE, READ, COPY, FILL, WRITE_BOX, READ_BOX, COPY_BOX, COPY_HALVES, MAP, NEXT, MIX, BLUR, GROUPS, ADD, KINDS };
static const char *const kinds[] = {"write", "read", "copy", "fill", "write of a box", "read of a box", "copy of a box",
                                    "copy of a box of halves", "map", "kernel next", "kernel mixed", "kernel blur", "kernel groups", "kernel add"};

static const char *const source =
    "kernel void next(global uint *a, uint k) { size_t i = get_global_id(0); a[i] = a[i] * 1664525u + k; }\n"
    "kernel void mixed(global const uint *a, global const uint *b, global uint *c, uint n) {\n"
    "  size_t i = get_global_id(0); c[i] = a[i] ^ (b[n - 1 - i] >> 1); }\n"
    "kernel void blur(global const uint *a, global uint *c, uint n) { size_t i = get_global_id(0);\n"
    "  c[i] = a[i] + (i > 0 ? a[i - 1] : 7u) + (i + 1 < n ? a[i + 1] : 9u); }\n"
    "kernel void groups(global uint *a, local uint *l) { size_t i = get_local_id(0), n = get_local_size(0);\n"
    "  l[i] = a[get_global_id(0)]; barrier(CLK_LOCAL_MEM_FENCE); a[get_global_id(0)] = l[n - 1 - i] + i; }\n"
    "kernel void add(global const uint *a, global uint *c) { size_t i = get_global_id(0);\n"
    "  atomic_add(&c[i % 5], a[i]); }\n";

/* Half a buffer: which commands used it last. */
typedef struct {
    cl_event writer, readers[READERS];
    int reading;
} Half;

/* A buffer or a half of it. */
typedef struct {
    cl_mem mem;
    unsigned char *model;
    size_t size;
    int first, last; /* its halves, as numbers of the world's */
} Part;

typedef struct {
    cl_event event;
    unsigned char *bytes, *expected;
    size_t size;
    int op, kind;
} Late;

typedef struct {
    unsigned number, kinds, dirty;
    uint64_t state;
    Order order;
    int count, op, kind, queue, before;
    cl_command_queue queues[QUEUES];
    bool ordered[QUEUES];
    Part whole[BUFFERS], halves[2 * BUFFERS];
    Half used[2 * BUFFERS];
    unsigned char *host[BUFFERS];
    cl_kernel kernels[KINDS];
    cl_event last, gate;
    int gate_age;
    Late late[LATE];
    int lates;
} World;

static unsigned char pool[POOL]; /* what writes read, never changed */
static cl_program program;
static unsigned seed;

static unsigned chance(World *w, unsigned below) {
    w->state = w->state * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)(w->state >> 33) % below;
}

static void stop(World *w, int status, const char *format, ...) {
    va_list list;
    va_start(list, format);
    flockfile(stdout);
    printf("seed %u, order %s, thread %u, command %d (%s) on queue %d: ", seed, orders[w->order], w->number, w->op,
           kinds[w->kind], w->queue);
    vprintf(format, list);
    printf("\n");
    fflush(stdout);
    _Exit(status);
}

#define TRY(call)                                                                                  \
    do {                                                                                           \
        cl_int code_ = (call);                                                                     \
        if (code_ != CL_SUCCESS)                                                                   \
            stop(w, 2, "%s is %d", #call, code_);                                                  \
    } while (0)

static void compare(World *w, const unsigned char *bytes, const unsigned char *expected, size_t size) {
    size_t wrong = 0, first = 0;
    for (size_t i = size; i-- > 0;)
        if (bytes[i] != expected[i])
            wrong++, first = i;
    if (wrong)
        stop(w, 1, "%zu of %zu bytes are wrong; byte %zu is %02x, not %02x", wrong, size, first, bytes[first],
             expected[first]);
}

/* What a command waits for. */
typedef struct {
    cl_event events[4 * (READERS + 1) + 2];
    cl_uint count;
} Waits;

static void wait_for(Waits *waits, cl_event event) {
    for (cl_uint i = 0; i < waits->count; i++)
        if (waits->events[i] == event)
            return;
    if (event)
        waits->events[waits->count++] = event;
}

static const cl_event *list(const Waits *waits) {
    return waits->count ? waits->events : NULL;
}

static void open_gate(World *w) {
    if (w->gate) {
        TRY(clSetUserEventStatus(w->gate, CL_COMPLETE));
        TRY(clReleaseEvent(w->gate));
        w->gate = NULL;
    }
}

/* Other queues may wait for commands only once these are flushed. */
static void flush(World *w, int except) {
    for (int i = 0; i < QUEUES; i++)
        if (w->dirty >> i & 1 && i != except) {
            TRY(clFlush(w->queues[i]));
            w->dirty &= ~(1u << i);
        }
}

/* Compares what reads that did not block have read. */
static void check_late(World *w, int keep) {
    while (w->lates > keep) {
        open_gate(w);
        flush(w, -1);
        Late late = w->late[--w->lates];
        TRY(clWaitForEvents(1, &late.event));
        int op = w->op, kind = w->kind;
        w->op = late.op, w->kind = late.kind;
        compare(w, late.bytes, late.expected, late.size);
        w->op = op, w->kind = kind;
        TRY(clReleaseEvent(late.event));
        free(late.bytes);
        free(late.expected);
    }
}

/* What a command that reads and writes these parts has to wait for. One that blocks waits for
 * no event that this thread would have to set. */
static Waits before(World *w, bool blocks, Part *const *reads, int reading, Part *const *writes, int writing) {
    Waits waits = {.count = 0};
    if (blocks)
        open_gate(w);
    flush(w, w->queue);
    if (w->order == CHAIN)
        wait_for(&waits, w->last);
    if (w->order == BARRIER && w->before >= 0) {
        if (w->before == w->queue) {
            if (!w->ordered[w->queue])
                TRY(clEnqueueBarrierWithWaitList(w->queues[w->queue], 0, NULL, NULL));
        } else {
            cl_event marker;
            TRY(clEnqueueMarkerWithWaitList(w->queues[w->before], 0, NULL, &marker));
            TRY(clFlush(w->queues[w->before]));
            TRY(clEnqueueBarrierWithWaitList(w->queues[w->queue], 1, &marker, NULL));
            TRY(clReleaseEvent(marker));
        }
    }
    for (int i = 0; i < reading && w->order == EVENTS; i++)
        for (int half = reads[i]->first; half <= reads[i]->last; half++)
            wait_for(&waits, w->used[half].writer);
    for (int i = 0; i < writing && w->order == EVENTS; i++)
        for (int half = writes[i]->first; half <= writes[i]->last; half++) {
            wait_for(&waits, w->used[half].writer);
            for (int j = 0; j < w->used[half].reading; j++)
                wait_for(&waits, w->used[half].readers[j]);
        }
    if (!w->gate && !blocks && w->order != FINISH && chance(w, 8) == 0) {
        cl_int code;
        w->gate = clCreateUserEvent(context, &code);
        TRY(code);
        w->gate_age = 0;
        wait_for(&waits, w->gate);
    }
    return waits;
}

static void keep(World *w, cl_event *kept, cl_event event) {
    if (*kept)
        TRY(clReleaseEvent(*kept));
    if (event)
        TRY(clRetainEvent(event));
    *kept = event;
}

/* Notes a command that was enqueued. */
static void after(World *w, cl_event event, Part *const *reads, int reading, Part *const *writes, int writing) {
    w->dirty |= 1u << w->queue;
    if (w->order == FINISH || (chance(w, 16) == 0 && w->order != CHAIN)) {
        open_gate(w);
        flush(w, -1);
        TRY(clFinish(w->queues[w->queue]));
    } else if (chance(w, 2)) {
        flush(w, -1);
    }
    if (w->gate && ++w->gate_age > 4)
        open_gate(w);
    for (int i = 0; i < reading; i++)
        for (int half = reads[i]->first; half <= reads[i]->last; half++) {
            Half *used = &w->used[half];
            if (used->reading == READERS) {
                open_gate(w);
                flush(w, -1);
                TRY(clWaitForEvents(READERS, used->readers));
                while (used->reading > 0)
                    keep(w, &used->readers[--used->reading], NULL);
            }
            keep(w, &used->readers[used->reading++], event);
        }
    for (int i = 0; i < writing; i++)
        for (int half = writes[i]->first; half <= writes[i]->last; half++) {
            Half *used = &w->used[half];
            keep(w, &used->writer, event);
            while (used->reading > 0)
                keep(w, &used->readers[--used->reading], NULL);
        }
    keep(w, &w->last, event);
    TRY(clReleaseEvent(event));
    w->before = w->queue;
}

/* A part that shares no half with these. */
static Part *pick(World *w, Part *const *others, int count) {
    for (;;) {
        /* PoCL 3.1 crashes when it copies boxes of sub-buffers. */
        Part *part = w->kind == COPY_BOX || chance(w, 2) ? &w->whole[chance(w, BUFFERS)] : &w->halves[chance(w, 2 * BUFFERS)];
        bool is_disjoint = true;
        for (int i = 0; i < count; i++)
            is_disjoint &= part->last < others[i]->first || others[i]->last < part->first;
        if (is_disjoint)
            return part;
    }
}

/* What a read that may end later should have read. */
static void note(World *w, cl_event event, unsigned char *bytes, unsigned char *expected, size_t size) {
    TRY(clRetainEvent(event));
    w->late[w->lates++] = (Late){event, bytes, expected, size, w->op, w->kind};
}

static void line(World *w) {
    cl_command_queue queue = w->queues[w->queue];
    Part *a = pick(w, NULL, 0);
    size_t at = chance(w, a->size), size = 1 + chance(w, a->size - at);
    bool blocks = chance(w, 4) == 0;
    cl_event event;
    if (w->kind == WRITE) {
        const unsigned char *from = pool + chance(w, POOL - size);
        Waits waits = before(w, blocks, NULL, 0, &a, 1);
        TRY(clEnqueueWriteBuffer(queue, a->mem, blocks, at, size, from, waits.count, list(&waits), &event));
        memcpy(a->model + at, from, size);
        after(w, event, NULL, 0, &a, 1);
    } else if (w->kind == READ) {
        unsigned char *bytes = malloc(size), *expected = malloc(size);
        memset(bytes, 0xee, size);
        memcpy(expected, a->model + at, size);
        Waits waits = before(w, blocks, &a, 1, NULL, 0);
        TRY(clEnqueueReadBuffer(queue, a->mem, blocks, at, size, bytes, waits.count, list(&waits), &event));
        if (blocks)
            compare(w, bytes, expected, size);
        note(w, event, bytes, expected, size);
        after(w, event, &a, 1, NULL, 0);
    } else if (w->kind == COPY) {
        Part *b = pick(w, &a, 1);
        size = size < b->size ? size : b->size;
        size_t to = chance(w, b->size - size + 1);
        Waits waits = before(w, false, &a, 1, &b, 1);
        TRY(clEnqueueCopyBuffer(queue, a->mem, b->mem, at, to, size, waits.count, list(&waits), &event));
        memcpy(b->model + to, a->model + at, size);
        after(w, event, &a, 1, &b, 1);
    } else {
        size_t length = 1u << chance(w, 5);
        at -= at % length, size = size / length * length + length;
        size = at + size > a->size ? a->size - at : size;
        unsigned char pattern[16];
        memcpy(pattern, pool + chance(w, POOL - 16), 16);
        Waits waits = before(w, false, NULL, 0, &a, 1);
        TRY(clEnqueueFillBuffer(queue, a->mem, pattern, length, at, size, waits.count, list(&waits), &event));
        for (size_t i = 0; i < size; i++)
            a->model[at + i] = pattern[i % length];
        memset(pattern, 0, sizeof pattern);
        after(w, event, NULL, 0, &a, 1);
    }
}

/* Boxes: a buffer is taken as slices of ROWS rows of ROW bytes. */
typedef struct {
    size_t origin[3], row, slice;
} Box;

static size_t place(const Box *box, size_t y, size_t z) {
    return (box->origin[2] + z) * box->slice + (box->origin[1] + y) * box->row + box->origin[0];
}

static void move(unsigned char *to, const Box *there, const unsigned char *from, const Box *here,
                 const size_t region[3]) {
    for (size_t z = 0; z < region[2]; z++)
        for (size_t y = 0; y < region[1]; y++)
            memcpy(to + place(there, y, z), from + place(here, y, z), region[0]);
}

static Box box_in(World *w, size_t size, const size_t region[3]) {
    Box box = {.row = ROW, .slice = ROW * ROWS};
    box.origin[0] = chance(w, ROW - region[0] + 1);
    box.origin[1] = chance(w, ROWS - region[1] + 1);
    box.origin[2] = chance(w, size / box.slice - region[2] + 1);
    return box;
}

static void box(World *w) {
    cl_command_queue queue = w->queues[w->queue];
    Part *a = pick(w, NULL, 0), *b = pick(w, &a, 1);
    size_t slices = (a->size < b->size ? a->size : b->size) / (ROW * ROWS);
    size_t region[3] = {1 + chance(w, ROW), 1 + chance(w, ROWS), 1 + chance(w, slices)};
    Box here = box_in(w, a->size, region), there = box_in(w, b->size, region);
    Box host = {.origin = {chance(w, 9), chance(w, 3), chance(w, 2)}};
    host.row = host.origin[0] + region[0] + chance(w, 9);
    host.slice = host.row * (host.origin[1] + region[1] + chance(w, 3));
    size_t size = host.slice * (host.origin[2] + region[2]);
    cl_event event;
    if (w->kind == COPY_BOX || w->kind == COPY_HALVES) {
        Waits waits = before(w, false, &a, 1, &b, 1);
        TRY(clEnqueueCopyBufferRect(queue, a->mem, b->mem, here.origin, there.origin, region, here.row, here.slice,
                                    there.row, there.slice, waits.count, list(&waits), &event));
        move(b->model, &there, a->model, &here, region);
        after(w, event, &a, 1, &b, 1);
    } else if (w->kind == WRITE_BOX) {
        const unsigned char *from = pool + chance(w, POOL - size);
        Waits waits = before(w, false, NULL, 0, &a, 1);
        TRY(clEnqueueWriteBufferRect(queue, a->mem, CL_FALSE, here.origin, host.origin, region, here.row, here.slice,
                                     host.row, host.slice, from, waits.count, list(&waits), &event));
        move(a->model, &here, from, &host, region);
        after(w, event, NULL, 0, &a, 1);
    } else {
        unsigned char *bytes = malloc(size), *expected = malloc(size);
        memset(bytes, 0xee, size);
        memset(expected, 0xee, size);
        move(expected, &host, a->model, &here, region);
        Waits waits = before(w, false, &a, 1, NULL, 0);
        TRY(clEnqueueReadBufferRect(queue, a->mem, CL_FALSE, here.origin, host.origin, region, here.row, here.slice,
                                    host.row, host.slice, bytes, waits.count, list(&waits), &event));
        note(w, event, bytes, expected, size);
        after(w, event, &a, 1, NULL, 0);
    }
}

static void map(World *w) {
    static const cl_map_flags ways[] = {CL_MAP_READ, CL_MAP_WRITE, CL_MAP_READ | CL_MAP_WRITE,
                                        CL_MAP_WRITE_INVALIDATE_REGION};
    cl_command_queue queue = w->queues[w->queue];
    cl_map_flags flags = ways[chance(w, 4)];
    Part *a = pick(w, NULL, 0);
    size_t at = chance(w, a->size), size = 1 + chance(w, a->size - at);
    bool blocks = chance(w, 2), writes = flags != CL_MAP_READ;
    Waits waits = before(w, true, writes ? NULL : &a, !writes, &a, writes);
    cl_event event;
    cl_int code;
    unsigned char *bytes = clEnqueueMapBuffer(queue, a->mem, blocks, flags, at, size, waits.count, list(&waits), &event,
                                              &code);
    TRY(code);
    if (!blocks)
        TRY(clWaitForEvents(1, &event));
    TRY(clReleaseEvent(event));
    if (flags != CL_MAP_WRITE_INVALIDATE_REGION)
        compare(w, bytes, a->model + at, size);
    for (size_t i = 0, from = chance(w, POOL - size); i < size && writes; i++)
        if (flags == CL_MAP_WRITE_INVALIDATE_REGION || (from + i) % 3)
            bytes[i] = a->model[at + i] = pool[from + i];
    /* Nothing else has been enqueued, so the end of the map waits for what the map did. */
    TRY(clEnqueueUnmapMemObject(queue, a->mem, bytes, 0, NULL, &event));
    after(w, event, writes ? NULL : &a, !writes, &a, writes);
}

static void launch(World *w) {
    cl_kernel kernel = w->kernels[w->kind];
    Part *p[3];
    int parts = w->kind == MIX ? 3 : w->kind == BLUR || w->kind == ADD ? 2 : 1;
    for (int i = 0; i < parts; i++)
        p[i] = pick(w, p, i);
    size_t n = p[0]->size / 4;
    for (int i = 1; i < parts; i++)
        n = n < p[i]->size / 4 ? n : p[i]->size / 4;
    size_t group = 16u << chance(w, 3), offset = 0, global = n, local = group;
    if (chance(w, 3) == 0) {
        offset = chance(w, n / group) * group;
        global = (1 + chance(w, (n - offset) / group)) * group;
    }
    const uint32_t *a = (uint32_t *)p[0]->model, *b = (uint32_t *)p[parts > 1]->model;
    uint32_t *c = (uint32_t *)p[parts - 1]->model, k = chance(w, 1000000), count = n;
    for (int i = 0; i < parts; i++)
        TRY(clSetKernelArg(kernel, i, sizeof(cl_mem), &p[i]->mem));
    if (w->kind == NEXT)
        TRY(clSetKernelArg(kernel, 1, sizeof k, &k));
    if (w->kind == MIX || w->kind == BLUR)
        TRY(clSetKernelArg(kernel, parts, sizeof count, &count));
    if (w->kind == GROUPS)
        TRY(clSetKernelArg(kernel, 1, local * 4, NULL));
    int reading = parts - 1;
    Waits waits = before(w, false, p, reading, p + reading, 1);
    bool any = w->kind != GROUPS && chance(w, 2);
    cl_event event;
    TRY(clEnqueueNDRangeKernel(w->queues[w->queue], kernel, 1, offset || chance(w, 2) ? &offset : NULL, &global,
                               any ? NULL : &local, waits.count, list(&waits), &event));
    for (size_t i = offset; i < offset + global; i++)
        switch (w->kind) {
        case NEXT: c[i] = c[i] * 1664525u + k; break;
        case MIX: c[i] = a[i] ^ (b[n - 1 - i] >> 1); break;
        case BLUR: c[i] = a[i] + (i > 0 ? a[i - 1] : 7) + (i + 1 < n ? a[i + 1] : 9); break;
        case ADD: c[i % 5] += a[i]; break;
        }
    for (size_t i = offset; i < offset + global && w->kind == GROUPS; i += local)
        for (size_t j = 0; j < (local + 1) / 2; j++) {
            uint32_t low = c[i + j], high = c[i + local - 1 - j];
            c[i + j] = high + j;
            c[i + local - 1 - j] = low + (local - 1 - j);
        }
    after(w, event, p, reading, p + reading, 1);
}

static void make_buffers(World *w, size_t align) {
    static const cl_mem_flags ways[] = {0, CL_MEM_COPY_HOST_PTR, CL_MEM_USE_HOST_PTR, CL_MEM_ALLOC_HOST_PTR,
                                        CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR};
    cl_int code;
    for (int i = 0; i < BUFFERS; i++) {
        size_t half = (1u << (9 + chance(w, 3))) * (1 + chance(w, 24)), size;
        half = (half + align - 1) / align * align;
        size = 2 * half;
        cl_mem_flags flags = i < 5 ? ways[i] : ways[chance(w, 5)];
        w->host[i] = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
        Part *whole = &w->whole[i];
        *whole = (Part){.model = malloc(size), .size = size, .first = 2 * i, .last = 2 * i + 1};
        memcpy(whole->model, pool + chance(w, POOL - size), size);
        memcpy(w->host[i], whole->model, size);
        bool given = flags & (CL_MEM_COPY_HOST_PTR | CL_MEM_USE_HOST_PTR);
        whole->mem = clCreateBuffer(context, flags, size, given ? w->host[i] : NULL, &code);
        TRY(code);
        if (!given)
            TRY(clEnqueueWriteBuffer(w->queues[0], whole->mem, CL_TRUE, 0, size, whole->model, 0, NULL, NULL));
        for (int j = 0; j < 2; j++) {
            cl_buffer_region region = {j * half, half};
            w->halves[2 * i + j] = (Part){.model = whole->model + j * half, .size = half, .first = 2 * i + j,
                                          .last = 2 * i + j};
            w->halves[2 * i + j].mem = clCreateSubBuffer(whole->mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
            TRY(code);
        }
    }
}

static void *run(void *data) {
    World *w = data;
    cl_int code;
    cl_uint align = 0;
    for (cl_uint i = 0; i < device_count; i++) {
        cl_uint bits = 0;
        TRY(clGetDeviceInfo(devices[i], CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof bits, &bits, NULL));
        align = bits / 8 > align ? bits / 8 : align;
    }
    for (int i = 0; i < QUEUES; i++) {
        cl_command_queue_properties can = 0, wanted = chance(w, 2) ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0;
        cl_device_id device = devices[(i + w->number) % device_count];
        TRY(clGetDeviceInfo(device, CL_DEVICE_QUEUE_PROPERTIES, sizeof can, &can, NULL));
        wanted |= chance(w, 3) == 0 ? CL_QUEUE_PROFILING_ENABLE : 0;
        w->queues[i] = clCreateCommandQueue(context, device, wanted & can, &code);
        w->ordered[i] = !(wanted & can & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
        TRY(code);
    }
    make_buffers(w, align);
    static const char *const names[] = {"next", "mixed", "blur", "groups", "add"};
    for (int i = NEXT; i < KINDS; i++) {
        w->kernels[i] = clCreateKernel(program, names[i - NEXT], &code);
        TRY(code);
    }
    for (w->op = 0; w->op < w->count; w->op++) {
        do
            w->kind = chance(w, KINDS);
        while (!(w->kinds >> w->kind & 1));
        w->queue = chance(w, QUEUES);
        if (w->lates == LATE)
            check_late(w, chance(w, LATE));
        w->kind < WRITE_BOX ? line(w) : w->kind < MAP ? box(w) : w->kind == MAP ? map(w) : launch(w);
    }
    w->kind = READ;
    check_late(w, 0);
    open_gate(w);
    flush(w, -1);
    for (w->queue = 0; w->queue < QUEUES; w->queue++)
        TRY(clFinish(w->queues[w->queue]));
    for (int i = 0; i < BUFFERS; i++) {
        w->queue = i % QUEUES;
        TRY(clEnqueueReadBuffer(w->queues[w->queue], w->whole[i].mem, CL_TRUE, 0, w->whole[i].size, w->host[i], 0, NULL,
                                NULL));
        compare(w, w->host[i], w->whole[i].model, w->whole[i].size);
    }
    for (int i = 0; i < 2 * BUFFERS; i++) {
        keep(w, &w->used[i].writer, NULL);
        while (w->used[i].reading > 0)
            keep(w, &w->used[i].readers[--w->used[i].reading], NULL);
        TRY(clReleaseMemObject(w->halves[i].mem));
    }
    keep(w, &w->last, NULL);
    for (int i = NEXT; i < KINDS; i++)
        TRY(clReleaseKernel(w->kernels[i]));
    for (int i = 0; i < QUEUES; i++)
        TRY(clReleaseCommandQueue(w->queues[i]));
    for (int i = 0; i < BUFFERS; i++) {
        TRY(clReleaseMemObject(w->whole[i].mem));
        free(w->whole[i].model);
        if (w->host[i] && i != 2)
            free(w->host[i]);
    }
    return NULL;
}

int main(int count, char **arguments) {
    enum { THREADS = 16 };
    static World worlds[THREADS];
    pthread_t threads[THREADS];
    int order = -1, number = count > 4 ? atoi(arguments[4]) : 1;
    for (int i = 0; count > 3 && i < 4; i++)
        if (strcmp(arguments[3], orders[i]) == 0)
            order = i;
    if (order < 0 || number < 1 || number > THREADS) {
        printf("random SEED COUNT finish|chain|events|barrier [THREADS [KINDS]]\n");
        return 2;
    }
    seed = atoi(arguments[1]);
    World any = {.state = seed};
    for (int i = 0; i < POOL; i++)
        pool[i] = chance(&any, 256);
    begin(0);
    program = build(source, "");
    for (int i = 0; i < number; i++) {
        worlds[i] = (World){.number = i, .state = seed * 1000003ull + i, .order = order, .count = atoi(arguments[2]),
                            .kinds = count > 5 ? strtoul(arguments[5], NULL, 0) : ~0u, .before = -1};
        pthread_create(&threads[i], NULL, run, &worlds[i]);
    }
    for (int i = 0; i < number; i++)
        pthread_join(threads[i], NULL);
    OK(clReleaseProgram(program));
    return end();
}

/* Kernels that are divided over devices, and kernels that seem as if they could be. Each
 * result is compared with the host's. Where the environment asks for it, the test also
 * compares the verdicts in the report with the lines `verdict KERNEL VERDICT` printed
 * here. */
#include "check.h"

enum { N = 1024, GROUP = 16, GROUPS = N / GROUP };

static int in[N], out[N], expected[N];
static const char *name;
static cl_command_queue queue;
static cl_kernel kernel;
static cl_program program;

#define HEAD(name)                                                                         \
    "kernel void " name "(global const int *in, global int *out) { int i = get_global_id(0); "

/* Most kernels are in one program, so that drivers compile little. */
static cl_program common;

static const char *sources =
    HEAD("plain") "out[i] = in[i] + 1; }\n"
    HEAD("gather") "out[i] = in[(i + 1) % get_global_size(0)] - in[i]; }\n"
    HEAD("accumulate") "out[i] += in[i]; }\n"
    HEAD("groups") "local int t[16]; int l = get_local_id(0); t[l] = in[i];"
    "barrier(CLK_LOCAL_MEM_FENCE); out[i] = t[get_local_size(0) - 1 - l]; }\n"
    HEAD("local_sums") "local int s; int l = get_local_id(0); if (l == 0) s = 0;"
    "barrier(CLK_LOCAL_MEM_FENCE); atomic_add(&s, in[i]); barrier(CLK_LOCAL_MEM_FENCE);"
    "out[i] = s; }\n"
    "void put(global int *to, int at, int x) { to[at] = x; }" HEAD("helper")
    "put(out, i, in[i] + 1); }\n"
    "#define PUT(j, x) out[j] = (x)\n" HEAD("macro") "PUT(i, in[i] + 1); }\n"
    HEAD("pointer") "global int *p = out + i; *p = in[i] + 1; }\n"
    HEAD("loop") "int k = 0; do { k++; } while (k < i); out[i] = in[i] + (k == i || i == 0); }\n"
    "kernel void vectors(global const int *in, global int *out) {"
    "int i = get_global_id(0); if (i < (int)get_global_size(0) / 4)"
    "  vstore4(vload4(i, in) + 1, i, out); }\n"
    HEAD("mirror") "out[get_global_size(0) - 1 - i] = in[i]; }\n"
    HEAD("scatter") "out[in[i]] = i; }\n"
    HEAD("mask") "if (in[i]) out[get_global_size(0) - 1 - i] = i; }\n"
    HEAD("leave") "if (!in[i]) return; out[get_global_size(0) - 1 - i] = i; }\n"
    HEAD("add_far") "out[get_global_size(0) - 1 - i] += in[i]; }\n"
    HEAD("found") "int k = i; do { k++; } while (in[k - 1] < 0); out[k - 1] = in[k - 1] + 1; }\n"
    HEAD("flag") "if (in[i] > 5) out[0] = 1; }\n"
    HEAD("flag_too") "if (i > 0) out[i] = in[i] + 1; out[0] = 1; }\n"
    HEAD("shared") "out[i / 32] = 7 + 0 * in[i]; }\n"
    HEAD("atomics") "atomic_inc(out); }\n"
    HEAD("prints") "if (i < 0) printf(\"%d\", i); out[i] = in[i] + 1; }\n"
    HEAD("cast") "((global uchar *)out)[4 * i] = ((global const uchar *)in)[4 * i]; "
    "out[i] = in[i] + 1; }\n"
    "kernel void silent(global int *out) {"
    " out[get_global_size(0) - 1 - get_global_id(0)] = 0; }\n"
    "kernel void scale(global int *x, int s) { x[get_global_id(0)] *= s; }\n"
    "kernel void scale_far(global int *x, int s) {"
    " x[get_global_size(0) - 1 - get_global_id(0)] *= s; }\n"
    "kernel void shifted(global int *out, int by) {"
    " int i = get_global_id(0); out[(i + by) % get_global_size(0)] = i; }\n"
    HEAD("fresh") "if (in[i]) out[get_global_size(0) - 1 - i] = 0;"
    " else out[get_global_size(0) - 1 - i] = i; }\n"
    HEAD("clash") "out[in[i]] = i; }\n"
    HEAD("one_twice") "out[i] = in[i] + 1; }\n"
    HEAD("overlap") "out[i] = in[i] + 1; }\n"
    HEAD("halves") "out[i] = in[i] + 1; }\n"
    "kernel void rows(global int *out) {"
    " int i = get_global_id(0); for (int k = 0; k < 8; k++) out[i * 8 + k] = i + k; }\n"
    "kernel void events(global int *x) { int i = get_global_id(0); x[i] = x[i] * 3 + i; }\n";

static void open_kernel(const char *kernel_name, const char *source, const char *verdict) {
    name = kernel_name;
    /* The folder of included files is the present one. */
    program = source ? build(source, "-I.") : common;
    if (!source)
        OK(clRetainProgram(program));
    kernel = kernel_of(program, name);
    queue = queues[0];
    printf("verdict %s %s\n", name, verdict);
}

static void close_kernel(void) {
    OK(clReleaseKernel(kernel));
    OK(clReleaseProgram(program));
}

static cl_mem filled(const int *data) {
    cl_int code;
    cl_mem mem = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof in, NULL, &code);
    OK(code);
    OK(clEnqueueWriteBuffer(queues[0], mem, CL_TRUE, 0, sizeof in, data, 0, NULL, NULL));
    return mem;
}

static void buffer_argument(cl_uint index, cl_mem mem) {
    OK(clSetKernelArg(kernel, index, sizeof mem, &mem));
}

static void number(cl_uint index, cl_int value) {
    OK(clSetKernelArg(kernel, index, sizeof value, &value));
}

static void launch(cl_uint dimensions, size_t x, size_t y, size_t z, const size_t *local) {
    size_t global[3] = {x, y, z};
    OK(clEnqueueNDRangeKernel(queue, kernel, dimensions, NULL, global, local, 0, NULL, NULL));
}

static void run(void) {
    size_t local = GROUP;
    launch(1, N, 1, 1, &local);
}

static void results(cl_mem mem, int step) {
    memset(out, 0x55, sizeof out);
    OK(clEnqueueReadBuffer(queue, mem, CL_TRUE, 0, sizeof out, out, 0, NULL, NULL));
    int wrong = 0, first = -1;
    for (int i = 0; i < N; i++)
        if (out[i] != expected[i]) {
            if (!wrong++)
                first = i;
        }
    if (wrong) {
        printf("%s, step %d: %d are wrong, the first is %d with %d, not %d\n", name, step, wrong,
               first, out[first], expected[first]);
        failures++;
    }
}

/* Runs `kernel(in, out)` for several steps with other inputs; `result` says what is right
 * from `in` and what `out` was. */
static void steps(const char *kernel_name, const char *source, const char *verdict,
                  void (*prepare)(int step), void (*result)(int step)) {
    open_kernel(kernel_name, source, verdict);
    for (int i = 0; i < N; i++)
        out[i] = expected[i] = 0;
    cl_mem to = filled(out);
    for (int step = 0; step < 3; step++) {
        prepare(step);
        cl_mem from = filled(in);
        buffer_argument(0, from);
        buffer_argument(1, to);
        result(step);
        run();
        results(to, step);
        OK(clReleaseMemObject(from));
    }
    OK(clReleaseMemObject(to));
    close_kernel();
}

static void counted(int step) {
    for (int i = 0; i < N; i++)
        in[i] = i * 3 + step;
}

static void ones_later(int step) {
    for (int i = 0; i < N; i++)
        in[i] = step > 0;
}

static void identity_then_not(int step) {
    for (int i = 0; i < N; i++)
        in[i] = step == 0 ? i : (i * 5 + step) % N;
}

static void same(int step) {
    (void)step;
    for (int i = 0; i < N; i++)
        expected[i] = in[i] + 1;
}

static void reversed_in_groups(int step) {
    (void)step;
    for (int i = 0; i < N; i++)
        expected[i] = in[i / GROUP * GROUP + GROUP - 1 - i % GROUP];
}

static void scattered(int step) {
    (void)step;
    for (int i = 0; i < N; i++)
        expected[in[i]] = i;
}

static void masked(int step) {
    (void)step;
    for (int i = 0; i < N; i++)
        if (in[i])
            expected[N - 1 - i] = i;
}

static void added_far(int step) {
    (void)step;
    for (int i = 0; i < N; i++)
        expected[N - 1 - i] += in[i];
}

static void added(int step) {
    (void)step;
    for (int i = 0; i < N; i++)
        expected[i] += in[i];
}

static void mirrored(int step) {
    (void)step;
    for (int i = 0; i < N; i++)
        expected[N - 1 - i] = in[i];
}

static void flagged(int step) {
    for (int i = 0; i < N; i++)
        if (in[i] > 5)
            expected[0] = 1;
    (void)step;
}

static void flag_always(int step) {
    same(step);
    expected[0] = 1;
}

static void shared(int step) {
    (void)step;
    for (int i = 0; i < N; i++)
        expected[i / 32] = 7;
}

static void counter(int step) {
    (void)step;
    expected[0] += N;
}

static void sums(int step) {
    (void)step;
    for (int g = 0; g < GROUPS; g++) {
        int sum = 0;
        for (int i = 0; i < GROUP; i++)
            sum += in[g * GROUP + i];
        for (int i = 0; i < GROUP; i++)
            expected[g * GROUP + i] = sum;
    }
}

static void neighbours(int step) {
    (void)step;
    for (int i = 0; i < N; i++)
        expected[i] = in[(i + 1) % N] - in[i];
}


static void simple(void) {
    steps("plain", NULL, "sliced", counted, same);
    steps("gather", NULL, "sliced", counted, neighbours);
    steps("accumulate", NULL, "sliced", counted, added);
    steps("groups", NULL, "sliced", counted, reversed_in_groups);
    steps("local_sums", NULL, "sliced", counted, sums);
    steps("helper", NULL, "sliced", counted, same);
    steps("macro", NULL, "sliced", counted, same);
    steps("pointer", NULL, "sliced", counted, same);
    steps("loop", NULL, "sliced", counted, same);
    steps("vectors", NULL, "merged", counted, same);
}

/* Stores that meet, or leave their slices. */
static void outside_slices(void) {
    steps("mirror", NULL, "merged", counted, mirrored);
    steps("scatter", NULL, "merged", identity_then_not, scattered);
    steps("mask", NULL, "merged", ones_later, masked);
    steps("leave", NULL, "merged", ones_later, masked);
    steps("add_far", NULL, "merged", ones_later, added_far);
    steps("found", NULL, "merged", counted, same);
    steps("flag", NULL, "merged", counted, flagged);
    steps("flag_too", NULL, "merged", counted, flag_always);
    steps("shared", NULL, "merged", counted, shared);
}

/* Groups that talk. */
static void refused(void) {
    steps("atomics", NULL, "refused", counted, counter);
    steps("spin",
          "kernel void spin(global const int *in, volatile global int *out) {"
          "int i = get_global_id(0); while (out[i] < 0) ; out[i] = in[i] + 1; }",
          "refused", counted, same);
    steps("prints", NULL, "refused", counted, same);
    steps("cast", NULL, "sliced", counted, same);
}

/* Parts of few work-items with offsets beyond 16 bits. */
static void wide(void) {
    enum { WIDE = 98304, WIDE_GROUP = 64 };
    static int data[WIDE];
    open_kernel("wide",
                "kernel void wide(global int *out) { size_t i = get_global_id(0);"
                " out[i] = (get_global_size(0) > 65535) + 2 * (i > 65535)"
                " + 4 * (get_group_id(0) > 1000) + 8 * (get_num_groups(0) > 1100); }", "sliced");
    cl_int code;
    cl_mem to = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof data, NULL, &code);
    OK(code);
    buffer_argument(0, to);
    size_t local = WIDE_GROUP;
    launch(1, WIDE, 1, 1, &local);
    OK(clEnqueueReadBuffer(queue, to, CL_TRUE, 0, sizeof data, data, 0, NULL, NULL));
    int wrong = 0;
    for (int i = 0; i < WIDE; i++)
        wrong += data[i] != 1 + 2 * (i > 65535) + 4 * (i / WIDE_GROUP > 1000) + 8;
    CHECK(wrong == 0);
    OK(clReleaseMemObject(to));
    close_kernel();
}

/* What included files have counts. */
static void includes(void) {
    steps("includes", "#include \"added.h\"\n" HEAD("includes") "out[i] = added(in[i]); }", "sliced",
          counted, same);
    steps("includes_atomics", "#include \"added.h\"\n" HEAD("includes_atomics") "put_added(&out[i], in[i]); }",
          "refused", counted, same);
}

/* Zeros over zeros tell nothing in the first launch. */
static void silent(void) {
    open_kernel("silent", NULL, "merged");
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < N; i++) {
            out[i] = step * i;
            expected[i] = 0;
        }
        cl_mem to = filled(out);
        buffer_argument(0, to);
        run();
        results(to, step);
        OK(clReleaseMemObject(to));
    }
    close_kernel();
}

/* Places have unlike bytes of a buffer that nobody has written, and zeros are written. */
static void fresh(void) {
    open_kernel("fresh", NULL, "merged");
    for (int step = 0; step < 8; step++) {
        cl_int code;
        for (int i = 0; i < N; i++) {
            in[i] = (i + step) % 3;
            out[i] = step + 7;
        }
        /* What was freed may be given out again with its bytes. */
        cl_mem old = filled(out);
        OK(clReleaseMemObject(old));
        cl_mem from = filled(in);
        cl_mem to = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof out, NULL, &code);
        OK(code);
        buffer_argument(0, from);
        buffer_argument(1, to);
        run();
        for (int i = 0; i < N; i++)
            expected[N - 1 - i] = in[i] ? 0 : i;
        results(to, step);
        OK(clReleaseMemObject(from));
        OK(clReleaseMemObject(to));
    }
    close_kernel();
}

/* A factor of one leaves what is there. */
static void factors(void) {
    const char *names[2] = {"scale", "scale_far"};
    for (int far = 0; far < 2; far++) {
        open_kernel(names[far], NULL, far ? "merged" : "sliced");
        for (int i = 0; i < N; i++)
            out[i] = expected[i] = i;
        cl_mem to = filled(out);
        buffer_argument(0, to);
        for (int s = 1; s < 4; s++) {
            number(1, s);
            run();
            for (int i = 0; i < N; i++)
                expected[i] *= s;
            results(to, s);
        }
        OK(clReleaseMemObject(to));
        close_kernel();
    }
}

/* A scalar that decides where stores go has a verdict for each value. */
static void scalars(void) {
    open_kernel("shifted", NULL, "sliced,merged");
    memset(out, 0, sizeof out);
    cl_mem to = filled(out);
    buffer_argument(0, to);
    for (int step = 0; step < 4; step++) {
        int by = step % 2 * 37;
        number(1, by);
        run();
        for (int i = 0; i < N; i++)
            expected[(i + by) % N] = i;
        results(to, step);
    }
    OK(clReleaseMemObject(to));
    close_kernel();
}

/* Parts that clash in a later launch: the whole launch runs again. */
static void clash(void) {
    open_kernel("clash", NULL, "refused");
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < N; i++) {
            in[i] = step == 1 ? i % 2 * 5 : i;
            out[i] = -1;
        }
        cl_mem from = filled(in), to = filled(out);
        buffer_argument(0, from);
        buffer_argument(1, to);
        run();
        memset(out, 0, sizeof out);
        OK(clEnqueueReadBuffer(queue, to, CL_TRUE, 0, sizeof out, out, 0, NULL, NULL));
        for (int i = 0; i < N; i++)
            if (step != 1)
                CHECK(out[i] == i);
            else if (i != 0 && i != 5)
                CHECK(out[i] == -1);
        if (step == 1)
            CHECK(out[0] >= 0 && out[0] % 2 == 0 && out[5] >= 0 && out[5] % 2 == 1);
        OK(clReleaseMemObject(from));
        OK(clReleaseMemObject(to));
    }
    close_kernel();
}

/* One buffer twice, and parts of one that overlap or do not. */
static void aliases(void) {
    const char *names[3] = {"one_twice", "overlap", "halves"};
    for (int kind = 0; kind < 3; kind++) {
        open_kernel(names[kind], NULL, kind == 2 ? "sliced" : "refused");
        for (int i = 0; i < N; i++)
            in[i] = expected[i] = i;
        cl_mem whole = filled(in), from = whole, to = whole;
        size_t half = N / 2, group = GROUP;
        cl_int code;
        if (kind > 0) {
            cl_buffer_region region = {0, half * sizeof(int)};
            cl_buffer_create_type type = CL_BUFFER_CREATE_TYPE_REGION;
            from = clCreateSubBuffer(whole, CL_MEM_READ_WRITE, type, &region, &code);
            OK(code);
            region.origin = kind == 1 ? 0 : region.size;
            to = clCreateSubBuffer(whole, CL_MEM_READ_WRITE, type, &region, &code);
            OK(code);
        }
        buffer_argument(0, from);
        buffer_argument(1, to);
        size_t count = kind > 0 ? half : N;
        launch(1, count, 1, 1, &group);
        for (size_t i = 0; i < count; i++)
            expected[kind == 2 ? half + i : i] = i + 1;
        results(whole, kind);
        if (kind > 0) {
            OK(clReleaseMemObject(from));
            OK(clReleaseMemObject(to));
        }
        OK(clReleaseMemObject(whole));
        close_kernel();
    }
}

#define ASKED                                                                              \
    "(int)(get_global_id(0) + 3 * get_group_id(0) + 5 * get_num_groups(0) + 7 * get_global_size(0)" \
    " + 11 * get_global_id(1) + 13 * get_group_id(1) + 17 * get_num_groups(1)"               \
    " + 19 * get_global_size(1) + 23 * get_global_id(2) + 29 * get_group_id(2)"             \
    " + 31 * get_num_groups(2) + 37 * get_global_size(2) + 41 * get_local_size(0)"          \
    " + 43 * get_local_size(1) + 47 * get_global_offset(0) + 53 * get_global_offset(1))"

static int asked(const size_t *at, const size_t *global, const size_t *local) {
    static const int ids[3] = {1, 11, 23}, groups[3] = {3, 13, 29}, counts[3] = {5, 17, 31},
                     sizes[3] = {7, 19, 37};
    int sum = 41 * local[0] + 43 * local[1];
    for (int d = 0; d < 3; d++)
        sum += ids[d] * at[d] + groups[d] * (at[d] / local[d]) + counts[d] * (global[d] / local[d]) +
               sizes[d] * global[d];
    return sum;
}

/* What kernels ask about their range, in one, two and three dimensions. */
static void questions(void) {
    static const size_t globals[3][3] = {{N, 1, 1}, {32, 32, 1}, {16, 8, 8}};
    static const size_t locals[3][3] = {{16, 1, 1}, {8, 2, 1}, {4, 2, 2}};
    for (int kind = 0; kind < 3; kind++) {
        char kernel_name[16], source[2048];
        snprintf(kernel_name, sizeof kernel_name, "asks_%d", kind + 1);
        snprintf(source, sizeof source,
                 "kernel void %s(global int *out) { out[(get_global_id(2) * get_global_size(1) + "
                 "get_global_id(1)) * get_global_size(0) + get_global_id(0)] = " ASKED "; }",
                 kernel_name);
        open_kernel(kernel_name, source, "sliced");
        const size_t *global = globals[kind], *local = locals[kind];
        memset(out, 0, sizeof out);
        cl_mem to = filled(out);
        buffer_argument(0, to);
        for (size_t z = 0; z < global[2]; z++)
            for (size_t y = 0; y < global[1]; y++)
                for (size_t x = 0; x < global[0]; x++) {
                    size_t at[3] = {x, y, z};
                    expected[(z * global[1] + y) * global[0] + x] = asked(at, global, local);
                }
        for (int step = 0; step < 2; step++) {
            launch(kind + 1, global[0], global[1], global[2], local);
            results(to, step);
        }
        OK(clReleaseMemObject(to));
        close_kernel();
    }
}

/* Rows of which each work-item writes one, a group's size that the driver chooses, queues
 * without order, and times of a divided launch. */
static void others(void) {
    open_kernel("rows", NULL, "sliced");
    memset(out, 0, sizeof out);
    cl_mem to = filled(out);
    buffer_argument(0, to);
    launch(1, N / 8, 1, 1, NULL);
    for (int i = 0; i < N; i++)
        expected[i] = i / 8 + i % 8;
    results(to, 0);
    OK(clReleaseMemObject(to));
    close_kernel();

    cl_int code;
    open_kernel("events", NULL, "sliced");
    cl_command_queue_properties kinds[2] = {CL_QUEUE_PROFILING_ENABLE,
                                            CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE};
    for (int kind = 0; kind < 2; kind++) {
        queue = clCreateCommandQueue(context, devices[0], kinds[kind], &code);
        if (code != CL_SUCCESS)
            continue;
        for (int i = 0; i < N; i++)
            in[i] = expected[i] = i;
        cl_mem x = filled(in);
        buffer_argument(0, x);
        cl_event chain[4];
        size_t global = N, local = GROUP;
        for (int step = 0; step < 4; step++) {
            OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, &local, step > 0,
                                      step > 0 ? &chain[step - 1] : NULL, &chain[step]));
            for (int i = 0; i < N; i++)
                expected[i] = expected[i] * 3 + i;
        }
        OK(clWaitForEvents(1, &chain[3]));
        results(x, kind);
        cl_ulong start = 0, end = 0;
        if (kind == 0) {
            OK(clGetEventProfilingInfo(chain[3], CL_PROFILING_COMMAND_START, sizeof start, &start, NULL));
            OK(clGetEventProfilingInfo(chain[3], CL_PROFILING_COMMAND_END, sizeof end, &end, NULL));
            CHECK(start > 0 && start < end);
        }
        for (int step = 0; step < 4; step++)
            OK(clReleaseEvent(chain[step]));
        OK(clReleaseMemObject(x));
        OK(clReleaseCommandQueue(queue));
    }
    queue = queues[0];
    close_kernel();
}

int main(void) {
    begin(0);
    common = build(sources, "");
    simple();
    outside_slices();
    refused();
    includes();
    wide();
    silent();
    fresh();
    factors();
    scalars();
    clash();
    aliases();
    questions();
    others();
    OK(clReleaseProgram(common));
    return end();
}

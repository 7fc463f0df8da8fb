/* Programs: compiled and linked in steps, built from binaries, built wrongly. */
#include "check.h"
#include <stdatomic.h>
#include <unistd.h>

static atomic_int notified;

static void CL_CALLBACK tell(cl_program program, void *data) {
    if (program && data == &notified)
        notified++;
}

static void wait_notified(int number) {
    for (int i = 0; i < 1000 && notified < number; i++)
        usleep(10000);
    CHECK(notified == number);
}

static void run(cl_program program, int factor) {
    cl_kernel kernel = kernel_of(program, "scale");
    cl_int code, data[64], n = 64;
    if (!kernel)
        return;
    for (unsigned step = 0; step < 2 * device_count; step++) {
        for (int i = 0; i < n; i++)
            data[i] = i;
        cl_mem buffer = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof data, data, &code);
        size_t size = n;
        OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
        OK(clEnqueueNDRangeKernel(turn(step), kernel, 1, NULL, &size, NULL, 0, NULL, NULL));
        OK(clEnqueueReadBuffer(turn(step), buffer, CL_TRUE, 0, sizeof data, data, 0, NULL, NULL));
        for (int i = 0; i < n; i++)
            CHECK(data[i] == i * factor);
        OK(clReleaseMemObject(buffer));
    }
    OK(clReleaseKernel(kernel));
}

static cl_program of_source(const char *source) {
    cl_int code;
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &code);
    OK(code);
    return program;
}

static void steps(void) {
    cl_int code;
    cl_program header = of_source("int times(int x);\n#define FACTOR 3\n");
    cl_program main = of_source("#include \"times.h\"\n"
                                "kernel void scale(global int *b) {"
                                " b[get_global_id(0)] = times(b[get_global_id(0)]); }");
    cl_program rest = of_source("#include \"times.h\"\nint times(int x) { return x * FACTOR; }");
    const char *name = "times.h";
    OK(clCompileProgram(main, 0, NULL, "", 1, &header, &name, NULL, NULL));
    OK(clCompileProgram(rest, 0, NULL, "", 1, &header, &name, tell, &notified));
    wait_notified(1);
    CHECK(!clCreateKernel(main, "scale", &code));
    CODE(code, CL_INVALID_PROGRAM_EXECUTABLE);
    cl_program both[2] = {main, rest};
    cl_program linked = clLinkProgram(context, 0, NULL, "", 2, both, NULL, NULL, &code);
    OK(code);
    if (linked) {
        run(linked, 3);
        OK(clReleaseProgram(linked));
    }
    CODE(clCompileProgram(main, 0, NULL, "", 1, NULL, &name, NULL, NULL), CL_INVALID_VALUE);
    CODE(clCompileProgram(main, 0, NULL, "", 0, NULL, NULL, NULL, &notified), CL_INVALID_VALUE);
    CHECK(!clLinkProgram(context, 0, NULL, "", 0, NULL, NULL, NULL, &code));
    CODE(code, CL_INVALID_VALUE);
    cl_program wrong = (cl_program)context;
    CHECK(!clLinkProgram(context, 0, NULL, "", 1, &wrong, NULL, NULL, &code));
    CODE(code, CL_INVALID_PROGRAM);
    CHECK(!clCreateProgramWithBuiltInKernels(context, device_count, devices, "none", &code));
    CODE(code, CL_INVALID_VALUE);
    OK(clReleaseProgram(header));
    OK(clReleaseProgram(main));
    OK(clReleaseProgram(rest));
}

static void binaries(void) {
    cl_int code, statuses[MOST];
    cl_program program = build("kernel void scale(global int *b) { b[get_global_id(0)] *= F; }",
                               "-DF=5");
    run(program, 5);
    size_t sizes[MOST];
    unsigned char *binaries[MOST];
    OK(clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof sizes, sizes, NULL));
    for (cl_uint i = 0; i < device_count; i++) {
        CHECK(sizes[i] > 0);
        binaries[i] = malloc(sizes[i]);
    }
    OK(clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binaries, binaries, NULL));
    cl_program again = clCreateProgramWithBinary(context, device_count, devices, sizes,
                                                 (const unsigned char **)binaries, statuses, &code);
    OK(code);
    OK(clBuildProgram(again, 0, NULL, NULL, NULL, NULL));
    run(again, 5);
    OK(clReleaseProgram(again));
    sizes[0] = 0;
    CHECK(!clCreateProgramWithBinary(context, device_count, devices, sizes,
                                     (const unsigned char **)binaries, statuses, &code));
    CODE(code, CL_INVALID_VALUE);
    for (cl_uint i = 0; i < device_count; i++)
        free(binaries[i]);
    OK(clReleaseProgram(program));
}

static void wrong(void) {
    cl_int code;
    cl_program program = of_source("kernel void scale(global int *b) { b[0] = nothing; }");
    CODE(clBuildProgram(program, 0, NULL, "", NULL, NULL), CL_BUILD_PROGRAM_FAILURE);
    cl_build_status status;
    OK(clGetProgramBuildInfo(program, devices[0], CL_PROGRAM_BUILD_STATUS, sizeof status, &status,
                             NULL));
    CHECK(status == CL_BUILD_ERROR);
    size_t length = 0;
    OK(clGetProgramBuildInfo(program, devices[0], CL_PROGRAM_BUILD_LOG, 0, NULL, &length));
    CHECK(length > 1);
    CHECK(!clCreateKernel(program, "scale", &code));
    CODE(code, CL_INVALID_PROGRAM_EXECUTABLE);
    OK(clReleaseProgram(program));
    program = build("kernel void a(global int *b, local int *c, int d) { b[0] = c[0] = d; }"
                    "kernel void e(void) {}", "-cl-kernel-arg-info");
    cl_kernel kernels[2];
    cl_uint count;
    OK(clCreateKernelsInProgram(program, 2, kernels, &count));
    CHECK(count == 2);
    CODE(clCreateKernelsInProgram(program, 1, kernels, &count), CL_INVALID_VALUE);
    CODE(clBuildProgram(program, 0, NULL, "", NULL, NULL), CL_INVALID_OPERATION);
    cl_kernel kernel = kernel_of(program, "a");
    int number = 1;
    void *stale = &number;
    size_t one = 1;
    CODE(clSetKernelArg(kernel, 3, 4, &number), CL_INVALID_ARG_INDEX);
    CODE(clSetKernelArg(kernel, 0, sizeof stale, &stale), CL_INVALID_MEM_OBJECT);
    CODE(clSetKernelArg(kernel, 0, 4, &number), CL_INVALID_ARG_SIZE);
    CODE(clSetKernelArg(kernel, 1, 4, &number), CL_INVALID_ARG_VALUE);
    CODE(clSetKernelArg(kernel, 2, 4, NULL), CL_INVALID_ARG_VALUE);
    CODE(clEnqueueNDRangeKernel(turn(0), kernel, 1, NULL, &one, NULL, 0, NULL, NULL),
         CL_INVALID_KERNEL_ARGS);
    CODE(clEnqueueNDRangeKernel(turn(0), kernels[0], 4, NULL, &one, NULL, 0, NULL, NULL),
         CL_INVALID_WORK_DIMENSION);
    CHECK(!clCreateKernel(program, "missing", &code));
    CODE(code, CL_INVALID_KERNEL_NAME);
    OK(clReleaseKernel(kernel));
    OK(clReleaseKernel(kernels[0]));
    OK(clReleaseKernel(kernels[1]));
    OK(clReleaseProgram(program));
}

/* A program that is built for one of several devices. */
static void one_device(void) {
    cl_int code;
    cl_uint last = device_count - 1;
    int data[64] = {0};
    size_t size = 64, sizes[MOST], limit = 0;
    unsigned char *binaries[MOST] = {NULL};
    cl_program program = of_source("kernel void scale(global int *b) { b[get_global_id(0)] = F; }");
    OK(clBuildProgram(program, 1, &devices[last], "-DF=7", NULL, NULL));
    cl_build_status status;
    OK(clGetProgramBuildInfo(program, devices[last], CL_PROGRAM_BUILD_STATUS, sizeof status,
                             &status, NULL));
    CHECK(status == CL_BUILD_SUCCESS);
    OK(clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof sizes, sizes, NULL));
    CHECK(sizes[last] > 0);
    for (cl_uint i = 0; i < device_count; i++)
        binaries[i] = calloc(sizes[i] + 1, 1);
    OK(clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binaries, binaries, NULL));
    int filled = 0;
    for (size_t i = 0; i < sizes[last]; i++)
        filled |= binaries[last][i];
    CHECK(filled);
    size_t kernels = 0;
    OK(clGetProgramInfo(program, CL_PROGRAM_NUM_KERNELS, sizeof kernels, &kernels, NULL));
    CHECK(kernels == 1);
    cl_kernel kernel = kernel_of(program, "scale");
    for (cl_uint i = 0; i < device_count; i++) {
        code = clGetKernelWorkGroupInfo(kernel, devices[i], CL_KERNEL_WORK_GROUP_SIZE, sizeof limit,
                                        &limit, NULL);
        CHECK(code != CL_SUCCESS || (limit > 0 && limit < 1 << 20));
    }
    cl_mem buffer = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof data, data, &code);
    OK(code);
    OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    /* Devices that stand for several have all of them in common. */
    if (last > 0 && !getenv("PDAWL_VIRTUAL"))
        CODE(clEnqueueNDRangeKernel(queues[0], kernel, 1, NULL, &size, NULL, 0, NULL, NULL),
             CL_INVALID_PROGRAM_EXECUTABLE);
    OK(clEnqueueNDRangeKernel(queues[last], kernel, 1, NULL, &size, NULL, 0, NULL, NULL));
    OK(clEnqueueReadBuffer(queues[last], buffer, CL_TRUE, 0, sizeof data, data, 0, NULL, NULL));
    CHECK(data[0] == 7 && data[63] == 7);
    OK(clReleaseKernel(kernel));
    /* Its binary makes a program for that device. */
    const unsigned char *binary = binaries[last];
    cl_program again = clCreateProgramWithBinary(context, 1, &devices[last], &sizes[last], &binary,
                                                 NULL, &code);
    OK(code);
    OK(clBuildProgram(again, 0, NULL, NULL, NULL, NULL));
    OK(clReleaseProgram(again));
    for (cl_uint i = 0; i < device_count; i++)
        free(binaries[i]);
    OK(clReleaseProgram(program));
    /* Compiled for one device, and linked for it. */
    program = of_source("kernel void scale(global int *b) { b[get_global_id(0)] = 9; }");
    OK(clCompileProgram(program, 1, &devices[last], "", 0, NULL, NULL, NULL, NULL));
    OK(clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof sizes, sizes, NULL));
    cl_program linked = clLinkProgram(context, 1, &devices[last], "", 1, &program, NULL, NULL, &code);
    OK(code);
    OK(clGetProgramInfo(linked, CL_PROGRAM_BINARY_SIZES, sizeof sizes, sizes, NULL));
    CHECK(sizes[0] > 0);
    kernel = kernel_of(linked, "scale");
    OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    OK(clEnqueueNDRangeKernel(queues[last], kernel, 1, NULL, &size, NULL, 0, NULL, NULL));
    OK(clEnqueueReadBuffer(queues[last], buffer, CL_TRUE, 0, sizeof data, data, 0, NULL, NULL));
    CHECK(data[0] == 9 && data[63] == 9);
    OK(clReleaseKernel(kernel));
    OK(clReleaseMemObject(buffer));
    OK(clReleaseProgram(linked));
    OK(clReleaseProgram(program));
}

/* What the compiler defines decides whether kernels write. */
static void conditions(void) {
    static const char *names[] = {"version", "language", "extension", "compiler"};
    cl_program program = build(
        "#define K(name) kernel void name(global int *b) { b[get_global_id(0)] *= 2; }\n"
        "#define L(name) kernel void name(global int *b) { int x = b[0]; }\n"
        "#if __OPENCL_VERSION__ >= 120\nK(version)\n#else\nL(version)\n#endif\n"
        "#ifdef __OPENCL_C_VERSION__\nK(language)\n#else\nL(language)\n#endif\n"
        "#if defined(cl_khr_byte_addressable_store)\nK(extension)\n#else\nL(extension)\n#endif\n"
        "kernel void compiler(global int *b) {\n#ifdef __clang__\n b[get_global_id(0)] *= 2;\n"
        "#endif\n#ifndef __clang__\n b[get_global_id(0)] *= 2;\n#endif\n}", "");
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        cl_int code, data[64], n = 64;
        size_t size = n;
        cl_kernel kernel = kernel_of(program, names[i]);
        for (int j = 0; j < n; j++)
            data[j] = j;
        cl_mem buffer = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof data, data, &code);
        OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
        for (int step = 0; step < 4; step++) {
            OK(clEnqueueNDRangeKernel(turn(step), kernel, 1, NULL, &size, NULL, 0, NULL, NULL));
            OK(clFinish(turn(step)));
        }
        OK(clEnqueueReadBuffer(turn(1), buffer, CL_TRUE, 0, sizeof data, data, 0, NULL, NULL));
        for (int j = 0; j < n; j++)
            CHECK(data[j] == 16 * j);
        OK(clReleaseMemObject(buffer));
        OK(clReleaseKernel(kernel));
    }
    OK(clReleaseProgram(program));
}

int main(void) {
    begin(0);
    steps();
    one_device();
    conditions();
    binaries();
    wrong();
    return end();
}

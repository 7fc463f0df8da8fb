/* What all programs here share: checks that say what failed, and the devices in use. */
#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Not every program uses all. */
#define UNUSED __attribute__((unused))

static int failures;

#define CHECK(condition)                                                                  \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            failures++;                                                                   \
        }                                                                                 \
    } while (0)

#define CODE(call, expected)                                                              \
    do {                                                                                  \
        cl_int code_ = (call);                                                            \
        if (code_ != (expected)) {                                                        \
            printf("%s:%d: %s is %d, not %s\n", __FILE__, __LINE__, #call, code_, #expected); \
            failures++;                                                                   \
        }                                                                                 \
    } while (0)

#define OK(call) CODE(call, CL_SUCCESS)

/* How a program ends that tests nothing on devices of this kind. */
enum { MOST = 8, SKIPPED = 77 };

/* The devices of one platform, in one context, with a queue for each. The platform is the
 * one to test if a loader has several, or the first. */
static cl_platform_id platform;
static cl_device_id devices[MOST];
static cl_uint device_count;
static cl_context context;
static cl_command_queue queues[MOST];

static void begin(cl_command_queue_properties properties) {
    cl_platform_id all[MOST];
    cl_uint platforms = 0;
    cl_int code;
    if (clGetPlatformIDs(MOST, all, &platforms) == CL_SUCCESS && platforms > 0)
        platform = all[0];
    for (cl_uint i = 0; i < platforms && i < MOST; i++) {
        char name[64] = "";
        clGetPlatformInfo(all[i], CL_PLATFORM_NAME, sizeof name, name, NULL);
        if (strcmp(name, "pdawl") == 0)
            platform = all[i];
    }
    if (!platform ||
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, MOST, devices, &device_count) != CL_SUCCESS) {
        printf("there is no OpenCL device: run scripts/install-opencl.sh\n");
        exit(1);
    }
    if (device_count > MOST)
        device_count = MOST;
    context = clCreateContext(NULL, device_count, devices, NULL, NULL, &code);
    OK(code);
    for (cl_uint i = 0; i < device_count; i++) {
        queues[i] = clCreateCommandQueue(context, devices[i], properties, &code);
        OK(code);
    }
}

/* A queue of each device in turn. */
UNUSED static cl_command_queue turn(unsigned step) {
    return queues[step % device_count];
}

UNUSED static void finish_all(void) {
    for (cl_uint i = 0; i < device_count; i++)
        OK(clFinish(queues[i]));
}

UNUSED static int end(void) {
    for (cl_uint i = 0; i < device_count; i++)
        OK(clReleaseCommandQueue(queues[i]));
    OK(clReleaseContext(context));
    printf("%d failures\n", failures);
    return failures != 0;
}

UNUSED static cl_program build(const char *source, const char *options) {
    cl_int code;
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &code);
    OK(code);
    code = clBuildProgram(program, 0, NULL, options, NULL, NULL);
    if (code != CL_SUCCESS) {
        char log[4096] = "";
        clGetProgramBuildInfo(program, devices[0], CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL);
        printf("build: %d %s\n", code, log);
        failures++;
    }
    return program;
}

UNUSED static cl_kernel kernel_of(cl_program program, const char *name) {
    cl_int code;
    cl_kernel kernel = clCreateKernel(program, name, &code);
    OK(code);
    return kernel;
}

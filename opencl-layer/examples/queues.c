/* Four command queues that are mapped to devices automatically.
 *
 * The lines that end in "pdawl" are what makes this OpenCL program schedule
 * its queues by MultiCL's interface; the rest is plain OpenCL 1.2.
 *
 *   cc -I opencl-layer/include opencl-layer/examples/queues.c -lOpenCL -o queues
 *   OPENCL_LAYERS=$PWD/target/release/libpdawl_opencl.so ./queues
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <CL/cl_pdawl.h> /* pdawl */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUEUES 4
#define ITEMS 100003
#define EPOCHS 5

static const char *source =
    "kernel void advance(global float *x, uint n, float a) {\n"
    "  size_t i = get_global_id(0);\n"
    "  if (i < n) x[i] = a * x[i] + 1.0f;\n"
    "}\n";

static void check(cl_int code, const char *what) {
  if (code != CL_SUCCESS) {
    fprintf(stderr, "%s: OpenCL error %d\n", what, code);
    exit(1);
  }
}

/* The platform "pdawl", or the first one. */
static cl_platform_id platform(void) {
  cl_platform_id all[16];
  cl_uint count, i;
  char name[64];
  check(clGetPlatformIDs(16, all, &count), "platforms");
  for (i = 0; i < count && i < 16; i++) {
    clGetPlatformInfo(all[i], CL_PLATFORM_NAME, sizeof(name), name, NULL);
    if (strcmp(name, "pdawl") == 0)
      return all[i];
  }
  return all[0];
}

int main(void) {
  cl_int code;
  cl_uint devices, n = ITEMS;
  cl_device_id device[16];
  size_t global = (ITEMS + 63) / 64 * 64, local = 64;
  int q, e, wrong = 0;
  cl_platform_id chosen = platform();
  cl_context_properties properties[] = {
      CL_CONTEXT_PLATFORM, (cl_context_properties)chosen,
      CL_CONTEXT_SCHEDULER, AUTO_FIT, /* pdawl */
      0};
  check(clGetDeviceIDs(chosen, CL_DEVICE_TYPE_ALL, 16, device, &devices),
        "devices");
  cl_context context = clCreateContext(properties, devices > 16 ? 16 : devices,
                                       device, NULL, NULL, &code);
  check(code, "context");
  cl_program program =
      clCreateProgramWithSource(context, 1, &source, NULL, &code);
  check(code, "program");
  check(clBuildProgram(program, 0, NULL, "", NULL, NULL), "build");

  cl_command_queue queue[QUEUES];
  cl_mem buffer[QUEUES];
  cl_kernel kernel[QUEUES];
  float *x = malloc(ITEMS * sizeof(float));
  if (x == NULL)
    return 1;
  for (q = 0; q < QUEUES; q++) {
    queue[q] = clCreateCommandQueue(
        context, NULL,
        SCHED_AUTO_DYNAMIC | SCHED_KERNEL_EPOCH, /* pdawl */
        &code);
    check(code, "queue");
    buffer[q] = clCreateBuffer(context, CL_MEM_READ_WRITE,
                               ITEMS * sizeof(float), NULL, &code);
    check(code, "buffer");
    kernel[q] = clCreateKernel(program, "advance", &code);
    check(code, "kernel");
    for (int i = 0; i < ITEMS; i++)
      x[i] = (float)(i % 17 + q);
    check(clEnqueueWriteBuffer(queue[q], buffer[q], CL_TRUE, 0,
                               ITEMS * sizeof(float), x, 0, NULL, NULL),
          "write");
  }
  for (e = 0; e < EPOCHS; e++) {
    for (q = 0; q < QUEUES; q++) {
      float a = 0.5f + 0.125f * (float)q;
      check(clSetKernelArg(kernel[q], 0, sizeof(cl_mem), &buffer[q]), "argument 0");
      check(clSetKernelArg(kernel[q], 1, sizeof(n), &n), "argument 1");
      check(clSetKernelArg(kernel[q], 2, sizeof(a), &a), "argument 2");
      check(clEnqueueNDRangeKernel(queue[q], kernel[q], 1, NULL, &global, &local,
                                   0, NULL, NULL),
            "launch");
    }
    for (q = 0; q < QUEUES; q++)
      check(clFinish(queue[q]), "finish");
  }
  for (q = 0; q < QUEUES; q++) {
    float a = 0.5f + 0.125f * (float)q;
    check(clEnqueueReadBuffer(queue[q], buffer[q], CL_TRUE, 0,
                              ITEMS * sizeof(float), x, 0, NULL, NULL),
          "read");
    for (int i = 0; i < ITEMS; i++) {
      float right = (float)(i % 17 + q);
      for (e = 0; e < EPOCHS; e++)
        right = a * right + 1.0f;
      float difference = x[i] > right ? x[i] - right : right - x[i];
      wrong += !(difference <= 1e-5f * right);
    }
    clReleaseKernel(kernel[q]);
    clReleaseMemObject(buffer[q]);
    clReleaseCommandQueue(queue[q]);
  }
  clReleaseProgram(program);
  clReleaseContext(context);
  free(x);
  printf("%d queues, %d epochs: %d wrong\n", QUEUES, EPOCHS, wrong);
  return wrong != 0;
}

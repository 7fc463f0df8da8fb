/* Automatic mapping of command queues to devices: the interface of MultiCL
 * (Aji, Pena, Balaji and Feng, Parallel Computing 58, 2016, section 4) for
 * the platform "pdawl".
 *
 * A program includes this file, gives its context a scheduler, and says for
 * each command queue how it is scheduled. The functions are looked up through
 * the platform, so the program is linked to the OpenCL loader only. Over
 * another platform the functions return CL_INVALID_OPERATION, and contexts
 * and queues refuse the properties.
 */
#ifndef CL_PDAWL_H
#define CL_PDAWL_H

#include <CL/cl.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A property of contexts: how queues are mapped to the context's devices. */
#define CL_CONTEXT_SCHEDULER 0x5044A0

/* Its values. Each kernel, epoch or region goes to the next device of the
 * context, whichever queue it is in. */
#define CL_SCHEDULER_ROUND_ROBIN 1
/* Queues have the devices with the least predicted time. */
#define CL_SCHEDULER_AUTO_FIT 2

/* Properties of command queues. */

/* The queue stays on the device that it was made for. The default. */
#define CL_QUEUE_SCHED_OFF ((cl_command_queue_properties)1 << 32)
/* The queue is mapped once, by the devices' profiles. */
#define CL_QUEUE_SCHED_AUTO_STATIC ((cl_command_queue_properties)1 << 33)
/* The queue is mapped by the times of its kernels. It may be made without a
 * device: pass NULL. */
#define CL_QUEUE_SCHED_AUTO_DYNAMIC ((cl_command_queue_properties)1 << 34)
/* The queue may move between epochs only: after the program waited for it. */
#define CL_QUEUE_SCHED_KERNEL_EPOCH ((cl_command_queue_properties)1 << 35)
/* The queue is mapped by what it does between two calls of
 * clSetCommandQueueSchedProperty: the first says AUTO, the second OFF. */
#define CL_QUEUE_SCHED_EXPLICIT_REGION ((cl_command_queue_properties)1 << 36)
/* Epochs repeat for long, so a better device is worth the copies to it. */
#define CL_QUEUE_SCHED_ITERATIVE ((cl_command_queue_properties)1 << 37)
/* What bounds the queue's kernels: for CL_QUEUE_SCHED_AUTO_STATIC. */
#define CL_QUEUE_SCHED_COMPUTE_BOUND ((cl_command_queue_properties)1 << 38)
#define CL_QUEUE_SCHED_IO_BOUND ((cl_command_queue_properties)1 << 39)
#define CL_QUEUE_SCHED_MEMORY_BOUND ((cl_command_queue_properties)1 << 40)

/* The names of the paper. */
#ifndef CL_PDAWL_NO_SHORT_NAMES
#define ROUND_ROBIN CL_SCHEDULER_ROUND_ROBIN
#define AUTO_FIT CL_SCHEDULER_AUTO_FIT
#define SCHED_OFF CL_QUEUE_SCHED_OFF
#define SCHED_AUTO_STATIC CL_QUEUE_SCHED_AUTO_STATIC
#define SCHED_AUTO_DYNAMIC CL_QUEUE_SCHED_AUTO_DYNAMIC
#define SCHED_KERNEL_EPOCH CL_QUEUE_SCHED_KERNEL_EPOCH
#define SCHED_EXPLICIT_REGION CL_QUEUE_SCHED_EXPLICIT_REGION
#define SCHED_ITERATIVE CL_QUEUE_SCHED_ITERATIVE
#define SCHED_COMPUTE_BOUND CL_QUEUE_SCHED_COMPUTE_BOUND
#define SCHED_IO_BOUND CL_QUEUE_SCHED_IO_BOUND
#define SCHED_MEMORY_BOUND CL_QUEUE_SCHED_MEMORY_BOUND
#endif

typedef cl_int(CL_API_CALL *clSetCommandQueueSchedPropertyPDAWL_fn)(
    cl_command_queue queue, cl_command_queue_properties properties);
typedef cl_int(CL_API_CALL *clSetKernelWorkGroupInfoPDAWL_fn)(
    cl_kernel kernel, cl_uint num_devices, const cl_device_id *devices,
    cl_uint work_dim, const size_t *global_work_offset,
    const size_t *global_work_size, const size_t *local_work_size);

/* Changes how a queue is scheduled, from its next command on; clGetCommandQueueInfo
 * says which device it has (CL_QUEUE_DEVICE). Between a call
 * with CL_QUEUE_SCHED_AUTO_DYNAMIC and one with CL_QUEUE_SCHED_OFF lies an
 * explicit region. */
static inline cl_int clSetCommandQueueSchedProperty(
    cl_command_queue queue, cl_command_queue_properties properties) {
  cl_device_id device = NULL;
  cl_platform_id platform = NULL;
  clSetCommandQueueSchedPropertyPDAWL_fn function;
  cl_int code = clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof(device),
                                      &device, NULL);
  if (code != CL_SUCCESS)
    return code;
  clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof(platform), &platform,
                  NULL);
  function = (clSetCommandQueueSchedPropertyPDAWL_fn)
      clGetExtensionFunctionAddressForPlatform(
          platform, "clSetCommandQueueSchedPropertyPDAWL");
  return function ? function(queue, properties) : CL_INVALID_OPERATION;
}

/* Sets the range and the work-group size that launches of a kernel have on
 * these devices, whatever clEnqueueNDRangeKernel says. With a range, the
 * other lists mean what they mean there: without a group size, the driver
 * chooses. Without a range (NULL), launches keep theirs, and their offset and
 * group size if these are NULL, too; they must have work_dim dimensions. A
 * size of 0 is an error. */
static inline cl_int clSetKernelWorkGroupInfo(
    cl_kernel kernel, cl_uint num_devices, const cl_device_id *devices,
    cl_uint work_dim, const size_t *global_work_offset,
    const size_t *global_work_size, const size_t *local_work_size) {
  cl_platform_id platform = NULL;
  clSetKernelWorkGroupInfoPDAWL_fn function;
  if (num_devices == 0 || devices == NULL)
    return CL_INVALID_VALUE;
  clGetDeviceInfo(devices[0], CL_DEVICE_PLATFORM, sizeof(platform), &platform,
                  NULL);
  function = (clSetKernelWorkGroupInfoPDAWL_fn)
      clGetExtensionFunctionAddressForPlatform(
          platform, "clSetKernelWorkGroupInfoPDAWL");
  return function ? function(kernel, num_devices, devices, work_dim,
                             global_work_offset, global_work_size,
                             local_work_size)
                  : CL_INVALID_OPERATION;
}

#ifdef __cplusplus
}
#endif

#endif

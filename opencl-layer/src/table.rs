//! The table of all functions, through which loaders dispatch.
//!
//! It is above all parts, so that it also ties them together: it tells those below what to
//! ask of those above.

use std::mem;

use opencl_sys::cl_icd::cl_icd_dispatch;

use crate::answer::get_info;
use crate::context::Context;
use crate::device::{self, Device};
use crate::dispatch::{self, Dispatch, GetPlatforms};
use crate::drivers::RealDevice;
use crate::event::Event;
use crate::extension::{
    get_extension_function_address, get_extension_function_address_for_platform,
};
use crate::handle::{release, retain};
use crate::kernel::Kernel;
use crate::mem::Mem;
use crate::process_end::{self, Unfinished};
use crate::program::Program;
use crate::queue::Queue;
use crate::sampler::Sampler;
use crate::{
    absent, context, event, image, kernel, launch, leaks, map, mem as memory, platform, program,
    properties, queue, report, sampler, synchronize, transfer,
};

/// The table, which is made known with all that parts below others ask of them.
pub fn install(get_platforms: GetPlatforms) -> &'static cl_icd_dispatch {
    let installed = dispatch::install(|| {
        platform::when_it_opens(opens);
        process_end::ask(Unfinished {
            commands: queue::unfinished,
            any_event_is_open: event::any_is_open,
        });
        Dispatch {
            table: filled(),
            get_platforms,
        }
    });
    &installed.table
}

/// The program asks for the platform, which has these devices.
fn opens(devices: &[RealDevice]) {
    leaks::watch();
    report::begin(devices);
}

/// The functions that a layer must have itself: they are called for no object, or for one
/// that the loader would compare with its list of platforms.
pub fn override_first(table: &mut cl_icd_dispatch) {
    table.clGetPlatformIDs = Some(platform::calls::get_platform_ids);
    table.clGetPlatformInfo = Some(platform::calls::get_platform_info);
    table.clGetDeviceIDs = Some(platform::calls::get_device_ids);
    table.clCreateContext = Some(context::calls::create_context);
    table.clCreateContextFromType = Some(context::calls::create_context_from_type);
    table.clWaitForEvents = Some(event::calls::wait_for_events);
    table.clUnloadCompiler = Some(program::calls::unload_compiler);
    table.clGetExtensionFunctionAddress = Some(get_extension_function_address);
    table.clGetExtensionFunctionAddressForPlatform =
        Some(get_extension_function_address_for_platform);
}

fn filled() -> cl_icd_dispatch {
    // SAFETY: every entry is an optional function or a number, for which zeros are valid.
    let mut table: cl_icd_dispatch = unsafe { mem::zeroed() };
    override_first(&mut table);
    devices_and_contexts(&mut table);
    objects(&mut table);
    commands(&mut table);
    images(&mut table);
    absent::fill(&mut table);
    // An empty entry crashes programs.
    let words = (&raw mut table).cast::<usize>();
    for index in 0..size_of::<cl_icd_dispatch>() / size_of::<usize>() {
        // SAFETY: every entry is as large as a pointer, and `absent` reads no argument.
        unsafe {
            if *words.add(index) == 0 {
                *words.add(index) = absent::absent as *const () as usize;
            }
        }
    }
    table
}

fn devices_and_contexts(table: &mut cl_icd_dispatch) {
    table.clGetDeviceInfo = Some(get_info::<Device, ()>);
    table.clRetainDevice = Some(device::calls::retain_device);
    table.clReleaseDevice = Some(device::calls::release_device);
    table.clCreateSubDevices = Some(device::calls::create_sub_devices);
    table.clRetainContext = Some(retain::<Context>);
    table.clReleaseContext = Some(release::<Context>);
    table.clGetContextInfo = Some(get_info::<Context, ()>);
    table.clSetContextDestructorCallback = Some(context::calls::set_context_destructor_callback);
    table.clCreateCommandQueue = Some(queue::calls::create_command_queue);
    table.clRetainCommandQueue = Some(retain::<Queue>);
    table.clReleaseCommandQueue = Some(queue::calls::release_command_queue);
    table.clGetCommandQueueInfo = Some(get_info::<Queue, ()>);
    table.clSetCommandQueueProperty = Some(queue::calls::set_command_queue_property);
    table.clFlush = Some(queue::calls::flush);
    table.clFinish = Some(queue::calls::finish);
    table.clRetainEvent = Some(retain::<Event>);
    table.clReleaseEvent = Some(release::<Event>);
    table.clGetEventInfo = Some(get_info::<Event, ()>);
    table.clGetEventProfilingInfo = Some(get_info::<Event, event::calls::Profiling>);
    table.clCreateUserEvent = Some(event::calls::create_user_event);
    table.clSetUserEventStatus = Some(event::calls::set_user_event_status);
    table.clSetEventCallback = Some(event::calls::set_event_callback);
}

fn objects(table: &mut cl_icd_dispatch) {
    table.clCreateBuffer = Some(memory::calls::create_buffer);
    table.clCreateSubBuffer = Some(memory::calls::create_sub_buffer);
    table.clRetainMemObject = Some(retain::<Mem>);
    table.clReleaseMemObject = Some(release::<Mem>);
    table.clGetMemObjectInfo = Some(get_info::<Mem, ()>);
    table.clSetMemObjectDestructorCallback =
        Some(memory::calls::set_mem_object_destructor_callback);
    table.clCreateSampler = Some(sampler::create_sampler);
    table.clRetainSampler = Some(retain::<Sampler>);
    table.clReleaseSampler = Some(release::<Sampler>);
    table.clGetSamplerInfo = Some(get_info::<Sampler, ()>);
    table.clCreateProgramWithSource = Some(program::calls::create_program_with_source);
    table.clCreateProgramWithBinary = Some(program::calls::create_program_with_binary);
    table.clRetainProgram = Some(retain::<Program>);
    table.clReleaseProgram = Some(release::<Program>);
    table.clBuildProgram = Some(program::calls::build_program);
    table.clCompileProgram = Some(program::compile::compile_program);
    table.clLinkProgram = Some(program::compile::link_program);
    table.clCreateProgramWithBuiltInKernels =
        Some(program::compile::create_program_with_built_in_kernels);
    table.clUnloadPlatformCompiler = Some(program::calls::unload_platform_compiler);
    table.clGetProgramInfo = Some(get_info::<Program, ()>);
    table.clGetProgramBuildInfo = Some(program::calls::get_program_build_info);
    table.clCreateKernel = Some(kernel::create_kernel);
    table.clCreateKernelsInProgram = Some(program::calls::create_kernels_in_program);
    table.clCloneKernel = Some(kernel::clone_kernel);
    table.clRetainKernel = Some(retain::<Kernel>);
    table.clReleaseKernel = Some(release::<Kernel>);
    table.clSetKernelArg = Some(kernel::set_kernel_arg);
    table.clGetKernelInfo = Some(get_info::<Kernel, ()>);
    table.clGetKernelArgInfo = Some(kernel::get_kernel_arg_info);
    table.clGetKernelWorkGroupInfo = Some(kernel::get_kernel_work_group_info);
}

fn commands(table: &mut cl_icd_dispatch) {
    table.clEnqueueReadBuffer = Some(transfer::enqueue_read_buffer);
    table.clEnqueueWriteBuffer = Some(transfer::enqueue_write_buffer);
    table.clEnqueueCopyBuffer = Some(transfer::enqueue_copy_buffer);
    table.clEnqueueFillBuffer = Some(transfer::enqueue_fill_buffer);
    table.clEnqueueReadBufferRect = Some(transfer::enqueue_read_buffer_rect);
    table.clEnqueueWriteBufferRect = Some(transfer::enqueue_write_buffer_rect);
    table.clEnqueueCopyBufferRect = Some(transfer::enqueue_copy_buffer_rect);
    table.clEnqueueMapBuffer = Some(map::enqueue_map_buffer);
    table.clEnqueueUnmapMemObject = Some(map::enqueue_unmap_mem_object);
    table.clEnqueueNDRangeKernel = Some(launch::calls::enqueue_nd_range_kernel);
    table.clEnqueueNativeKernel = Some(launch::calls::enqueue_native_kernel);
    table.clEnqueueTask = Some(launch::calls::enqueue_task);
    table.clEnqueueMarker = Some(synchronize::enqueue_marker);
    table.clEnqueueBarrier = Some(synchronize::enqueue_barrier);
    table.clEnqueueWaitForEvents = Some(synchronize::enqueue_wait_for_events);
    table.clEnqueueMarkerWithWaitList = Some(synchronize::enqueue_marker_with_wait_list);
    table.clEnqueueBarrierWithWaitList = Some(synchronize::enqueue_barrier_with_wait_list);
    table.clEnqueueMigrateMemObjects = Some(synchronize::enqueue_migrate_mem_objects);
}

fn images(table: &mut cl_icd_dispatch) {
    table.clCreateImage = Some(image::create_image);
    table.clCreateImage2D = Some(image::create_image_2d);
    table.clCreateImage3D = Some(image::create_image_3d);
    table.clGetSupportedImageFormats = Some(image::get_supported_image_formats);
    table.clGetImageInfo = Some(get_info::<Mem, image::Images>);
    table.clEnqueueReadImage = Some(image::enqueue_read_image);
    table.clEnqueueWriteImage = Some(image::enqueue_write_image);
    table.clEnqueueFillImage = Some(image::enqueue_fill_image);
    table.clEnqueueCopyImage = Some(image::enqueue_copy_image);
    table.clEnqueueCopyImageToBuffer = Some(image::enqueue_copy_image_to_buffer);
    table.clEnqueueCopyBufferToImage = Some(image::enqueue_copy_buffer_to_image);
    table.clEnqueueMapImage = Some(map::enqueue_map_image);
    table.clCreateCommandQueueWithProperties =
        Some(properties::create_command_queue_with_properties);
    table.clCreateSamplerWithProperties = Some(properties::create_sampler_with_properties);
    table.clCreateBufferWithProperties = Some(properties::create_buffer_with_properties);
    table.clCreateImageWithProperties = Some(properties::create_image_with_properties);
}

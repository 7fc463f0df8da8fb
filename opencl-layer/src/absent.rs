//! Functions that this platform does not have. One that makes an object writes a status
//! code and returns null; all others return a status code.

use std::ptr;

use libc::c_void;
use opencl_sys::cl_icd::*;
use opencl_sys::*;

/// An entry that this platform does not have: it returns a status code.
pub unsafe extern "C" fn absent() -> cl_int {
    CL_INVALID_OPERATION
}

/// Defines functions that make no object and say so.
macro_rules! absent {
    ($($name:ident($($argument:ty),*) -> $object:ty;)*) => {
        $(
            unsafe extern "C" fn $name($(_: $argument,)* code: *mut cl_int) -> $object {
                if !code.is_null() {
                    // SAFETY: OpenCL's promise about the code.
                    unsafe { *code = CL_INVALID_OPERATION };
                }
                ptr::null_mut()
            }
        )*
    };
}

absent! {
    gl_buffer(cl_context, cl_mem_flags, cl_GLuint) -> cl_mem;
    gl_texture(cl_context, cl_mem_flags, cl_GLenum, cl_GLint, cl_GLuint) -> cl_mem;
    gl_sync(cl_context, cl_GLsync) -> cl_event;
    egl_image(
        cl_context, CLeglDisplayKHR, CLeglImageKHR, cl_mem_flags,
        *const cl_egl_image_properties_khr
    ) -> cl_mem;
    egl_sync(cl_context, CLeglSyncKHR, CLeglDisplayKHR) -> cl_event;
    pipe(cl_context, cl_mem_flags, cl_uint, cl_uint, *const cl_pipe_properties) -> cl_mem;
    program_with_il(cl_context, *const c_void, usize) -> cl_program;
}

unsafe extern "C" fn svm_alloc(
    _context: cl_context,
    _flags: cl_svm_mem_flags,
    _size: usize,
    _alignment: cl_uint,
) -> *mut c_void {
    ptr::null_mut()
}

unsafe extern "C" fn svm_free(_context: cl_context, _pointer: *mut c_void) {}

/// Fills the entries of functions that make objects, and those without a result. Those of
/// Windows' interfaces cannot be called here.
pub fn fill(table: &mut cl_icd_dispatch) {
    table.clCreateFromGLBuffer = Some(gl_buffer);
    table.clCreateFromGLTexture = Some(gl_texture);
    table.clCreateFromGLTexture2D = Some(gl_texture);
    table.clCreateFromGLTexture3D = Some(gl_texture);
    table.clCreateFromGLRenderbuffer = Some(gl_buffer);
    table.clCreateEventFromGLsyncKHR = Some(gl_sync);
    table.clCreateFromEGLImageKHR = Some(egl_image);
    table.clCreateEventFromEGLSyncKHR = Some(egl_sync);
    table.clCreatePipe = Some(pipe);
    table.clCreateProgramWithIL = Some(program_with_il);
    table.clSVMAlloc = Some(svm_alloc);
    table.clSVMFree = Some(svm_free);
}

#!/bin/sh
# Installs PoCL, an OpenCL implementation for CPUs, if this machine has no
# OpenCL CPU device, and OpenCL's headers, if they are missing. The tests run
# kernels on it, and compile programs in C.
set -eu

vendors=${OCL_ICD_VENDORS:-/etc/OpenCL/vendors}

have_loader() {
    { ldconfig -p 2>/dev/null || /sbin/ldconfig -p 2>/dev/null; } | grep -q 'libOpenCL\.so\.1'
}

# Whether the library of an ICD registration exists.
library_exists() {
    case $1 in
    /*) [ -e "$1" ] ;;
    *)
        for dir in /lib /lib64 /usr/lib /usr/lib64 /usr/local/lib /lib/*-linux-gnu \
            /usr/lib/*-linux-gnu /usr/local/lib/*-linux-gnu; do
            if [ -e "$dir/$1" ]; then return 0; fi
        done
        return 1
        ;;
    esac
}

# PoCL and Intel's runtime provide CPU devices. A removed package may leave its
# registration behind, so the library must exist, too.
have_cpu_device() {
    for icd in "$vendors"/*.icd; do
        echo "$icd" | grep -Eqi 'pocl|intel.*cpu|intel64' || continue
        if library_exists "$(head -n 1 "$icd")"; then return 0; fi
    done
    return 1
}

# Whether C programs for OpenCL can be compiled and linked.
can_compile() {
    echo 'int main(void) { return (int)clFinish(0); }' |
        cc -DCL_TARGET_OPENCL_VERSION=120 -include CL/cl.h -x c -o /dev/null - -lOpenCL 2>/dev/null
}

if have_loader && have_cpu_device && can_compile; then
    exit 0
fi

. "$(dirname "$0")/packages.sh"
packages "an OpenCL CPU device (PoCL), its loader and headers" \
    "pocl-opencl-icd ocl-icd-libopencl1 opencl-c-headers ocl-icd-opencl-dev" \
    "pocl ocl-icd ocl-icd-devel opencl-headers" "pocl ocl-icd opencl-headers" \
    "pocl libOpenCL1 ocl-icd-devel opencl-headers"

if ! can_compile; then
    echo "C programs with CL/cl.h and -lOpenCL cannot be compiled: install OpenCL's headers" >&2
    exit 1
fi
if ! have_loader || ! have_cpu_device; then
    echo "PoCL is installed, but $vendors registers no OpenCL CPU device" >&2
    exit 1
fi

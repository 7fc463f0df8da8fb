#!/usr/bin/env python3
"""Runs public OpenCL programs and compares their results with the expected ones.

    scripts/foreign-programs.py --folder FOLDER [--prefix "CMD"] [--record] [--repeat N] [--json FILE] [--list] [NAME...]

A program passes if it ends with status 0, its output matches the expected pattern, and the files it
writes equal those of the recorded native run. --record runs the programs natively and stores that
reference, with the seconds each takes, in FOLDER/native.json. A program that takes longer than ten
times its native seconds, and longer than FLOOR seconds, fails. A NAME is a program's name or the
first letters of several: npb- npbmd- npb2019- polybench- rodinia- clblast- cts-.

FOLDER holds the built programs under their projects' own paths: src/npb103 (SNU-NPB 1.0.3,
ashwinma/multicl 26d1301), src/npb2019 (SNU-NPB 2019, PhD-KKraljic/mhorst00-benchmarks 8b68849),
src/PolyBench-ACC (cavazos-lab 70ea4ca), src/gpu-rodinia (yuhc 9c10d3e), src/OpenCL-CTS/build
(KhronosGroup b8f8906) and data (the inputs of Rodinia's bfs and hotspot). CLBlast's tests are
Debian's package clblast-tests. The loader's variables choose the platform, for example
OCL_ICD_VENDORS; POCL_DEVICES="pthread pthread" gives PoCL two devices.
"""

import argparse
import hashlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time

NPB, MD = "src/npb103/NPB3.3-OCL", "src/npb103/NPB3.3-OCL-MD"
NPB2019, RODINIA = "src/npb2019/ocl", "src/gpu-rodinia/opencl"
POLYBENCH, CTS = "src/PolyBench-ACC/OpenCL", "src/OpenCL-CTS/build/test_conformance"
VERIFIED = r"Verification\s*=\s*SUCCESSFUL"
# Conformance tests -> subtests left out: those that fail, hang or take more than 5 s natively on PoCL 3.1,
# images, and the repetitions of one subtest for each type.
LEFT_OUT = {
    "api": "image|consistency_il|info_mult_dev|kernel_arg_info|kernel_attributes|negative_create_context|"
           "negative_create_sub_dev|negative_get_device_ids|invalid_arg_sampler|null_required|set_command_queue",
    "basic": "image|mri_|astype|async_|bufferreadwriterect|explicit_|hiloeo|kernel_memory_align|prefetch|"
             "sizeof|vec_type|vector_|vload|vstore|kernel_limit|global_work_offsets|out_of_range|parameter_types|pointer_cast",
    "buffers": "image|_(u?char|u?short|uint|u?long|float)$",
    "events": "callback_on_error",
    "mem_host_flags": "image",
    "multiples": "context_multiple",
    "thread_dimensions": "full_|quick_[23]d_explicit",
}
FLOOR = 90.0  # seconds: a layer may compile kernels that the native run found in the driver's cache


def table():
    """name -> (folder, command, pattern, environment, files compared with the native run)"""
    programs = {}

    def add(name, folder, command, pattern, environment=None, files=()):
        programs[name] = (folder, command, pattern, environment or {}, files)

    for size in "SW":
        for b in "EP CG FT IS MG BT SP LU".split():
            add(f"npb-{b.lower()}-{size}", NPB, f"bin/{b.lower()}.{size}.x {{here}}/{b} cpu", VERIFIED)
        # BT of the multi-device form computes NaN natively on PoCL and is left out.
        for b, queues in (("EP", 2), ("CG", 2), ("FT", 2), ("MG", 2), ("SP", 4)):
            add(f"npbmd-{b.lower()}-{size}", MD, f"bin/{b.lower()}.{size}.x {{here}}/{b} all", VERIFIED,
                {"SNU_NPB_COMMAND_QUEUES": str(queues)})
    # CG and MG of SNU-NPB 2019 ask for a GPU, FT, IS, SP and LU fail on PoCL natively.
    for b in ("EP", "BT"):
        add(f"npb2019-{b.lower()}-S", NPB2019, f"bin/{b.lower()}.S.x -s {{here}}/{b}", VERIFIED,
            {"OPENCL_DEVICE_TYPE": "cpu"})
    for path, size in (
        ("stencils/convolution-2d", "STANDARD"), ("stencils/convolution-3d", "STANDARD"),
        ("stencils/fdtd-2d", "SMALL"), ("stencils/jacobi-1d-imper", "STANDARD"),
        ("stencils/jacobi-2d-imper", "STANDARD"), ("stencils/adi", "STANDARD"),
        ("datamining/correlation", "SMALL"), ("datamining/covariance", "SMALL"),
        ("linear-algebra/solvers/gramschmidt", "MINI"), ("linear-algebra/solvers/lu", "SMALL"),
        ("linear-algebra/kernels/2mm", "SMALL"), ("linear-algebra/kernels/3mm", "STANDARD"),
        ("linear-algebra/kernels/atax", "STANDARD"), ("linear-algebra/kernels/bicg", "STANDARD"),
        ("linear-algebra/kernels/gemm", "STANDARD"), ("linear-algebra/kernels/gesummv", "STANDARD"),
        ("linear-algebra/kernels/mvt", "STANDARD"), ("linear-algebra/kernels/syr2k", "STANDARD"),
        ("linear-algebra/kernels/syrk", "STANDARD"),
    ):
        name = os.path.basename(path)
        add(f"polybench-{name}", f"{POLYBENCH}/{path}", f"./{name}.{size}", r"Percent: 0\s*$")
    device = "-p 0 -d 0"
    for name, folder, command, pattern, files in (
        ("streamcluster", "streamcluster", "./streamcluster.out 10 20 64 4096 4096 1000 none output.txt 1", "", ["output.txt"]),
        ("nw", "nw", "./nw.out 512 10 ./nw.cl", "", ["result.txt"]),
        ("lud", "lud", "ocl/lud.out -s 512 -v", r"Verify<<<<\s*$", []),
        ("bfs", "bfs", "./bfs.out {data}/bfs.txt", "passed", []),
        ("hotspot", "hotspot", "./hotspot.out 256 4 200 {data}/temp_256 {data}/power_256 output.txt", "", ["output.txt"]),
        ("srad", "srad", "./srad.out -n 20 -l 0.5 -s 502 458", "", ["output/image_out.pgm"]),
        ("lavamd", "lavaMD", "./lavaMD.out -boxes1d 4", "", ["result.txt"]),
    ):
        add(f"rodinia-{name}", f"{RODINIA}/{folder}", f"{command} {device}", pattern, files=files)
    for routine in "xaxpy xscal xcopy xswap xdot xnrm2 xasum xamax xhad xger xomatcopy".split():
        add(f"clblast-{routine}", ".", f"/usr/bin/clblast_test_{routine} -full_test 0",
            r"(?s)[1-9]\d* test\(s\) passed(?!.*[1-9]\d* test\(s\) failed)")
    for name in LEFT_OUT:
        where = "multiple_device_context" if name == "multiples" else name
        add(f"cts-{name}", f"{CTS}/{where}", f"./test_{name} {{subtests}}", r"PASSED (\d+ of|test)")
    return programs


def run(program, folder, prefix, limit):
    where, command, pattern, environment, files = program
    here = os.path.join(folder, where)
    for file in files:
        if os.path.exists(os.path.join(here, file)):
            os.remove(os.path.join(here, file))
    if "{subtests}" in command:
        binary = command.split()[0]
        listed = []
        if os.path.exists(os.path.join(here, binary)):
            listed = re.findall(r"(?m)^\t(\w+)", subprocess.run([binary, "--list"], cwd=here, capture_output=True, text=True).stdout)
        left_out = LEFT_OUT[binary[len("./test_"):]]
        command = binary + " " + " ".join(x for x in listed if not re.search(left_out, x))
    argv = shlex.split(prefix) + shlex.split(command.format(here=here, data=os.path.join(folder, "data")))
    start = time.monotonic()
    try:
        child = subprocess.Popen(argv, cwd=here, env={**os.environ, **environment}, start_new_session=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    except OSError as error:
        return {"problem": f"{argv[0]} does not start in {here} ({error}): build the programs first", "seconds": 0.0}
    try:
        output = child.communicate(timeout=limit)[0].decode(errors="replace")
        problem = None if child.returncode == 0 else f"status {child.returncode}"
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        output, problem = child.communicate()[0].decode(errors="replace"), f"longer than {limit:.0f} s"
    seconds = time.monotonic() - start
    plain = re.sub(r"\x1b\[[0-9;]*m", "", output)
    broken = re.findall(r"(?m)^(\w+) FAILED", plain)
    if broken:
        problem = "failed: " + " ".join(sorted(set(broken)))
    if problem is None and pattern and not re.search(pattern, plain):
        problem = f"output lacks {pattern}"
    digests = {}
    for file in files:
        try:
            digests[file] = hashlib.sha256(open(os.path.join(here, file), "rb").read()).hexdigest()
        except OSError:
            problem = problem or f"file {file} was not written"
    return {"problem": problem, "seconds": seconds, "files": digests, "output": plain}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--folder", required=True, help="folder of the built programs")
    p.add_argument("--prefix", default="", help="command put before each program")
    p.add_argument("--record", action="store_true", help="store this run as the native reference")
    p.add_argument("--native", help="file of the native reference (default FOLDER/native.json)")
    p.add_argument("--repeat", type=int, default=1, help="runs of each program; the fastest is reported")
    p.add_argument("--json", help="file for the results")
    p.add_argument("--outputs", help="folder for each program's output")
    p.add_argument("--list", action="store_true")
    p.add_argument("names", nargs="*")
    a = p.parse_args()
    folder = os.path.abspath(a.folder)
    native_file = a.native or os.path.join(folder, "native.json")
    programs = table()
    for name in a.names:
        if not any(n.startswith(name) for n in programs):
            sys.exit(f"no program is named {name}: --list prints the names")
    chosen = [n for n in programs if not a.names or any(n.startswith(x) for x in a.names)]
    if a.list:
        for n in chosen:
            print(f"{n:28} {programs[n][0]}: {programs[n][1]}")
        return
    native = json.load(open(native_file)) if os.path.exists(native_file) else {}
    results, failed = {}, 0
    for n in chosen:
        reference = native.get(n, {})
        limit = max(10 * reference.get("seconds", 0), FLOOR)
        runs = [run(programs[n], folder, a.prefix, limit) for _ in range(a.repeat)]
        result = min(runs, key=lambda r: (r["problem"] is None, r["seconds"]))  # one failed run fails the program
        if a.record:
            native[n] = {"seconds": result["seconds"], "files": result.get("files", {}), "problem": result["problem"]}
        else:
            for file, digest in reference.get("files", {}).items():
                if result["problem"] is None and result["files"].get(file) != digest:
                    result["problem"] = f"file {file} differs from the native run's"
        ratio = result["seconds"] / reference["seconds"] if reference.get("seconds") else None
        if a.outputs:
            os.makedirs(a.outputs, exist_ok=True)
            open(os.path.join(a.outputs, n + ".txt"), "w").write(result.get("output", ""))
        failed += result["problem"] is not None
        print(f"{'FAIL' if result['problem'] else 'PASS'}  {n:28} {result['seconds']:8.2f} s "
              + (f"x{ratio:6.2f}" if ratio and not a.record else "") + (f"  {result['problem']}" if result["problem"] else ""), flush=True)
        results[n] = {"pass": result["problem"] is None, "problem": result["problem"], "seconds": result["seconds"], "ratio": ratio}
    if a.record:
        json.dump(native, open(native_file, "w"), indent=1, sort_keys=True)
    if a.json:
        json.dump(results, open(a.json, "w"), indent=1, sort_keys=True)
    print(f"{len(chosen) - failed} of {len(chosen)} passed")
    sys.exit(failed != 0)


main()

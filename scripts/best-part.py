#!/usr/bin/env python3
"""Compares `pdawl run` by default with its runs on parts of this machine's devices, in turns.

    scripts/best-part.py PDAWL PARTS [TURNS] < ROWS > RESULT.jsonl

PARTS are lists as --devices takes them, separated by spaces: 'host cuda0 host,cuda0'. Each line of
ROWS are the words of a run: `stencil --size 8192`. A turn runs each part, the default without what
earlier runs took (--fresh), and the default with it, which is kept in a folder of its own, so that the
first run of a row knows none. The result has the reports' `seconds` of all; a table on standard error
has the ratios to the part with the least median.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile


def run(pdawl, row, options, environment):
    words = [pdawl, "run", *row.split(), *options, "--format", "json"]
    ran = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **environment})
    if ran.returncode:
        sys.exit(f"{' '.join(words)}: {ran.stderr}")
    return json.loads(ran.stdout)


def main():
    pdawl, parts = sys.argv[1], sys.argv[2].split()
    turns = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    folder, others = tempfile.mkdtemp(), {"PDAWL_KERNELS": tempfile.mkdtemp()}
    for row in filter(None, map(str.strip, sys.stdin)):
        found = {"row": row, "parts": {part: [] for part in parts}}
        found |= {"without_rows": [], "kept": [], "notes": []}
        for _ in range(turns):
            for part in parts:
                report = run(pdawl, row, ["--fresh", "--devices", part], others)
                found["parts"][part].append(report["seconds"])
            off = run(pdawl, row, ["--fresh"], others)
            kept = run(pdawl, row, [], {"PDAWL_KERNELS": folder})
            found["without_rows"].append(off["seconds"])
            found["kept"].append(kept["seconds"])
            found["notes"].append([note for note in kept["notes"] if "part" in note])
        print(json.dumps(found), flush=True)
        medians = {part: statistics.median(times) for part, times in found["parts"].items()}
        best = min(medians, key=medians.get)
        ratio = lambda times: statistics.median(times) / medians[best]
        later = found["kept"][2:] or found["kept"]
        print(
            f"{row}: best {best} {medians[best]:.3g} s; first runs {ratio(found['without_rows']):.2f},"
            f" from the third on {ratio(later):.2f}",
            file=sys.stderr,
        )


main()

#!/usr/bin/env python3
"""Runs the code of notebooks without Jupyter, which brings some fifty packages:

    notebooks/run.py NOTEBOOK...

This needs what the notebooks import: matplotlib, pandas and pdawl. What a page would show is
made and discarded, except for what cells print. A cell that fails ends this, with its notebook
and the number that it has among the cells of code."""

import ast
import json
import linecache
import sys
import time
import traceback
import types

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402


def display(*shown):
    """Makes the forms that a page would have. Nothing of them is kept."""
    for one in shown:
        getattr(one, "_repr_html_", one.__repr__)()


def show():
    """Draws all figures, as a page would: some errors of a figure are seen only then."""
    for number in plt.get_fignums():
        plt.figure(number).canvas.draw()
    plt.close("all")


def run_cell(source, name, namespace):
    """Runs a cell and displays its last expression, as Jupyter does."""
    # With its lines known, a traceback quotes them.
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    code = ast.parse(source, name)
    last = code.body.pop() if code.body and isinstance(code.body[-1], ast.Expr) else None
    exec(compile(code, name, "exec"), namespace)
    if last:
        display(eval(compile(ast.Expression(last.value), name, "eval"), namespace))
    show()


def run(path):
    with open(path, encoding="utf-8") as file:
        cells = json.load(file)["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    namespace = {"__name__": "__main__"}
    for number, source in enumerate(sources, 1):
        try:
            run_cell(source, f"{path}, cell {number}", namespace)
        except Exception:
            traceback.print_exc()
            sys.exit(f"{path}: cell {number} of {len(sources)} fails")


# What notebooks import of Jupyter.
jupyter = types.ModuleType("IPython.display")
jupyter.display, jupyter.Markdown = display, str
sys.modules[jupyter.__name__] = jupyter
plt.show = show

for path in sys.argv[1:]:
    begun = time.monotonic()
    run(path)
    print(f"{path}: {time.monotonic() - begun:.1f} s", flush=True)

"""What a run returns."""

from __future__ import annotations

import html
import json
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterator, Sequence

import numpy as np

if TYPE_CHECKING:
    import pandas


class Run:
    """A run: its report, its shares, and its chart if it was traced."""

    def __init__(self, run: Any) -> None:
        self._run = run

    @cached_property
    def report(self) -> dict[str, Any]:
        """The report, as `pdawl run --format json` prints it (docs/report.md)."""
        report: dict[str, Any] = json.loads(self._run.report_json())
        return report

    @property
    def seconds(self) -> float:
        """Seconds of the run; virtual in a simulation."""
        return float(self.report["seconds"])

    @property
    def shares(self) -> list[float]:
        """Each device's fraction of the work."""
        return list(self._run.shares())

    @property
    def interrupted(self) -> bool:
        return bool(self.report["interrupted"])

    @property
    def notes(self) -> list[str]:
        return list(self.report["notes"])

    @property
    def devices(self) -> pandas.DataFrame:
        """A row for each device: its share, seconds and bytes."""
        return _frame(self.report["devices"], "name")

    @property
    def steps(self) -> pandas.DataFrame:
        """A row for each step between two barriers; empty for a graph."""
        return _frame(self.report["details"].get("steps", []), None)

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in vars(self).items() if name != "report"}
        return kept | {"_run": _Kept.of(self._run)}

    def trace(self) -> dict[str, Any]:
        """Every command with its times, in Perfetto's form; empty unless the run was traced."""
        trace: dict[str, Any] = json.loads(self._run.trace_json())
        return trace

    def gantt(self, path: str | Path) -> None:
        """Writes the chart of a traced run: a page for `.html`, otherwise a drawing in SVG."""
        path = Path(path)
        chart = self._run.gantt_html() if path.suffix == ".html" else self._run.gantt_svg()
        path.write_text(chart, encoding="utf-8")

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(device['name'])}</td><td>{device['share']:.1%}</td></tr>"
            for device in self.report["devices"]
        )
        title = html.escape(self.report["workload"]["title"])
        table = f"<table><tr><th>Device</th><th>Share</th></tr>{rows}</table>"
        virtual = " simulated" if self.report["machine"]["simulated"] else ""
        head = f"<p>{title}: {self.seconds:.6g} s{virtual}</p>{table}"
        if not self.trace().get("traceEvents"):
            return head
        chart = html.escape(self._run.gantt_html(), quote=True)
        return f'{head}<iframe srcdoc="{chart}" width="100%" height="320"></iframe>'

    def __repr__(self) -> str:
        virtual = " simulated" if self.report["machine"]["simulated"] else ""
        shares = ", ".join(
            f"{device['name']} {device['share']:.1%}" for device in self.report["devices"]
        )
        return f"<pdawl.Run {self.report['workload']['title']}: {self.seconds:.6g} s{virtual}, {shares}>"


class _Kept:
    """What a run can tell, without the run: for `pickle`."""

    def __init__(self, told: dict[str, Any]) -> None:
        self._told = told

    @classmethod
    def of(cls, run: Any) -> _Kept:
        if isinstance(run, cls):
            return run
        telling = ("report_json", "shares", "trace_json", "gantt_html", "gantt_svg")
        return cls({name: getattr(run, name)() for name in telling})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        told = self._told[name]
        return lambda: told


class Result(Run, np.lib.mixins.NDArrayOperatorsMixin):
    """An operation's array, with the run that has computed it. It is taken wherever an array is,
    without a copy, and computes as one: `result @ x` is NumPy's array."""

    def __init__(self, array: np.ndarray, run: Any) -> None:
        super().__init__(run)
        self.array = array

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def dtype(self) -> np.dtype:
        return self.array.dtype

    @property
    def ndim(self) -> int:
        return self.array.ndim

    @property
    def size(self) -> int:
        return self.array.size

    @property
    def T(self) -> np.ndarray:  # noqa: N802, as NumPy calls it
        turned: np.ndarray = self.array.T
        return turned

    @property
    def is_right(self) -> bool | None:
        """Whether the result was compared and is right; None without `verify`. A wrong one raises
        `pdawl.Error`."""
        verification = self.report["verification"]
        return None if verification is None else verification["right"]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        other = dtype is not None and np.dtype(dtype) != self.array.dtype
        found: np.ndarray = self.array.astype(dtype) if other else self.array
        return found.copy() if copy and not other else found

    def __array_ufunc__(self, function: np.ufunc, method: str, *given: Any, **options: Any) -> Any:
        def arrays(of: Sequence[Any]) -> tuple[Any, ...]:
            return tuple(one.array if isinstance(one, Result) else one for one in of)

        if "out" in options:
            options["out"] = arrays(options["out"])
        return getattr(function, method)(*arrays(given), **options)

    def __getitem__(self, which: Any) -> Any:
        return self.array[which]

    def __len__(self) -> int:
        return len(self.array)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.array)


class Factors(Result):
    """The factors of an LU factorisation: `lu` has L below its diagonal and U from it on, and
    row i was exchanged with row `pivots[i]`, for ascending i."""

    def __init__(self, array: np.ndarray, pivots: np.ndarray, run: Any) -> None:
        super().__init__(array, run)
        self.pivots = pivots

    @property
    def lu(self) -> np.ndarray:
        return self.array


def _frame(rows: list[dict[str, Any]], index: str | None) -> pandas.DataFrame:
    try:
        import pandas
    except ImportError:
        raise ImportError("tables need pandas: pip install pandas") from None
    frame = pandas.DataFrame(rows)
    return frame.set_index(index) if index in frame.columns else frame

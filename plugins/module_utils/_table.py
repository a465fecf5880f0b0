"""Checks as a table of plain text. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping

COLUMNS = ("name", "object", "seen", "verdict")
TITLES = ("checked", "on", "seen", "verdict")
WIDEST_SEEN = 60


def table(checks: Iterable[Mapping[str, str]]) -> list[str]:
    """Lines of one table: what was checked, on what, what was seen, the verdict; below a row that did not pass, what to do."""
    rows = [{**check, "verdict": check["verdict"].replace("_", " ")} for check in checks]
    if not rows:
        return []
    widths = [max(len(title), *(len(row[key]) for row in rows)) for key, title in zip(COLUMNS, TITLES, strict=True)]
    widths[2] = min(widths[2], WIDEST_SEEN)
    lines = [_line(TITLES, widths), _line(["-" * width for width in widths], widths)]
    for row in rows:
        first, *rest = textwrap.wrap(row["seen"], widths[2]) or [""]
        lines.append(_line((row["name"], row["object"], first, row["verdict"]), widths))
        lines += [_line(("", "", more, ""), widths) for more in rest]
        if row["verdict"] != "pass":
            lines.append(f"    expected {row['expected']}. {row['remedy']}")
    return lines


def tally(checks: Iterable[Mapping[str, str]]) -> str:
    """One line that counts the verdicts."""
    verdicts = [check["verdict"] for check in checks]
    counted = ((verdicts.count(kind), kind.replace("_", " ")) for kind in ("pass", "fail", "cannot_tell"))
    return ", ".join(f"{count} {kind}" for count, kind in counted)


def _line(cells: Iterable[str], widths: Iterable[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()

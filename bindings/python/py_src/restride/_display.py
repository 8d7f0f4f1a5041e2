"""Programs, plans and reports as text and as HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from typing import Any

_STYLE = re.compile(r"\x1b\[[0-9;]*m")
# A palette that people with any colour vision can tell apart (Okabe and Ito).
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999")
_ROWS = 12


def plain(text: str) -> str:
    """Text without terminal colours."""
    return _STYLE.sub("", text).rstrip("\n")


def preformatted(text: str) -> str:
    """Text as HTML."""
    return f"<pre>{html.escape(plain(text))}</pre>"


def size(n: float) -> str:
    """Bytes for people."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(n) < 1000 or unit == "GB":
            return f"{n:.0f} {unit}" if unit == "B" or abs(n) >= 100 else f"{n:.1f} {unit}"
        n /= 1000
    raise AssertionError


def program_text(
    name: str, stage: str, nodes: int, inputs: Sequence[Any], outputs: Sequence[Any], state: Sequence[Any]
) -> str:
    """A program in some lines."""
    lines = [f"Program({name}, {stage}, {nodes} nodes"]

    def part(title: str, values: Sequence[Any]) -> None:
        if values:
            lines.append(f"  {title}:")
            lines.extend(f"    {v}" for v in values[:_ROWS])
            if len(values) > _ROWS:
                lines.append(f"    … {len(values) - _ROWS} more")

    part("inputs", inputs)
    part("outputs", outputs)
    written = [s for s in state if s.mutated]
    part("mutated state", written)
    if state:
        total = size(sum(s.nbytes for s in state))
        lines.append(f"  state: {len(state)} tensors, {total}")
    return "\n".join(lines) + "\n)"


def program_html(text: str, picture: str) -> str:
    """A program with the picture of its memory."""
    return f"<div>{preformatted(text)}{picture}</div>"


def peak(buffers: Sequence[Mapping[str, Any]]) -> tuple[int, list[dict[str, Any]]]:
    """The step at which most bytes live, and what lives then, largest first."""
    events: dict[int, int] = {}
    for b in buffers:
        for life in b["lives"]:
            n = life["to"] - life["from"]
            events[life["first_step"]] = events.get(life["first_step"], 0) + n
            events[life["last_step"] + 1] = events.get(life["last_step"] + 1, 0) - n
    at = most = now = 0
    for step in sorted(events):
        now += events[step]
        if now > most:
            most, at = now, step
    live = [dict(b) for b in buffers if b["first_step"] <= at <= b["last_step"]]
    return at, sorted(live, key=lambda b: -int(b["bytes"]))


def plan_text(plan: Mapping[str, Any]) -> str:
    """A plan in some lines."""
    at, live = peak(plan["buffers"])
    proved = ", as small as can be" if plan.get("optimal") else ""
    lines = [
        f"Plan(arena {size(plan['arena_bytes'])}{proved}; at least {size(plan['lower_bound_bytes'])}; "
        f"state {size(plan['state_bytes'])}, outputs {size(plan['output_bytes'])})"
    ]
    if live:
        lines.append(f"  most bytes live at step {at}:")
        lines.extend(f"    {size(b['bytes']):>9}  {', '.join(b['values'][:4])}" for b in live[:_ROWS])
    return "\n".join(lines)


def plan_html(plan: Mapping[str, Any]) -> str:
    """The picture of a plan: a box for each buffer, over steps and addresses, and the buffers at the peak."""
    buffers = plan["buffers"]
    steps = max((int(b["last_step"]) + 1 for b in buffers), default=1)
    arena = max(int(plan["arena_bytes"]), 1)
    width, height = 720, 240
    out = [
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'style="background:#fafafa;border:1px solid #ccc" role="img" aria-label="memory over steps">'
    ]
    for i, b in enumerate(buffers):
        colour = _COLOURS[i % len(_COLOURS)]
        tip = f"{', '.join(b['values'][:6])}: {size(b['bytes'])} at {b['offset']}, steps {b['first_step']} to {b['last_step']}"
        out.append(f'<g fill="{colour}" fill-opacity="0.75"><title>{html.escape(tip)}</title>')
        for life in b["lives"]:
            x = life["first_step"] / steps * width
            w = max((life["last_step"] + 1 - life["first_step"]) / steps * width - 0.3, 0.5)
            h = (life["to"] - life["from"]) / arena * height
            y = height - (b["offset"] + life["to"]) / arena * height
            out.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{max(h, 0.3):.1f}"/>')
        out.append("</g>")
    at, live = peak(buffers)
    x = (at + 0.5) / steps * width
    out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height}" stroke="#000" stroke-dasharray="3 3"/></svg>')
    rows = "".join(
        f"<tr><td style='text-align:right'>{size(b['bytes'])}</td><td style='text-align:left'>"
        f"{html.escape(', '.join(b['values'][:6]))}</td></tr>"
        for b in live[:_ROWS]
    )
    proved = " (as small as can be)" if plan.get("optimal") else ""
    return (
        f"<div><p>arena <b>{size(plan['arena_bytes'])}</b>{proved}, at least {size(plan['lower_bound_bytes'])}; "
        f"state {size(plan['state_bytes'])}; outputs {size(plan['output_bytes'])}; {steps} steps. "
        f"Dashed: the peak, at step {at}.</p>{''.join(out)}"
        f"<table><thead><tr><th>bytes</th><th>values at the peak</th></tr></thead><tbody>{rows}</tbody></table></div>"
    )


def report_html(_data: Mapping[str, Any], text: str) -> str:
    """A report as HTML."""
    return preformatted(text)

"""Plots as SVG text, to stand in an HTML page: no script, no file beside it, readable in light and dark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from eval.figures import Figure
from eval.stats import Interval
from eval.summary import Bin, Point

WIDTH, LEFT, RIGHT = 640, 200, 90
ROW = 24


def intervals(figures: Sequence[Figure]) -> str:
    """A dot and its interval for each measure between 0 and 1; an undefined one has its name and the word."""
    rows = []
    for place, one in enumerate(figures):
        y = 30 + place * ROW
        rows.append(text(LEFT - 10, y + 4, one.name, "end"))
        if one.value is None:
            rows.append(text(LEFT + 6, y + 4, "undefined", "start", "faint"))
            continue
        if one.interval:
            rows.append(line(across(one.interval.low), y, across(one.interval.high), y, "interval"))
        rows.append(f'<circle class="dot" cx="{across(one.value):.1f}" cy="{y}" r="4.5"/>')
        rows.append(text(WIDTH - RIGHT + 12, y + 4, f"{one.value:.3f}", "start"))
    height = 40 + len(figures) * ROW
    return svg("Measures with their 95 % intervals", WIDTH, height, [*scale(height), *rows])


def across(value: float) -> float:
    """A share in [0, 1] as a place between the left and right margin."""
    return LEFT + min(1.0, max(0.0, value)) * (WIDTH - LEFT - RIGHT)


def scale(height: float) -> list[str]:
    """Vertical lines at quarters."""
    marks = []
    for step in range(5):
        x = across(step / 4)
        marks += [line(x, 18, x, height - 10, "grid"), text(x, 12, f"{step / 4:g}", "middle", "faint")]
    return marks


def bars(figure: Figure) -> str:
    """A measure by kind of question, with the count of questions."""
    rows = []
    for place, (kind, (value, count)) in enumerate(figure.by_kind.items()):
        y = 30 + place * ROW
        rows.append(text(LEFT - 10, y + 4, f"{kind} ({count})", "end"))
        if value is None:
            rows.append(text(LEFT + 6, y + 4, "undefined", "start", "faint"))
            continue
        rows.append(f'<rect class="bar" x="{LEFT}" y="{y - 8}" width="{max(0.5, across(value) - LEFT):.1f}" height="16"/>')
        rows.append(text(WIDTH - RIGHT + 12, y + 4, f"{value:.2f}", "start"))
    height = 40 + len(figure.by_kind) * ROW
    return svg(f"{figure.name} by kind of question", WIDTH, height, [*scale(height), *rows])


SIDE, MARGIN = 300, 48


def risk_coverage(points: Sequence[Point]) -> str:
    """The share of answers that are not correct, over the share of answers given when only the surest are."""
    steps = " ".join(f"{right_of(one.coverage):.1f},{up(one.risk):.1f}" for one in points)
    curve = (
        f'<polyline class="curve" points="{steps}"/>' if points else text(right_of(0.5), up(0.5), "no answers", "middle", "faint")
    )
    return square("Risk over coverage", "share of answers given", "share not correct", [curve])


def reliability(bins: Sequence[Bin]) -> str:
    """Share correct over the engine's confidence, with Wilson intervals; the diagonal would be a calibrated probability."""
    marks = [line(right_of(0), up(0), right_of(1), up(1), "diagonal")]
    for one in bins:
        x = right_of(one.confidence)
        interval = one.interval or Interval(one.correct, one.correct)
        marks.append(line(x, up(interval.low), x, up(interval.high), "interval"))
        marks.append(
            f'<circle class="dot" cx="{x:.1f}" cy="{up(one.correct):.1f}" r="5"><title>{one.answers} answers</title></circle>'
        )
    return square("Reliability", "confidence (score of the best paper)", "share correct", marks)


def right_of(value: float) -> float:
    return MARGIN + value * SIDE


def up(value: float) -> float:
    return 20 + (1 - value) * SIDE


def square(title: str, x_name: str, y_name: str, marks: Iterable[str]) -> str:
    """Two axes from 0 to 1."""
    grid = []
    for step in range(5):
        share = step / 4
        grid += [
            line(right_of(share), up(0), right_of(share), up(1), "grid"),
            line(right_of(0), up(share), right_of(1), up(share), "grid"),
        ]
        grid.append(text(right_of(share), up(0) + 16, f"{share:g}", "middle", "faint"))
        grid.append(text(MARGIN - 8, up(share) + 4, f"{share:g}", "end", "faint"))
    middle = up(0.5)
    names = [
        text(right_of(0.5), up(0) + 36, x_name, "middle"),
        f'<text transform="rotate(-90 12 {middle})" x="12" y="{middle}" text-anchor="middle">{escape(y_name)}</text>',
    ]
    return svg(title, SIDE + 2 * MARGIN - 20, SIDE + 66, [*grid, *names, *marks])


def svg(title: str, width: float, height: float, marks: Iterable[str]) -> str:
    """One picture, with its name for those who cannot see it."""
    name = escape(title, quote=True)
    return (
        f'<svg role="img" aria-label="{name}" viewBox="0 0 {width:g} {height:g}" width="{width:g}" xmlns="http://www.w3.org/2000/svg">'
        f"{''.join(marks)}</svg>"
    )


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def text(x: float, y: float, said: str, anchor: str, kind: str = "") -> str:
    """`anchor` is start, middle or end."""
    of_kind = f' class="{kind}"' if kind else ""
    return f'<text{of_kind} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(said)}</text>'

"""Drawings of results as SVG text: one element that stands in a page, or alone in a file.

matplotlib draws, and what it writes is then made fit to live with other drawings on a page: identifiers are prefixed
with the drawing's own name, colours become variables that follow a light or dark surrounding, and title and description
are put in for those who hear the page. Series differ in marker and dash too, so that a print without colour can be
read. The same values give the same bytes: identifiers are salted with a constant and no date is written.

Everything here raises `MissingPlotsError` where matplotlib, the extra `plots`, is not installed.
"""

import io
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal
from xml.etree import ElementTree as ET

from llmshed.errors import ExitCode, LlmshedError
from llmshed.rendering.plain import readable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Points = Sequence[tuple[float, float]]
Axis = Literal["linear", "log"]

_WIDTH_INCHES = 7.2
_HEIGHT_INCHES = 3.6
_BAR_INCHES = 0.34
"""Height of one row of bars."""
_INK, _GRID = "#000001", "#000002"
"""Colours that matplotlib is given; each becomes a variable of the surrounding style."""
_SERIES = tuple(f"#0001{number:02x}" for number in range(8))
_MARKERS = "osD^vPX*"
_DASHES: tuple[str | tuple[int, tuple[int, ...]], ...] = (
    "solid",
    (0, (6, 2)),
    (0, (2, 2)),
    (0, (6, 2, 2, 2)),
    (0, (8, 3)),
    (0, (1, 1)),
    (0, (4, 1, 1, 1, 1, 1)),
    (0, (3, 3)),
)
_HATCHES = ("", "//", "--", "\\\\", "||", "xx", "++", "/")
_LIGHT = ("#1f2328", "#d0d7de", "#0072b2", "#b34700", "#00735c", "#9c4f86", "#806600", "#2b6f9e", "#a02020", "#555555")
_DARK = ("#e6edf3", "#3d444d", "#6cb8f0", "#ff9d5c", "#4fd1ad", "#e39cc8", "#e5c84b", "#9ad0f5", "#ff8f8f", "#b8b8b8")
"""Ink, grid and eight series. Hues after Okabe and Ito, told apart by most people who see fewer colours; darkened or
lightened until each has a contrast of at least 4.5 to 1 against its background."""
_NAMES = ("ink", "grid", *(f"series-{number}" for number in range(8)))


class MissingPlotsError(LlmshedError):
    """Drawings were asked for and matplotlib is not installed."""

    exit_code = ExitCode.UNAVAILABLE


@dataclass(frozen=True, slots=True)
class Caption:
    """What a drawing says in words.

    Args:
        name: unique among the drawings of one page, `[a-z-]+`; identifiers begin with it.
        title: what is shown, in a few words.
        description: what a person who does not see it should know.
        x_label: quantity and unit along the horizontal axis.
        y_label: the same for the vertical one; empty where rows have names.
    """

    name: str
    title: str
    description: str
    x_label: str
    y_label: str = ""


def curve(caption: Caption, series: Mapping[str, Points], x_axis: Axis = "linear", y_most: float | None = None) -> str:
    """Return lines through points, one for each label, as an SVG element.

    Args:
        caption: the words.
        series: points by label, in order of x; a point that is not finite, and on a logarithmic axis one that is not
            above 0, leaves a gap.
        x_axis: `log` where x spans orders of magnitude; its marks are then the values of x themselves if they are few.
        y_most: upper end of the vertical axis, which begins at 0; None for a little above the highest point.

    Raises:
        MissingPlotsError: matplotlib is not installed.
    """
    with _drawing(_HEIGHT_INCHES) as (figure, axes):
        for number, (label, points) in enumerate(series.items()):
            place = number % len(_SERIES)
            axes.plot(
                [x if _shown(x, x_axis) else math.nan for x, _ in points],
                [y if math.isfinite(y) else math.nan for _, y in points],
                color=_SERIES[place],
                linestyle=_DASHES[place],
                marker=_MARKERS[place] if len(points) <= _MOST_MARKED else None,
                markersize=5,
                linewidth=1.6,
                label=_legend_label(label),
            )
        _scale(axes, series, x_axis, y_most)
        _name_axes(axes, caption)
        axes.grid(visible=True, color=_GRID, linewidth=0.6)
        _legend(axes, len(series))
        return _finished(figure, caption)


def bars(caption: Caption, rows: Mapping[str, Mapping[str, float]]) -> str:
    """Return one stacked horizontal bar for each row, as an SVG element.

    Args:
        caption: the words.
        rows: by the row's name, the length of each part by the part's label; parts that a row lacks are 0.

    Raises:
        MissingPlotsError: matplotlib is not installed.
    """
    labels = list(dict.fromkeys(label for parts in rows.values() for label in parts))
    with _drawing(1.1 + _BAR_INCHES * max(len(rows), 1)) as (figure, axes):
        places = range(len(rows))
        ends = [0.0] * len(rows)
        for number, label in enumerate(labels):
            widths = [parts.get(label, 0.0) for parts in rows.values()]
            place = number % len(_SERIES)
            axes.barh(
                places,
                widths,
                left=ends,
                height=0.66,
                color=_SERIES[place],
                edgecolor=_GRID,
                linewidth=0.6,
                hatch=_HATCHES[place],
                label=_legend_label(label),
            )
            ends = [end + width for end, width in zip(ends, widths, strict=True)]
        axes.set_yticks(list(places), [readable(name) for name in rows])
        axes.invert_yaxis()
        axes.set_xlim(0, max(ends, default=0.0) * 1.02 or 1.0)
        _name_axes(axes, caption)
        axes.grid(visible=True, axis="x", color=_GRID, linewidth=0.6)
        _legend(axes, len(labels))
        return _finished(figure, caption)


_MOST_MARKED = 24
"""Points of a line that still get a marker each."""
_MOST_TICKS = 8


@contextmanager
def _drawing(height_inches: float) -> "Iterator[tuple[Figure, Axes]]":
    """Give an empty drawing; settings of matplotlib hold inside only, and no display is looked for."""
    try:
        import matplotlib as mpl  # noqa: PLC0415 - an extra, and a second of start
        from matplotlib.figure import Figure  # noqa: PLC0415 - as above
    except ImportError:
        raise MissingPlotsError("drawings need matplotlib: pip install 'llmshed[plots]'") from None
    settings: dict[Any, Any] = {
        "svg.hashsalt": "llmshed",
        "svg.fonttype": "none",  # text stays text: it can be read out, searched and scaled
        "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib, so that measures are the same everywhere
        "font.size": 9,
        "text.parse_math": False,  # a dollar sign in a name is a dollar sign
        "text.color": _INK,
        "axes.labelcolor": _INK,
        "axes.edgecolor": _INK,
        "xtick.color": _INK,
        "ytick.color": _INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "hatch.color": _GRID,
        "hatch.linewidth": 0.8,
    }
    # A name may hold letters that the font for measuring lacks; the reader's own font shows them.
    with mpl.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(figsize=(_WIDTH_INCHES, height_inches), layout="constrained")
        figure.patch.set_visible(False)
        axes = figure.add_subplot()
        axes.patch.set_visible(False)
        yield figure, axes


def _shown(x: float, axis: Axis) -> bool:
    return math.isfinite(x) and (axis == "linear" or x > 0)


def _scale(axes: "Axes", series: Mapping[str, Points], x_axis: Axis, y_most: float | None) -> None:
    if x_axis == "log":
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        values = sorted({x for points in series.values() for x, _ in points if _shown(x, x_axis)})
        if 0 < len(values) <= _MOST_TICKS:
            axes.set_xticks(values, [f"{value:g}" for value in values])
            axes.set_xticks([], minor=True)
    heights = [y for points in series.values() for _, y in points if math.isfinite(y)]
    axes.set_ylim(0, (max(heights, default=0.0) * 1.06 or 1.0) if y_most is None else y_most)


def _name_axes(axes: "Axes", caption: Caption) -> None:
    axes.set_xlabel(readable(caption.x_label))
    if caption.y_label:
        axes.set_ylabel(readable(caption.y_label))


def _legend(axes: "Axes", entries: int) -> None:
    if entries > 1:
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, handlelength=3.2)


def _legend_label(label: str) -> str:
    """Return a label that matplotlib shows: it leaves out those that begin with an underscore."""
    text = readable(label)
    return f" {text}" if text.startswith("_") else text


def _finished(figure: "Figure", caption: Caption) -> str:
    """Write the drawing and make it fit to live on a page."""
    written = io.StringIO()
    figure.savefig(written, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    drawn = ET.fromstring(written.getvalue())  # noqa: S314 - matplotlib wrote it just now
    name, size = caption.name, [float(figure.get_figwidth() * 72), float(figure.get_figheight() * 72)]
    root = ET.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "class": "plot",
            "role": "img",
            "aria-labelledby": f"{name}-title {name}-description",
            "viewBox": f"0 0 {size[0]:g} {size[1]:g}",
            "width": f"{size[0]:g}",
            "height": f"{size[1]:g}",
        },
    )
    ET.SubElement(root, "title", {"id": f"{name}-title"}).text = readable(caption.title)
    ET.SubElement(root, "desc", {"id": f"{name}-description"}).text = readable(caption.description)
    ET.SubElement(root, "style").text = _STYLE
    root.extend(child for child in drawn if _local(child.tag) in {"g", "defs"} and not _styles(child))
    for element in root.iter():
        element.tag = _local(element.tag)
        element.attrib = {_local(key): _own(name, _local(key), value) for key, value in element.attrib.items()}
        element.tail = None
        if element.text is not None and not element.text.strip():
            element.text = None
    ET.indent(root, space="")
    return ET.tostring(root, encoding="unicode") + "\n"


def _styles(element: ET.Element) -> bool:
    """Say whether an element only holds matplotlib's rules for every element of the document, our page's included."""
    return all(_local(child.tag) == "style" for child in element)


def _local(name: str) -> str:
    """Return a name without its namespace: HTML knows SVG's elements, and SVG 2 its links, without."""
    return name.rpartition("}")[2]


def _own(name: str, key: str, value: str) -> str:
    """Return an attribute with the drawing's own identifiers and variable colours."""
    if key == "id" and not value.startswith(f"{name}-"):
        return f"{name}-{value}"
    if key == "href":
        return f"#{name}-{value.removeprefix('#')}"
    if key == "d":
        return value.replace("\n", "").rstrip()
    value = value.replace("url(#", f"url(#{name}-")
    if key in {"style", "fill", "stroke"}:
        value = value.replace("'DejaVu Sans', ", "").replace("'DejaVu Sans'", "sans-serif")
        for colour, given, light in zip(_NAMES, (_INK, _GRID, *_SERIES), _LIGHT, strict=True):
            value = value.replace(given, f"var(--{colour}, {light})")
    return value


def _variables(colours: Sequence[str]) -> str:
    return ";".join(f"--{name}:{colour}" for name, colour in zip(_NAMES, colours, strict=True))


_STYLE = (
    f".plot{{{_variables(_LIGHT)};stroke-linejoin:round;font-family:sans-serif}}"
    f"@media screen and (prefers-color-scheme:dark){{.plot{{{_variables(_DARK)}}}}}"
)

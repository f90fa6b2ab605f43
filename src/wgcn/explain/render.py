"""Explanations for people: as text for a terminal, in colour or not, and as one HTML page.

Texts, words and labels may come from anyone. In a terminal, no character of theirs is a control sequence; in a page,
none is markup. A page holds no script and asks for nothing from elsewhere.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np

from wgcn.explain.explanation import Explanation
from wgcn.text.tokenize import unspaced

_FOR, _AGAINST = 10, 5  # terms that are listed
_NAMED = 3  # neighbours that are shown of a term
_UNKNOWN = 20  # unknown words that are listed
_SMALLEST = 5e-4  # what is smaller is 0.000 and left out
_LEVELS = 4  # of shading
_SUM = "all terms and bias"
# Backgrounds of 256 colours, from faint to strong: blue speaks for the class, orange against it. The words are black.
_BLUE, _ORANGE = (189, 153, 111, 75), (230, 223, 216, 209)
_JOINERS = "\u200c\u200d"  # they stand inside words of some scripts and do no harm


class _Row(NamedTuple):
    """A term in the table of an explanation; the parts sum to the contribution."""

    term: str
    contribution: float
    own: float | None  # None if the model has not kept it
    named: list[tuple[str, float]]
    others: float


def harmless(text: str, line_breaks: bool = False) -> str:
    r"""Write control characters, direction marks and the like as escapes, so that they are seen and do nothing.

    Examples
    --------
    >>> print(harmless("a\x1b[31m b\u202e"))
    a\x1b[31m b\u202e
    """
    kept = "\n\t" if line_breaks else ""
    return "".join(c if c.isprintable() or c in kept else _written(c) for c in text)


def _written(character: str) -> str:
    if character in _JOINERS:
        return character
    if unicodedata.category(character) == "Zs":
        return " "
    return character.encode("unicode_escape").decode()


def find_tokens(text: str, tokens: Sequence[str]) -> list[tuple[int, int]] | None:
    """Return where each token begins and ends in a text, or None if one is not there: a tokeniser may change words.

    Tokens follow each other, but those of `wgcn.text.tokenize.characters` overlap.
    """
    folded, places = text.lower(), range(len(text) + 1)
    if len(folded) != len(text):  # some letters become two
        pieces = [character.lower() for character in text]
        folded = "".join(pieces)
        places = [place for place, piece in enumerate(pieces) for _ in piece] + [len(text)]  # type: ignore[assignment]
    folded = folded.replace("\u2019", "'")
    found, begin, end, unit = [], 0, 0, unspaced()[1]
    for token in tokens:
        first = unit.match(folded, begin, end)  # of the token before
        if first and end < first.end() + len(token) and folded.startswith(token, first.end()):
            begin = first.end()
        else:
            begin = folded.find(token, end)
        if begin < 0:
            return None
        end = begin + len(token)
        found.append((places[begin], places[end - 1] + 1 if token else places[begin]))
    return found


def _pieces(explanation: Explanation, place: int) -> Iterator[tuple[str, float]]:
    """Yield the text in pieces, each with its part in the score of a class: words, and 0 for what is between them."""
    shares, spans = explanation.shares(explanation.classes[place]), find_tokens(explanation.text, explanation.tokens)
    if spans is None:
        for token, share in zip(explanation.tokens, shares, strict=True):
            yield from ((token, float(share)), (" ", 0.0))
        return
    cuts = sorted({0, len(explanation.text), *chain.from_iterable(spans)})
    parts = dict.fromkeys(cuts, 0.0)  # of the piece that begins there; where tokens overlap, it is of both
    for (begin, end), share in zip(spans, shares, strict=True):
        for here, there in pairwise(cuts[bisect_left(cuts, begin) : bisect_left(cuts, end) + 1]):
            parts[here] += float(share) * (there - here) / (end - begin)
    yield from ((explanation.text[here:there], parts[here]) for here, there in pairwise(cuts))


def pieces_of(explanation: Explanation, place: int) -> Iterator[tuple[str, float, int]]:
    """Yield the pieces of a text with their part and a level of shading, below 0 if they speak against the class."""
    pieces = list(_pieces(explanation, place))
    largest = max((abs(share) for _, share in pieces), default=0) or 1.0
    for piece, share in pieces:
        yield piece, share, round(share / largest * _LEVELS)


def _rows(explanation: Explanation, place: int, order: Iterable[int]) -> Iterator[_Row]:
    for i in order:
        total, own, near = float(explanation.contributions[i, place]), None, list[tuple[str, float]]()
        if explanation.own is not None and explanation.neighbours is not None:
            own = float(explanation.own[i, place])
            near = [(word, float(parts[place])) for word, parts in explanation.neighbours[i]]
        shown = sorted(near, key=lambda pair: -abs(pair[1]))[:_NAMED]
        if own is not None and explanation.spelling is not None:
            shown.append(("its spelling", float(explanation.spelling[i, place])))
        others = total - (total if own is None else own) - sum(part for _, part in shown)
        yield _Row(explanation.terms[i], total, own, shown, others)


def _sides(explanation: Explanation, place: int) -> list[tuple[str, list[_Row]]]:
    """Return the terms that speak most for a class and against it."""
    column = explanation.contributions[:, place]
    order = np.argsort(-column, kind="stable").tolist()
    positive = [i for i in order if column[i] >= _SMALLEST][:_FOR]
    negative = [i for i in reversed(order) if column[i] <= -_SMALLEST][:_AGAINST]
    sides = ("for", list(_rows(explanation, place, positive))), ("against", list(_rows(explanation, place, negative)))
    return [side for side in sides if side[1]]


def _classes(explanation: Explanation, place: int) -> list[tuple[str, str]]:
    """Return named lines about the predicted class, the one that is explained, the next best, and unknown words."""
    labels = explanation.label if isinstance(explanation.label, list) else [explanation.label]
    order = [int(i) for i in np.argsort(-explanation.scores, kind="stable")]
    lines = [("predicted", ", ".join(map(str, labels)) or "no class")]
    lines.append(("explained", _with_numbers(explanation, place)))
    others = [i for i in order if i != place]
    if others:
        best = [term for term, _ in explanation.top(explanation.classes[others[0]], 3)]
        words = f"; its words: {', '.join(best)}" if best else ""
        name = "runner-up" if place == explanation.decided else "highest"
        lines.append((name, _with_numbers(explanation, others[0]) + words))
    if not explanation.terms:
        lines.append(("note", "no word of the text is known: the scores are those of the class shares in training"))
    if explanation.unknown:
        unknown, n_more = explanation.unknown[:_UNKNOWN], len(explanation.unknown) - _UNKNOWN
        lines.append(("unknown", ", ".join(unknown) + (f" and {n_more:,} more" if n_more > 0 else "")))
    return lines


def _with_numbers(explanation: Explanation, place: int) -> str:
    share, score = explanation.probabilities[place], explanation.scores[place]
    return f"{explanation.classes[place]} (probability {share:.1%}, score {score:+.3f})"


def as_text(explanation: Explanation, label: Any = None, *, colour: bool = False) -> str:
    """Return an explanation for a terminal: the text, the classes, and the terms for and against one of them.

    `label` is the class that is explained, by default the one with the highest score. With `colour`, words are shaded
    by their part in its score: blue for the class, orange against it.
    """
    place = explanation.place(label)
    pieces = [_painted(harmless(piece, True), level, colour) for piece, _, level in pieces_of(explanation, place)]
    lines = ["".join(pieces).strip("\n"), ""]
    lines += [f"{name:<10} {harmless(value)}" for name, value in _classes(explanation, place)]
    sides = _sides(explanation, place)
    name = harmless(str(explanation.classes[place]))
    terms = [harmless(row.term) for _, rows in sides for row in rows]
    width = max(map(len, [_SUM, f"against {name}"[2:], *terms]))
    for side, rows in sides:
        split, title = rows[0].own is not None, f"{side} {name}"
        lines += ["", f"{title:<{width + 2}} {'score':>8}" + f" {'itself':>8}  neighbours" * split]
        for row in rows:
            line = f"  {harmless(row.term):<{width}} {row.contribution:>+8.3f}"
            if row.own is not None:
                line += f" {row.own:>+8.3f}  {_named(row)}"
            lines.append(line.rstrip())
    sums = ("bias", explanation.bias[place]), (_SUM, explanation.scores[place])
    lines += ["", *(f"{what:<{width + 2}} {value:>+8.3f}" for what, value in sums)]
    return "\n".join(lines) + "\n"


def _painted(text: str, level: int, colour: bool) -> str:
    if level == 0 or not colour:
        return text
    background = (_BLUE if level > 0 else _ORANGE)[abs(level) - 1]
    return f"\x1b[38;5;16;48;5;{background}m{text}\x1b[0m"


def _named(row: _Row) -> str:
    """Return the neighbours of a term with their parts; what is too small to be read is left out."""
    parts = [*((harmless(word), part) for word, part in row.named), ("others", row.others)]
    return ", ".join(f"{word} {part:+.3f}" for word, part in parts if abs(part) >= _SMALLEST)


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
  color: #1a1a1a; background: #fff; }}
@media (prefers-color-scheme: dark) {{ body {{ color: #e6e6e6; background: #161616; }} }}
section {{ margin-bottom: 3rem; }}
.text {{ white-space: pre-wrap; overflow-wrap: anywhere; padding: 1rem; border: 1px solid #8886; border-radius: 6px; }}
.text span {{ border-radius: 3px; }}
{shades}
table {{ border-collapse: collapse; width: 100%; margin-top: 1rem; }}
th, td {{ text-align: left; padding: .15rem .6rem .15rem 0; border-bottom: 1px solid #8883; vertical-align: top;
  overflow-wrap: anywhere; }}
th:nth-child(2), th:nth-child(3), td:nth-child(2), td:nth-child(3) {{ text-align: right; white-space: nowrap;
  font-variant-numeric: tabular-nums; }}
dt {{ float: left; clear: left; width: 6.5rem; opacity: .7; }}
dd {{ margin: 0 0 0 6.5rem; overflow-wrap: anywhere; }}
</style>
</head>
<body>
<h1>{title}</h1>
<p>Words are shaded by their part in the score of the class that is explained:
<span class="f3">for it</span>, <span class="a3">against it</span>.
The parts and the bias sum to the score.</p>
{sections}
</body>
</html>
"""


def as_html(explanations: Iterable[Explanation], label: Any = None) -> str:
    """Return a page of explanations: the same content as `as_text`, for light and dark screens."""
    levels = range(1, _LEVELS + 1)
    kinds = ("f", "31, 119, 210"), ("a", "240, 130, 20")
    shades = (f".{kind}{i} {{ background: rgba({rgb}, {0.15 * i:.2f}); }}" for kind, rgb in kinds for i in levels)
    sections = "\n".join(_section(explanation, explanation.place(label)) for explanation in explanations)
    return _PAGE.format(title="Why these labels", shades="\n".join(shades), sections=sections)


def _html(text: object) -> str:
    """Return text that is no markup, inside a value in quotes too."""
    return escape(harmless(str(text), True), quote=True)


def _section(explanation: Explanation, place: int) -> str:
    parts = ["<section>", '<p class="text">']
    for piece, share, level in pieces_of(explanation, place):
        kind = f"{'f' if level > 0 else 'a'}{abs(level)}"
        parts.append(f'<span class="{kind}" title="{share:+.3f}">{_html(piece)}</span>' if level else _html(piece))
    parts += ["</p>", "<dl>"]
    parts += [f"<dt>{name}</dt><dd>{_html(value)}</dd>" for name, value in _classes(explanation, place)]
    parts.append("</dl>")
    for side, rows in _sides(explanation, place):
        split = rows[0].own is not None
        more = "<th>itself</th><th>neighbours</th>" if split else ""
        parts.append(f"<table><tr><th>{side} {_html(explanation.classes[place])}</th><th>score</th>{more}</tr>")
        for row in rows:
            cells = [_html(row.term), f"{row.contribution:+.3f}"]
            cells += [f"{row.own:+.3f}", _html(_named(row))] if row.own is not None else []
            parts.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
        parts.append("</table>")
    total, bias = float(explanation.scores[place]), float(explanation.bias[place])
    parts += [f"<p>bias {bias:+.3f}; {_SUM} {total:+.3f}</p>", "</section>"]
    return "".join(parts)

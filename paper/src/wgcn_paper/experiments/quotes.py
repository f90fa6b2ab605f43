"""Quotes: figures in sentences and hand-made tables of the documentation, compared with the committed runs.

``paper/results/quotes`` has one TOML file per page, with a quote per sentence::

    page = "docs/results/seeds.md"
    defaults = { table = "seeds" }          # what all recipes of the file have in common

    [[quote]]
    text = "With one wrong word in every class, wgcn loses {:.1f}, {:.1f} and {:.1f} points."
    figures = [{ row = "WGCN, seed words", minus = { row = "WGCN, one seed word of four wrong" } }]
    holds = [{ row = "WGCN, seed words", above = 70 }]

    [[exempt]]
    text = "the aim of 90 %"
    reason = "target"

`wgcn_paper.experiments.recipes` describes ``figures``: their numbers fill the slots of the text in their order. A slot
has a format of Python (``{:.1f}``), which after ``up`` rounds up (``{:up.1f}``, for "within 0.3 points"), or it is
``{:words}`` ("four") or ``{:p}`` ("p = 0.034", "p < 0.001"). A figure below 0 needs a slot with a sign, such as
``{:+.1f}``: "ahead by -0.3 points" is not stale but untrue. ``holds`` are recipes whose ``above`` or ``below`` a
sentence relies on without naming the figures. White space is free, and words of the page may be bold.

A page may have no other figure that looks measured: one with a decimal point, or of percent, points, seconds or times.
``exempt`` names the others, by their ``text``, by the ``section`` (a heading) they are in, or, with neither, the whole
page; the page "*" stands for all pages. Not looked at: parts between ``<!-- NAME -->`` and ``<!-- end -->``, which are
copies of reports, and code.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from string import Formatter
from textwrap import fill, shorten
from typing import Any

from wgcn.base.errors import InputError, WGCNError
from wgcn_paper.experiments.recipes import NUMBER, Recipe, Sources, UntrueError, figures
from wgcn_paper.experiments.results import write_if_changed

__all__ = ["Exemption", "Finding", "Outcome", "Quote", "check_quotes", "load_quotes", "pages"]

_WIDTH = 120
_SHOWN = 400  # characters of a sentence in a message
_ALL_PAGES = "*"
_RECIPES = ("figures", "holds")
_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_SLOTS = {"words": rf"(?:{'|'.join(_WORDS)}|\d+)", "p": r"p\s+[<=]\s+\d\.\d+"}
_GAP = r"(?:\*\*)?\s+(?:\*\*)?"  # between two words: white space, and the beginning or the end of something bold
_ITEM = r" *(?:[-*]|\d+\.) "  # the beginning of an item of a list
# A number with a decimal point, but not a version or date with two; or one of something that is measured.
_MEASURED = re.compile(
    r"(?<![\w.])\d[\d,]*\.\d+(?!\.?\d)|(?<![\w.])\d[\d,]*(?=\s+(?:%|percent\b|points?\b|s\b|seconds?\b|ms\b|times\b))"
)
_COPIED = re.compile(r"<!-- [a-z-]+ -->.*?<!-- end -->|^```.*?^```|(?<=\n\n) {4}\S.*?(?=\n\n(?! {4})|\Z)", re.S | re.M)
_CODE = re.compile(r"`[^`]*`|\]\([^)]*\)|<!--.*?-->", re.S)


@dataclass(frozen=True)
class Quote:
    """A sentence of a page with slots for figures.

    Parameters
    ----------
    page : str
        Path of the page in the checkout.
    text : str
        The sentence, with slots.
    figures : sequence of Recipe
        What fills the slots.
    holds : sequence of Recipe
        What else must be true.
    """

    page: str
    text: str
    figures: Sequence[Recipe] = ()
    holds: Sequence[Recipe] = ()

    def expected(self, sources: Sources) -> list[str]:
        """Return what stands in the slots according to the runs."""
        for recipe in self.holds:
            figures(recipe, sources)
        values = [value for recipe in self.figures for value in figures(recipe, sources)]
        formats = [spec for _, spec in _slots(self.text) if spec is not None]
        if len(values) != len(formats):
            raise InputError(f"{len(values)} figures do not fill {len(formats)} slots")
        return [_shown(value, spec) for value, spec in zip(values, formats, strict=True)]

    def filled(self, found: Sequence[str]) -> str:
        """Return the sentence with these figures."""
        left = iter(found)
        parts = (literal + ("" if spec is None else next(left)) for literal, spec in _slots(self.text))
        return " ".join("".join(parts).split())

    @property
    def pattern(self) -> re.Pattern[str]:
        """The sentence with any figures, each of which is a group."""
        parts = []
        for literal, spec in _slots(self.text.strip()):
            parts.append(re.escape(re.sub(r"\s+", " ", literal)).replace(r"\ ", _GAP))
            if spec is not None:
                parts.append(f"(?:\\*\\*)?({_SLOTS.get(spec, NUMBER)})(?:\\*\\*)?")
        return re.compile(r"(?<![\w.])" + "".join(parts) + r"(?!\w)")


@dataclass(frozen=True)
class Exemption:
    """Figures of a page that come from no run, and why."""

    page: str
    reason: str
    text: str | None = None
    section: str | None = None

    def spans(self, page: str) -> Iterator[tuple[int, int]]:
        """Return where they are in the text of a page."""
        if self.section is not None:
            level = len(self.section) - len(self.section.lstrip("#"))
            pattern = rf"^{re.escape(self.section)}$.*?(?=^#{{1,{level}}} |\Z)"
            yield from (found.span() for found in re.finditer(pattern, page, re.S | re.M))
        elif self.text is not None:
            yield from (found.span() for found in re.finditer(Quote(self.page, _literal(self.text)).pattern, page))
        else:
            yield 0, len(page)


@dataclass(frozen=True)
class Finding:
    """Something that is wrong with a page."""

    page: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.message}"


@dataclass
class Outcome:
    """What was compared, what is wrong, and which pages were rewritten."""

    n_figures: int = 0
    n_pages: int = 0
    findings: list[Finding] = field(default_factory=list)
    rewritten: list[str] = field(default_factory=list)


def _literal(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _slots(text: str) -> list[tuple[str, str | None]]:
    """Return the parts of a text, each with the format of the slot behind it, or None at the end."""
    return [(literal, spec) for literal, _, spec, _ in Formatter().parse(text)]


def _shown(value: float, spec: str) -> str:
    """Return a figure as a slot shows it."""
    if spec == "words":
        return _WORDS[round(value)] if round(value) < len(_WORDS) else str(round(value))
    if spec == "p":
        return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"
    if spec.startswith("up"):
        spec = spec.removeprefix("up")
        unit = 10.0 ** -int(spec.strip(".f") or 0)
        value = unit * ceil(value / unit - 1e-6)  # what is round already stays
    try:
        text = f"{value:{spec}}"
    except ValueError as error:
        raise InputError(f"{{:{spec}}} is no format of a number") from error
    if not text.strip("-0."):  # a minus before nothing
        text = text.replace("-", "+" if spec.startswith("+") else "")
    if text.startswith("-") and not spec.startswith("+"):
        raise UntrueError(f"the figure is {text}")
    return text


def pages(root: Path) -> list[str]:
    """Return the pages of a checkout whose figures are looked at."""
    found = [root / "README.md", *sorted(root.glob("docs/*.md")), *sorted(root.glob("docs/results/*.md"))]
    return [path.relative_to(root).as_posix() for path in found if path.is_file()]


def load_quotes(folder: Path) -> tuple[list[Quote], list[Exemption]]:
    """Read the files of quotes in a folder."""
    quotes: list[Quote] = []
    exemptions: list[Exemption] = []
    for path in sorted(folder.glob("*.toml")):
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
            page, defaults = content["page"], content.get("defaults", {})
            for entry in content.get("quote", []):
                made = [[_with_defaults(each, defaults) for each in entry.pop(key, [])] for key in _RECIPES]
                text = entry.pop("text")
                if entry:
                    raise TypeError(f"a quote has no {', '.join(entry)}")
                quotes.append(Quote(page, text, *made))
            exemptions += [Exemption(page, **entry) for entry in content.get("exempt", [])]
        except (OSError, tomllib.TOMLDecodeError, KeyError, TypeError) as error:
            reason = f"it lacks {error}" if isinstance(error, KeyError) else error
            raise InputError(f"{path.name} is no file of quotes: {reason}.") from error
    return quotes, exemptions


def _with_defaults(recipe: dict[str, Any], defaults: dict[str, Any]) -> Recipe:
    return recipe if "report" in recipe or "bench" in recipe else {**defaults, **recipe}


def check_quotes(root: Path, *, fix: bool = False) -> Outcome:
    """Compare the figures in the prose of a checkout with its runs.

    Parameters
    ----------
    root : path
        The folder of the checkout.
    fix : bool
        Write the figures of the runs into sentences that have others. Sentences that are untrue are left alone.

    Returns
    -------
    Outcome
        After a fix, what is still wrong.
    """
    folder = root / "paper" / "results" / "quotes"
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder}. Give the folder of a checkout.")
    quotes, exemptions = load_quotes(folder)
    sources = Sources(root)
    outcome = Outcome()
    known = pages(root)
    for page in known:
        own = [quote for quote in quotes if quote.page == page]
        exempt = [each for each in exemptions if each.page in (page, _ALL_PAGES)]
        _check_page(root / page, page, own, exempt, sources, outcome, fix)
    named = {quote.page for quote in quotes} | {each.page for each in exemptions}
    for page in sorted(named - {*known, _ALL_PAGES}):
        outcome.findings.append(Finding(page, 1, "has quotes, but there is no such page"))
    return outcome


def _check_page(
    path: Path, page: str, quotes: list[Quote], exempt: list[Exemption], sources: Sources, outcome: Outcome, fix: bool
) -> None:
    """Compare one page, and add what is wrong with it to the outcome."""
    text = path.read_text(encoding="utf-8")
    visible = _blanked(text, [found.span() for found in _COPIED.finditer(text)])
    covered: list[tuple[int, int]] = []
    changes: dict[tuple[int, int], str] = {}
    for quote in quotes:
        found, expected, problem = _compare(quote, visible, sources)
        line = 1 if found is None else text.count("\n", 0, found.start()) + 1
        if found is not None:
            covered.append(found.span())
            outcome.n_figures += len(found.groups())
            stale = {found.span(i + 1): shown for i, shown in enumerate(expected) if found[i + 1] != shown}
            if fix and stale:
                changes |= stale
                problem = ""
        if problem:
            outcome.findings.append(Finding(page, line, problem))
    outcome.n_pages += bool(quotes)
    outcome.findings += _unquoted(page, visible, covered, exempt)
    if changes:
        write_if_changed(path, _rewritten(text, changes))
        outcome.rewritten.append(page)


def _compare(quote: Quote, page: str, sources: Sources) -> tuple[re.Match[str] | None, list[str], str]:
    """Return where a quote is on a page, the figures it should have, and what is wrong with it."""
    places = list(quote.pattern.finditer(page))
    first = places[0] if places else None
    said = shorten(first[0] if first else quote.text, _SHOWN, placeholder=" ...")
    try:
        expected = quote.expected(sources)
    except UntrueError as error:
        return first, [], f"no longer true, {error}\n    page: {said}"
    except WGCNError as error:
        return first, [], f"cannot be recomputed: {error}\n    page: {said}"
    filled = shorten(quote.filled(expected), _SHOWN, placeholder=" ...")
    if first is None:
        return None, expected, f"is not on the page\n    runs: {filled}"
    found = next((place for place in places if _figures(place) == expected), first)
    if _figures(found) == expected:
        return found, list(found.groups()), ""
    if len(places) > 1:
        return found, list(found.groups()), f"stands {len(places)} times on the page, never so\n    runs: {filled}"
    pairs = zip(_figures(found), expected, strict=True)
    others = ", ".join(f"{shown} is {right}" for shown, right in pairs if shown != right)
    return found, expected, f"in the runs {others}\n    page: {said}"


def _figures(found: re.Match[str]) -> list[str]:
    """Return what a page has in the slots of a quote, with a hyphen for a minus."""
    return [" ".join(figure.replace("\u2212", "-").split()) for figure in found.groups()]


def _unquoted(
    page: str, visible: str, covered: list[tuple[int, int]], exemptions: list[Exemption]
) -> Iterator[Finding]:
    """Return the figures of a page that look measured and are in no quote, and exemptions that exempt nothing."""
    spans = list(covered)
    for each in exemptions:
        own = list(each.spans(visible))
        spans += own
        if not own and each.page != _ALL_PAGES:
            yield Finding(page, 1, f"exempt, but not on the page: {each.text or each.section}")
    prose = _blanked(visible, [*spans, *(found.span() for found in _CODE.finditer(visible))])
    lines = visible.splitlines()
    figures_of: dict[int, list[str]] = {}
    for found in _MEASURED.finditer(prose):
        figures_of.setdefault(prose.count("\n", 0, found.start()), []).append(found[0])
    for line, loose in figures_of.items():
        yield Finding(page, line + 1, f"in no quote: {', '.join(loose)}\n    page: {lines[line].strip()}")


def _blanked(text: str, spans: list[tuple[int, int]]) -> str:
    """Return a text with blanks in place of some parts; lines stay where they are."""
    for start, end in spans:
        text = text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]
    return text


def _rewritten(text: str, changes: dict[tuple[int, int], str]) -> str:
    """Return a text with some parts replaced; paragraphs that have become too wide are filled again."""
    before = set(text.splitlines())
    for (start, end), shown in sorted(changes.items(), reverse=True):
        text = text[:start] + shown + text[end:]
    wide = re.compile(rf"^(?![|#]).{{{_WIDTH + 1},}}$", re.M)
    for found in reversed([line for line in wide.finditer(text) if line[0] not in before]):
        start, end = _paragraph(text, found.start())
        text = text[:start] + _filled(text[start:end]) + text[end:]
    return text


def _paragraph(text: str, place: int) -> tuple[int, int]:
    """Return where the paragraph or item of a list begins and ends that a place is in."""
    begins = [found.start() for found in re.finditer(rf"^(?={_ITEM})|(?<=\n\n)", text, re.M)]
    start = max((begin for begin in begins if begin <= place), default=0)
    ends = [found.start() for found in re.finditer(rf"\n(?={_ITEM}|\n)|\n?\Z", text) if found.start() > place]
    return start, ends[0]


def _filled(paragraph: str) -> str:
    """Return a paragraph in lines of at most 120 characters, with its indentation."""
    indent = re.match(rf"(\s*)(?:{_ITEM})?", paragraph)
    assert indent is not None
    return fill(
        " ".join(paragraph.split()),
        _WIDTH,
        initial_indent=indent[1],
        subsequent_indent=" " * len(indent[0]),
        break_long_words=False,
        break_on_hyphens=False,
    )

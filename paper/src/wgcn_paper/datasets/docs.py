"""The docs corpus of the library as a data set of linked documents: A_dd is read from the "See Also" sections."""

import re
import textwrap
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from wgcn_paper.cache import read_cached, write_cached
from wgcn_paper.datasets import docstrings as source
from wgcn_paper.datasets.dataset import Dataset

CITED = r"(?::[\w:]+:)?`?~?[A-Za-z_][\w.]*`?"
CITATION_LINE = re.compile(rf"^({CITED}(?: *, *{CITED})*) *,? *(?::|$)", re.MULTILINE)


def docs_corpus(*, cache: bool = True) -> Dataset:
    """Return `wgcn_paper.datasets.docstrings` as a data set; a document cites what its "See Also" section lists."""
    from scipy.sparse import csr_array

    docs = source.docs_corpus(cache=cache)
    file_name = source.cache_name("docs-links")
    links = read_cached(file_name) if cache else None
    if links is None:
        links = find_links(docs.names, source.docstrings())
        if cache:
            write_cached(file_name, links)
    cells = np.array(links, dtype=np.int64).reshape(len(links), 2)
    shape = (len(docs), len(docs))
    return Dataset(
        name="docs",
        texts=docs.texts,
        features=None,
        labels=docs.labels,
        train=docs.train,
        test=docs.test,
        document_graph=csr_array((np.ones(len(cells), np.float32), (cells[:, 0], cells[:, 1])), shape=shape),
        names=docs.names,
    )


def find_links(names: Sequence[str], docstrings: Mapping[str, str]) -> list[tuple[int, int]]:
    """Return which document cites which, as sorted pairs of places in `names`."""
    index = {name: i for i, name in enumerate(names)}
    by_last_part: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        by_last_part[name.split(".")[-1]].append(name)
    links = {
        (index[name], index[cited])
        for name in names
        for entry in see_also(docstrings[name])
        if (cited := resolve(entry, name, by_last_part)) is not None and cited != name
    }
    return sorted(links)


def see_also(docstring: str) -> list[str]:
    """Return the names that the "See Also" section lists, as they are written there."""
    entries: list[str] = []
    for title, body in source.sections(docstring):
        if title.lower() == "see also":
            # Descriptions are indented and so do not match.
            for line in CITATION_LINE.findall(textwrap.dedent(body)):
                entries += [re.sub(r":[\w:]+:|[`~]", "", name).strip(" .") for name in line.split(",")]
    return entries


def resolve(entry: str, citing: str, by_last_part: Mapping[str, Sequence[str]]) -> str | None:
    """Return the document that an entry of a "See Also" section names: of several, that in the nearest package."""
    entry = re.sub(r"^np\.", "numpy.", entry)
    candidates = [name for name in by_last_part.get(entry.split(".")[-1], ()) if f".{name}".endswith(f".{entry}")]
    parts = citing.split(".")
    shared = {name: sum(a == b for a, b in zip(parts, name.split("."), strict=False)) for name in candidates}
    return max(candidates, key=lambda name: (shared[name], -name.count(".")), default=None)

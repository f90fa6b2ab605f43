"""Build the word graph of a corpus in two halves, and look at it.

Run it with:  python examples/word_graph.py
The docs corpus (2,683 docstrings with numpy 2.4, scipy 1.17 and scikit-learn 1.9) takes a few seconds the first time.
"""

from wgcn import Corpus, EdgeRules, VocabularyRules, WindowCounts, WordGraph
from wgcn_paper.datasets.docstrings import docs_corpus


def main() -> None:
    docs = docs_corpus()
    assert docs.texts is not None
    half = len(docs) // 2

    # Text to word ids. The first half chooses the vocabulary, the second is read with it.
    first = Corpus.from_texts(docs.texts[:half], rules=VocabularyRules(min_df=5))
    second = Corpus.from_texts(docs.texts[half:], vocabulary=first.vocabulary)
    print(first, second, sep="\n")

    # Exact window counts add up, so text can be counted apart or added later.
    counts = WindowCounts.from_corpus(first, window=20).merge(WindowCounts.from_corpus(second, window=20))
    print(counts)

    # Counts to a graph: normalised PMI, the 50 strongest edges per word, from either end.
    graph = WordGraph.from_counts(counts, weight="npmi", rules=EdgeRules(top_k=50))
    print(graph)
    for word in ("matrix", "random", "string"):
        print(f"{word}:", ", ".join(neighbour.word for neighbour in graph.neighbours(word, 8)))


if __name__ == "__main__":
    main()

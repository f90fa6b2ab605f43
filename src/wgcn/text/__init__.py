"""From text to word ids: tokenisers, `Vocabulary` and `Corpus`."""

from wgcn.text.ngrams import ngrams
from wgcn.text.tokenize import characters, text_gcn, words
from wgcn.text.vocabulary import Vocabulary, VocabularyRules

__all__ = ["Vocabulary", "VocabularyRules", "characters", "ngrams", "text_gcn", "words"]

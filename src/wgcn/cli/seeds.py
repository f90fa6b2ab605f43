"""wgcn seeds: what seed words stand for in texts, before a fit."""

from typing import Any

from wgcn.cli import options
from wgcn.cli.console import stages, warn


@options.reads_files
def seeds(
    files: options.TextFiles,
    reading: dict[str, Any],
    *,
    seed: options.Seed = None,
    seeds_file: options.SeedsFile = None,
    tokenizer: options.TokenizerName = "words",
    stop_words: options.StopWords = None,
) -> None:
    """Show what seed words stand for: texts that contain them, words they draw in, and their agreement.

    Exclude a word with a minus. Example: wgcn seeds texts.csv --seed "sport=game,team,-card" --seed politics
    """
    from wgcn.estimators.text import WGCNTextClassifier
    from wgcn.semi.seed_words import problems, read_seed_options, shown_shares, shown_words

    given = read_seed_options(seed, seeds_file)
    estimator = WGCNTextClassifier(tokenizer=tokenizer, stop_words=options.read_stop_words(stop_words) or None)
    with stages():
        found = estimator.check_seeds(options.read_files(files, reading), given)
    print(shown_words(found.words))
    print(f"\n{found.trust.told()} {shown_shares(found.shares)}")
    for problem in filter(None, [*problems(found.words), found.trust.doubt()]):
        warn(problem)

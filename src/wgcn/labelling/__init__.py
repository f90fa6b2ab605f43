"""Labels, and the labelling loop: seed words, explanations, what to label next, wrong labels, answers to trust.

The functions here work on arrays, sparse matrices and callbacks and know neither models nor estimators, whose methods
call them.
"""

"""The labelling loop: start from seed words, see why, choose what to label next, find wrong labels, trust an answer.

The functions here work on arrays, sparse matrices and callbacks and know neither models nor estimators, whose methods
call them.
"""

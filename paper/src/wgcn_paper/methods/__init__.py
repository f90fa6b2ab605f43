"""Methods that can be compared with each other: one file each, one interface, one registry."""

from wgcn_paper.methods.baseline import Baseline, Fit, make_baseline, method_names, register_method

__all__ = ["Baseline", "Fit", "make_baseline", "method_names", "register_method"]

"""The experiments of the paper: data sets, methods, protocols, tables and figures."""

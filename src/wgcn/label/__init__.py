"""`wgcn label`: a page on which texts are labelled."""

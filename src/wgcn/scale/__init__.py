"""Text that does not fit into memory: counted and fitted from shards, on one machine or on a Dask cluster."""

"""Saved folders and their checked contents."""

"""Files of rows: read in any format, and written as tables."""

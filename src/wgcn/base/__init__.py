"""What everything else stands on: errors, progress, threads, files, products of matrices, limits of memory."""

"""Learning without labels: the teacher, its space and neighbours, and seed words."""

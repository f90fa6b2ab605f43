"""A fitted model: from text to weighted terms, to rows of a table, to scores. Needs numpy alone."""

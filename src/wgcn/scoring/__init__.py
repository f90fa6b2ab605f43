"""From weighted terms to rows of a table, to scores and probabilities. Needs numpy alone."""

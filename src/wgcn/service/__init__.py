"""Models in other systems: exported for the browser."""

"""Models in other systems: as a service (`wgcn serve`), and exported for the browser (`wgcn export`)."""

"""Models in other systems and on screens: `wgcn serve`, `wgcn label`, and `wgcn export` for the browser."""

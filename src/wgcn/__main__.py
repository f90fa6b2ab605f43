"""`python -m wgcn` is the `wgcn` command."""

from wgcn.cli import main

if __name__ == "__main__":
    main()

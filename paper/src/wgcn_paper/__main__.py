"""python -m wgcn_paper."""

from wgcn_paper.cli import main

if __name__ == "__main__":
    main()

"""Builds the site: `python -m website [FOLDER]`. Prints where it is, or what is wrong with the pages."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path


def main(folder: str = "site") -> int:
    # Material for MkDocs warns of MkDocs 2; constraints.txt pins MkDocs 1.
    os.environ["NO_MKDOCS_2_WARNING"] = "1"
    from mkdocs.commands.build import build
    from mkdocs.config import load_config
    from mkdocs.exceptions import Abort

    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.WARNING)
    config = load_config("mkdocs.yml", site_dir=folder, strict=True)
    try:
        build(config)
    except Abort as abort:
        print(f"error: {abort}", file=sys.stderr)
        return 1
    pages = len(list(Path(config.site_dir).rglob("index.html")))
    print(f"Built {pages} pages: {folder}/index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""Write docs/reference/*.md from the code, and parts of two other pages from tables: ``make docs``.

python docs/generate.py            writes each page
python docs/generate.py --check    compares, and fails if a page is out of date
"""

import sys
from pathlib import Path

# The importers of this checkout need not be installed: without their packages.
sys.path[:0] = map(str, (Path(__file__).parents[1] / "importers").iterdir())

import api_reference  # noqa: E402
import declarations_table  # noqa: E402
import house  # noqa: E402
import packer_toml_reference  # noqa: E402

FOLDER = Path(__file__).parent / "reference"
PAGES = {
    house.PAGE: house.page,
    Path(__file__).parent / "declarations.md": declarations_table.page,
    FOLDER / "api.md": api_reference.page,
    FOLDER / "packer-toml.md": packer_toml_reference.page,
}


def main() -> None:
    """Write or compare all pages."""
    check = sys.argv[1:] == ["--check"]
    for path, page in PAGES.items():
        text = page()
        if not check:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            name = path.relative_to(FOLDER.parents[1])
            sys.exit(f"{name}: out of date; run `make docs` and commit it")


if __name__ == "__main__":
    main()

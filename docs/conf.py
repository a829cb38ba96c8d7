"""How Sphinx makes the site out of Markdown pages and docstrings: `make docs`.

The sources are the whole repository, so that a link means the same file here as where the pages are read as files.
"""

import re
import sys
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

project = html_title = "midstream"
author = "the authors of midstream"
html_theme = "furo"
html_show_copyright = False
html_extra_path = ["site"]
root_doc = "docs/index"
include_patterns = ["docs/**.md", "benchmarks/*.md", "CONTRIBUTING.md", "SECURITY.md"]
exclude_patterns = [".*", "build", "dist", "src", "tests", "scripts"]
extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_heading_anchors = 4
# Docstrings are plain text with code in single backticks, as Markdown has it.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "exclude-members": "to_json, from_json"}
# Two classes may have one name; a reference by name alone means the nearer one.
suppress_warnings = ["ref.python"]

CODE = re.compile(r"(`+[^`]*`+)")
ANCHOR = re.compile(r'<a id="(\w+)"></a>')


def plain(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Escape the markup of reStructuredText in a docstring, outside of code."""
    for at, line in enumerate(lines):
        pieces = CODE.split(line)
        pieces[::2] = [re.sub(r"([|*])", r"\\\1", piece) for piece in pieces[::2]]
        lines[at] = "".join(pieces)


def anchored(app: Sphinx, page: str, source: list[str]) -> None:
    """Turn HTML's anchors into targets that links are checked against."""
    source[0] = ANCHOR.sub(r"(\1)=", source[0])


def with_commands(app: Sphinx, page: str, source: list[str]) -> None:
    """Put the reference of the command line into its page."""
    if page == "docs/command_line":
        from docs.command_reference import MARK, reference

        source[0] = source[0].replace(MARK, reference())


def setup(app: Sphinx) -> None:
    """Register the changes that Sphinx makes to docstrings and pages."""
    app.connect("autodoc-process-docstring", plain)
    app.connect("source-read", anchored)
    app.connect("source-read", with_commands)

"""Sphinx configuration of the site; `make docs` builds it."""

import hashlib
import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

# Tutorials call the command of this environment.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

from airpass import __version__  # noqa: E402

project = "airpass"
author = "The AirPASS developers"
copyright = author  # noqa: A001 - the name that Sphinx reads
version = release = __version__

extensions = [
    "airpass_gallery",
    "airpass_links",
    "airpass_pages",
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_click",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinxcontrib.bibtex",
    "sphinxcontrib.katex",
]
exclude_patterns = ["_build", "_extensions", "data", "images"]
templates_path = ["_templates"]

html_theme = "furo"
html_title = f"airpass {release}"
html_static_path = ["_static"]
html_css_files = ["airpass.css"]
html_favicon = "../src/airpass/explore/page/icon.svg"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0072B2", "color-brand-content": "#0072B2"},
    "dark_css_variables": {"color-brand-primary": "#56B4E9", "color-brand-content": "#56B4E9"},
}
smartquotes = False  # "--json" in help texts
html_copy_source = False
html_show_sphinx = False

# KaTeX: scripts from its extension, styles and fonts from _static, nothing from elsewhere.
katex_css_path = "katex/katex.min.css"

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
# Tutorials are run again if the package has changed.
sources = sorted((HERE.parent / "src").rglob("*.py"))
digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
nb_execution_mode = os.environ.get("AIRPASS_DOCS_EXECUTE", "cache")  # "off" leaves tutorials without results
nb_execution_cache_path = str(HERE.parent / "runs" / "docs-cache" / digest)
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True

copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True
copybutton_line_continuation_character = "\\"

bibtex_bibfiles = ["references.bib"]
bibtex_default_style = "unsrt"

autosummary_generate = True
# Names that differ only in case would share a file on some systems.
autosummary_filename_map = {
    f"airpass.{name}": f"airpass.{name}-class"
    for name in ("Certificate", "Design", "Life", "Tolerance", "Track")
}
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autoclass_content = "class"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"

default_role = "code"  # of `text` in docstrings

# Every reference must resolve, except to types of other packages, whose pages are not on this machine.
nitpicky = True
nitpick_ignore_regex = [
    (r"py:.*", re.compile(name).pattern)
    for name in (
        r"(numpy|np|numba|torch|pyarrow|pandas|matplotlib|click|collections|pathlib|typing|types|enum|abc|nn)\b.*",
        r"(Path|Any|Callable|Iterable|Iterator|Mapping|Sequence|NDArray|ArrayLike|Self|Literal|Generator)",
        r"(int|float|str|bool|bytes|complex|object|tuple|list|dict|set|None|type|property|optional)(\[.*)?",
    )
]

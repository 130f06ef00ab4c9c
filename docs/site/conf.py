"""Sphinx's settings. `build.py` builds; the pages are those that `sources.py` has written."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import btdagg
import markup
from finish import finish_pages
from llms import write_llms
from sources import REPOSITORY, SITE

project = "btdagg"
version = release = btdagg.__version__
copyright = "the authors of btdagg, Apache-2.0"
root_doc = "index"
nitpicky = True
default_role = "code"  # see markup.py
highlight_language = "none"  # of blocks of output
smartquotes = False  # --report stays what it is

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
]

# Pages
myst_heading_anchors = 4  # those that GitHub makes
myst_enable_extensions = ["dollarmath"]
myst_fence_as_directive = ["math"]
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300

# Docstrings. They say types in words, so signatures need none; they are shorter without.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False

html_theme = "furo"
pygments_dark_style = "github-dark"
html_title = f"btdagg {version}"
html_baseurl = SITE
html_static_path = [str(Path(__file__).parent / "static")]
html_css_files = ["site.css"]
html_copy_source = False
html_math_renderer = "drawn"
copybutton_selector = "div:not(.highlight-none, .output) > div.highlight > pre"
html_theme_options = {
    "footer_icons": [{"name": "GitHub", "url": REPOSITORY, "html": "GitHub", "class": ""}],
}


def setup(app):
    markup.setup(app)
    app.connect("build-finished", write_llms)
    app.connect("build-finished", finish_pages)

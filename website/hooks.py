"""The hooks of MkDocs: files outside docs/ as pages, links into the repository, texts for language models."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page

from website import llms, page_source

#: Where the repository is, unless pyproject.toml says so.
REPOSITORY: Final = "https://github.com/dittybag/dittybag"

_built: dict[str, Navigation] = {}


def on_config(config: MkDocsConfig) -> None:
    """Read what pyproject.toml says, and replace folders in the navigation by their pages."""
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    urls = {name.lower(): url for name, url in project.get("urls", {}).items()}
    config.site_description = project["description"]
    config.repo_url = urls.get("repository", urls.get("source", REPOSITORY)).rstrip("/")
    config.repo_name = "Source"
    config.nav = _expand(config.nav, Path(config.docs_dir))


def _expand(nav: Any, docs: Path) -> Any:
    """Replace `Title: folder/` by the pages of the folder."""
    if isinstance(nav, str) and nav.endswith("/"):
        return [path.relative_to(docs).as_posix() for path in sorted((docs / nav).glob("*.md"))]
    if isinstance(nav, list):
        return [_expand(entry, docs) for entry in nav]
    if isinstance(nav, dict):
        return {title: _expand(entry, docs) for title, entry in nav.items()}
    return nav


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for path, name in page_source.INCLUDED.items():
        files.append(File.generated(config, name, content=Path(path).read_text()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    text = page_source.on_site(markdown, page.file.src_uri, files.src_uris, config.repo_url or REPOSITORY)
    page.meta.setdefault("description", page_source.summary(text))
    return text


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Mark short names in texts, which the style sheet keeps on one line."""
    return re.sub(r"<code>([^<\s]{1,30})</code>", r'<code class="short">\1</code>', html)


def on_env(env: Any, config: MkDocsConfig, files: Files) -> None:
    """All pages are read now: write each as Markdown beside its HTML, for programs."""
    for file in files.documentation_pages():
        if file.page and file.page.markdown:
            path = Path(config.site_dir) / file.src_uri
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file.page.markdown)


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> None:
    _built["nav"] = nav


def on_post_build(config: MkDocsConfig) -> None:
    nav, site = _built["nav"], Path(config.site_dir)
    description = config.site_description or ""
    (site / "llms.txt").write_text(llms.index(nav, config.site_name, description, config.site_url or ""))
    (site / "llms-full.txt").write_text(llms.full_text(nav, config.site_name, description))

"""Hooks of mkdocs: pages from outside of docs/, stars in the navigation, and links as they are in the repository."""

import posixpath
import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent
REPOSITORY = "https://github.com/sottodp/sotto/blob/main/"
LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
outside = []  # pages of other directories, by their path in the repository


def paths(nav):
    """All paths of a navigation, in order."""
    for item in nav:
        value = next(iter(item.values())) if isinstance(item, dict) else item
        yield from paths(value) if isinstance(value, list) else [value]


def on_config(config):
    named = set(paths(config.nav))
    outside[:] = [p.removeprefix("../") for p in named if p.startswith("../")]

    def expand(nav):
        for item in nav:
            if isinstance(item, dict):
                title, value = next(iter(item.items()))
                yield {title: list(expand(value)) if isinstance(value, list) else value.removeprefix("../")}
            elif "*" in item:
                docs = Path(config.docs_dir)
                yield from (p for p in sorted(f.relative_to(docs).as_posix() for f in docs.glob(item)) if p not in named)
            else:
                yield item

    config.nav = list(expand(config.nav))


def on_files(files, config):
    for path in outside:
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))


def on_page_markdown(markdown, page, config, files):
    """A link is to a page of the site if it has that page, else to the file in the repository."""
    here = page.file.src_uri if page.file.src_uri in outside else "docs/" + page.file.src_uri

    def lead(match):
        head, target, tail = match.groups()
        if "://" in target:
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(here), target))
        src = path if path in outside else path.removeprefix("docs/")
        if (path in outside or path.startswith("docs/")) and files.get_file_from_path(src):
            return head + posixpath.relpath(src, posixpath.dirname(page.file.src_uri) or ".") + tail
        if (ROOT / path).exists():
            return head + REPOSITORY + path + tail
        return match[0]  # mkdocs reports it

    if re.match("CHANGELOG|adr/|measurements/|.*PROOFS", page.file.src_uri):  # after what people use
        page.meta["search"] = {"boost": 0.3}
    code = False
    lines = []
    for line in markdown.split("\n"):
        code ^= line.lstrip().startswith("```")
        lines.append(line if code else LINK.sub(lead, line))
    return "\n".join(lines)


HEADING = re.compile(r"<th[^>]*>(.*?)</th>", re.DOTALL)
ROW = re.compile(r"<tr>\s*<td.*?</tr>", re.DOTALL)
CELL = re.compile(r"<td(?=[ >])")
TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
LAST = re.compile(r"<td[^>]*>((?:(?!</td>).)*)</td>\s*</tr>", re.DOTALL)
COMMAND = re.compile(r"<code>([^<]{36,})</code>")
BLOCK = re.compile(r'<div class="highlight">(<pre>.*?</pre>)</div>', re.DOTALL)


def length(html):
    """How many characters of a piece of a page a reader sees, at most."""
    return max(len(line) for line in re.sub(r"<[^>]*>", "", re.sub(r"&[^;]*;", "x", html)).split("\n"))


def on_page_content(html, page, config, files):
    """Marks for site.css: commands in tables, which may wrap; text in a last column, which needs a width; the heading of
    each cell, which stands before it where a phone shows a row as a card; blocks of sentences and not of columns, which
    wrap. In a table's code the source writes \\| for a bar."""

    def named(row, headings):
        at = iter(headings)
        return CELL.sub(lambda _: f'<td data-name="{next(at, "")}"', row)

    def table(match):
        text = COMMAND.sub(r'<code class="long">\1</code>', match[0].replace("\\|", "|"))
        last = "text" if any(length(cell) > 24 for cell in LAST.findall(text)) else "short"
        headings = [re.sub(r"<[^>]*>", "", h).replace('"', "&quot;") for h in HEADING.findall(text)]
        if last == "text":
            text = ROW.sub(lambda row: named(row[0], headings), text)
        return text.replace("<table>", f'<table data-last="{last}">', 1)

    def block(match):
        return match[0].replace("highlight", "highlight sentences", 1) if length(match[1]) > 140 else match[0]

    return BLOCK.sub(block, TABLE.sub(table, html))

"""The Python tasks of docs/how-to/tasks.md: each line runs as it stands there, and what the page says is true then."""

import re
import shutil
import warnings
from pathlib import Path

import matplotlib

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "tasks.md").read_text(encoding="utf-8")


def test_tasks(tmp_path, monkeypatch):
    matplotlib.use("Agg")
    for name in ("patients.csv", "heldout.csv"):
        shutil.copy(ROOT / "examples" / "clinic" / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    section = PAGE.split("\n## Python\n")[1].split("\n## ")[0]
    names = {}
    exec(section.split("<!-- python -->\n```python\n")[1].split("```")[0], names)
    rows = re.findall(r"^\| (.*) \| (`.*`) \| (.*`) \|$", section, re.M)
    assert len(rows) == 8  # as docs/tasks_test.go counts
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for task, line, true in rows:
            exec(line.strip("`").replace(r"\|", "|"), names)
            for expression in re.findall(r"`([^`]+)`", true):
                assert eval(expression, names), f"{task}: {expression}"

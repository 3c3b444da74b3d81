"""The Python tasks of docs/how-to/tasks.md: each line runs as it stands there, and what the page says is true then."""

import re
import shutil
import warnings
from pathlib import Path

import matplotlib
import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "tasks.md").read_text(encoding="utf-8")


@pytest.fixture
def clinic(tmp_path, monkeypatch):
    """The tests run beside the tables of examples/clinic."""
    for name in ("patients.csv", "heldout.csv"):
        shutil.copy(ROOT / "examples" / "clinic" / name, tmp_path)
    monkeypatch.chdir(tmp_path)


def test_tasks(clinic):
    matplotlib.use("Agg")
    section = PAGE.split("\n## Python\n")[1].split("\n## ")[0]
    names = {}
    exec(section.split("<!-- python -->\n```python\n")[1].split("```")[0], names)
    rows = re.findall(r"^\| (.*) \| (`.*`) \| (.*`) \|$", section, re.M)
    assert len(rows) == 10  # as docs/tasks_test.go counts
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "this was run ")  # of many on one dataset
        for task, line, true in rows:
            exec(line.strip("`").replace(r"\|", "|"), names)
            for expression in re.findall(r"`([^`]+)`", true):
                assert eval(expression, names), f"{task}: {expression}"


def test_first_example(clinic, capsys):
    """The first example of the package's page runs as it stands."""
    readme = (ROOT / "python" / "README.md").read_text(encoding="utf-8")
    names = {}
    exec(readme.split("```python\n")[1].split("```")[0], names)
    assert "ε = 1, δ = 0.00001: adding or removing any one record of 'clinic'" in capsys.readouterr().out
    assert (names["clinic"].predict(names["new_patients"][["age", "systolic", "smoker"]]) == names["new_patients"]["readmitted"]).mean() > 0.6

"""The gate to rows, crossed: what a call does with rows, their form, how they relate to the protected table, and what the ledger knows.

The verdicts are those of docs/explanation/privacy.md, "One gate to the rows". cli/crossings_test.go has the forms of files.
"""

import hashlib
import pickle
import shutil
import warnings
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest

from sottodp import SottoClassifier, SottoSearchCV, errors
from sottodp._command import run

ROWS = 1200
POOL = np.random.default_rng(7).uniform(-1, 1, (11 * ROWS, 2)).round(6)
RELATIONS = {
    "same": POOL[:ROWS],
    "reordered": POOL[ROWS - 1 :: -1],
    "one more": POOL[: ROWS + 1],
    "one less": POOL[: ROWS - 1],
    "half": POOL[: ROWS // 2],
    "columns reordered": POOL[:ROWS, ::-1],
    "4 %": POOL[ROWS * 96 // 100 : ROWS * 196 // 100],
    "disjoint": POOL[10 * ROWS :],
}
FORMS = ["pandas", "Polars", "NumPy", "list"]
STATES = ["budget", "spent", "another name", "another machine"]



# What each purpose calls, and what it does: with rows of which nothing is known, the same under the name of a protected dataset, rows of a
# protected dataset of another name, and of the same. A call is charged, recorded, allowed, or refused.
CHARGED, RECORDED, ENDED, ALLOWED, SPENT = "charged", "recorded", "ended", "allowed", errors.BudgetError
PROTECTED, GUARANTEE = errors.ContentProtectedError, errors.GuaranteeError
PURPOSES = {
    "train": (lambda model, new, X, y: new.fit(X, y), [CHARGED, CHARGED, PROTECTED, CHARGED]),
    "tune": (lambda model, new, X, y: SottoSearchCV(new.set_params(method="auto", method_options=None), ["nag"], mean=1.5).fit(X, y), [CHARGED, CHARGED, PROTECTED, CHARGED]),
    "evaluate": (lambda model, new, X, y: model.evaluate_private(X, y, epsilon=8), [CHARGED, CHARGED, PROTECTED, CHARGED]),
    "lab": (lambda model, new, X, y: new.set_params(lab=True).fit(X, y), [RECORDED, GUARANTEE, PROTECTED, PROTECTED]),
    "score": (lambda model, new, X, y: model.score(X, y), [ALLOWED, ALLOWED, PROTECTED, PROTECTED]),
    "score, void": (lambda model, new, X, y: model.set_params(void=True).score(X, y), [ALLOWED, ALLOWED, ENDED, ENDED]),
    "predict": (lambda model, new, X, y: model.predict(X), [ALLOWED, ALLOWED, ALLOWED, ALLOWED]),
}
# Each pair of values of two factors is in a cell.
CELLS = [
    (purpose, FORMS[(i + j // 2) % 4], relation, STATES[(i + j) % 4])
    for (i, purpose), (j, relation) in product(enumerate(PURPOSES), enumerate(RELATIONS))
]


def test_cells_cover_each_pair():
    factors = [list(PURPOSES), FORMS, list(RELATIONS), STATES]
    for i in range(4):
        for j in range(i):
            assert {(cell[i], cell[j]) for cell in CELLS} == set(product(factors[i], factors[j]))


def of(form, rows, turned=False):
    """Rows in a form. Turned frames have their columns in another order, each under its name; arrays have none."""
    names = ["b", "a"] if turned else ["a", "b"]
    if form == "pandas":
        return pd.DataFrame(rows, columns=names)
    if form == "Polars":
        return pl.DataFrame(dict(zip(names, rows.T)))
    return rows if form == "NumPy" else rows.tolist()


def estimator(form, dataset, epsilon=8):
    domain = (-1, 1) if form in ("NumPy", "list") else {"a": (-1, 1), "b": (-1, 1)}
    return SottoClassifier(
        epsilon, 1e-6, "add-or-remove", domain=domain, classes=[False, True], rows=ROWS, dataset=dataset, hats=0, method="sgd",
        method_options={"steps": 2})


def machine(place, monkeypatch):
    """Go to the machine of that place."""
    for name in ("data", "state"):
        monkeypatch.setenv(f"XDG_{name.upper()}_HOME", str(place / name))


def fitted(form, dataset, rows, turned=False, **said):
    return estimator(form, dataset, **said).fit(of(form, rows, turned), rows[:, 0] > 0)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """Machines that protect a table, one that protects another table, and models that were trained on yet another one."""
    base = tmp_path_factory.mktemp("machines")
    with pytest.MonkeyPatch.context() as monkeypatch:
        machine(base / "budget", monkeypatch)
        fitted("pandas", "clinic", RELATIONS["same"], epsilon=1)
        shutil.copytree(base / "budget", base / "spent")
        run("ledger", "budget", "clinic", "--epsilon", 100, "--delta", 1e-3, "--adjacency", "add-or-remove")
        machine(base / "spent", monkeypatch)
        run("ledger", "budget", "clinic", "--epsilon", 1, "--delta", 1e-6, "--adjacency", "add-or-remove")
        machine(base / "another machine", monkeypatch)
        fitted("pandas", "elsewhere", POOL[5 * ROWS : 6 * ROWS], epsilon=1)
        machine(base / "stranger", monkeypatch)
        others = {"clinic": POOL[7 * ROWS : 8 * ROWS], "other": POOL[8 * ROWS : 9 * ROWS]}
        models = {
            (form, dataset, turned): pickle.dumps(fitted(form, dataset, others[dataset], turned))
            for form, dataset, turned in product(FORMS, others, [False, True])
        }
    return base, models


def files(place):
    """What each file holds, but for those that note where the ledger lies, which was copied."""
    return {path: hashlib.sha256(path.read_bytes()).digest() for path in place.rglob("*") if path.is_file() and not path.name.startswith("place-")}


@pytest.mark.parametrize(("purpose", "form", "relation", "state"), CELLS)
def test_crossings(base, tmp_path, monkeypatch, purpose, form, relation, state):
    base, models = base
    dataset = "other" if state == "another name" else "clinic"
    here = tmp_path / "machine"
    shutil.copytree(base / ("budget" if state == "another name" else state), here)
    machine(here, monkeypatch)

    rows, turned = RELATIONS[relation], relation == "columns reordered"
    matches = relation not in ("4 %", "disjoint") and state != "another machine"
    if turned and form in ("NumPy", "list"):  # without names it is another table
        matches = False
    call, verdicts = PURPOSES[purpose]
    verdict = verdicts[2 * matches + (dataset == "clinic" and state != "another machine")]
    if state == "spent" and verdict == CHARGED:
        verdict = SPENT

    X, y = of(form, rows, turned), rows[:, 0] > 0
    model, new, before = pickle.loads(models[form, dataset, turned]), estimator(form, dataset), files(here)
    ledger = here / "data" / "sotto" / "ledger.db"
    if isinstance(verdict, type):
        with pytest.raises(verdict):
            call(model, new, X, y)
        assert files(here) == before
        return
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", errors.PrivacyWarning)
        call(model, new, X, y)
    assert (files(here)[ledger] == before[ledger]) == (verdict == ALLOWED)
    assert any("records this access as not private" in str(w.message) for w in warned) == (verdict in (RECORDED, ENDED))
    if verdict == ENDED:
        assert "void" in run("ledger", "show", "clinic", "--json")

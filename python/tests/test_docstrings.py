"""Every public name has type hints and a docstring in numpydoc's form, whose examples run."""

import doctest
import importlib
import inspect
import re
import typing
from pathlib import Path

import pytest

import sottodp
import sottodp.dask
import sottodp.spark

MODULES = [sottodp, sottodp.dask, sottodp.errors, sottodp.plots, sottodp.preprocessing, sottodp.spark]


def public():
    """Public functions, classes and their methods, by name; exceptions are explained by their class alone."""
    found = {}
    for module in MODULES:
        for name in getattr(module, "__all__", None) or [n for n, v in vars(module).items() if inspect.isclass(v)]:
            one = getattr(module, name)
            if not inspect.ismodule(one):
                found[f"{one.__module__}.{name}"] = one
    for name, one in list(found.items()):
        for base in inspect.getmro(one) if inspect.isclass(one) and not issubclass(one, BaseException) else ():
            if base.__module__.startswith("sottodp"):
                for method in vars(base):
                    if not method.startswith(("_", "set_")) and callable(getattr(one, method, None)):  # scikit-learn makes set_…_request
                        found[f"{name}.{method}"] = inspect.getattr_static(one, method)
    return found


def call(one):
    """The function that a name calls; a class calls its __init__. Conditional methods wrap theirs."""
    return one.__init__ if inspect.isclass(one) else one.__func__ if isinstance(one, classmethod) else getattr(one, "fn", one)


PUBLIC = public()


def test_all_is_found():
    assert {"sottodp._estimators.SottoClassifier.predict_proba", "sottodp.plots.plot_effects", "sottodp.errors.BudgetError"} < set(PUBLIC)
    assert len(PUBLIC) > 50


@pytest.mark.parametrize("name", PUBLIC)
def test_sections(name):
    one = PUBLIC[name]
    text = inspect.cleandoc(one.__doc__)
    summary, *rest = text.split("\n\n")
    assert summary.endswith(".") and "\n" not in summary
    if inspect.isclass(one) and issubclass(one, BaseException):
        return
    sections = dict(re.findall(r"(?:^|\n\n)(\w+)\n-+\n((?:.|\n)*?)(?=\n\n\w+\n-+\n|$)", text))
    signature = inspect.signature(call(one))
    parameters = {p.name: p for p in signature.parameters.values() if p.name not in ("self", "cls")}
    documented = dict(re.findall(r"^(\**\w[^:\n]*?)(?: : (.*))?$", sections.get("Parameters", ""), re.M))
    names = [n.lstrip("*") for listed in documented for n in listed.split(", ")]
    assert sorted(names) == sorted(parameters)
    for listed, kind in documented.items():
        for n in listed.lstrip("*").split(", "):
            default = parameters[n].default
            if default not in (inspect.Parameter.empty, None):  # None is written as optional
                said = kind.partition("default ")[2]
                assert said.strip('"') == str(default), n
            elif default is None and n not in ("epsilon", "delta", "adjacency", "y"):
                assert kind.endswith("optional"), n
    if not inspect.isclass(one):
        assert ("Returns" in sections) == (signature.return_annotation not in (None, "None", "NoReturn"))
        assert "Raises" in sections or not re.search(r"\n +raise ", inspect.getsource(call(one)))
    if inspect.isclass(one) or not name.startswith("sottodp._search"):  # a search takes a second; its class has an example
        assert ">>> " in sections["Examples"]


@pytest.mark.parametrize("name", PUBLIC)
def test_hints(name):
    one = call(PUBLIC[name])
    if inspect.isclass(PUBLIC[name]) and issubclass(PUBLIC[name], BaseException):
        return
    hints = typing.get_type_hints(one)
    assert set(inspect.signature(one).parameters) - {"self", "cls"} <= set(hints) and "return" in hints


def test_examples(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    attempted = 0
    for module in [*MODULES, *(importlib.import_module(f"sottodp._{part}") for part in ("command", "describe", "estimators", "search"))]:
        failed, tried = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        assert failed == 0, module
        attempted += tried
    assert attempted > 70


def test_the_package_says_that_it_is_typed():
    assert (Path(sottodp.__file__).parent / "py.typed").exists()

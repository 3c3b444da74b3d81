"""The estimators."""

from __future__ import annotations

import contextlib
import csv
import inspect
import io
import json
import math
import numbers
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pyarrow
import pyarrow.csv
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from . import _domain, _foreign, _labels, _types
from ._command import Rows, output, run, write
from .errors import BudgetError, InputError, PrivacyError, PrivacyWarning, SottoError
from .preprocessing import warn_of_fitted_steps

_LAB_BUDGET = {"epsilon": 1.0, "delta": 1e-5, "adjacency": "add-or-remove"}

LABEL = "sotto-label"  # the label's column; features may have any other name

_OWN_STEPS = "X was not made by steps that were fitted to the same rows, such as scalers, encoders, imputers or selections."


@dataclass(frozen=True)
class Guarantee:
    """What one fit promises, and under which assumptions: the attribute ``guarantee_`` of a fitted estimator.

    ``str`` gives it as a sentence.

    Parameters
    ----------
    epsilon, delta : float
        ε and δ of this fit, without units.
    adjacency : {"add-or-remove", "replace-one"}
        Which tables are neighbors.
    unit : str
        Whom it protects: "record", which is one row, or what the schema calls a unit.
    dataset : str
        Whose budget in the ledger was charged.
    lab : bool
        Whether it was a lab run, which promises nothing.
    run : str
        The run's name in the ledger.
    assumptions : tuple of str
        The public facts that it rests on, a sentence each.
    unit_rows : int, default 0
        The most rows of a unit that are used; 0 for one row.
    mu : float, optional
        μ of Gaussian differential privacy (Dong, Roth and Su 2022) for the whole plan; None where no theorem gives it.
    outside : float, optional
        What an attack's true positive rate may be above that of ``mu``.
    regret : float, optional
        What ``mu`` gives away of either rate.
    lifetime : str, default ""
        What the ledger says of the dataset after this fit: all runs together, and accesses without protection.

    Examples
    --------
    >>> from sottodp import Guarantee
    >>> print(Guarantee(1, 1e-5, "add-or-remove", "record", "clinic", False, "first", ()))
    ε = 1, δ = 0.00001: adding or removing any one record of 'clinic' changes the probability of any set of outcomes by at most a factor of 2.719, plus 0.00001
    """

    epsilon: float
    delta: float
    adjacency: _types.Adjacency
    unit: str
    dataset: str
    lab: bool
    run: str
    assumptions: tuple[str, ...]
    unit_rows: int = 0
    mu: float | None = None
    outside: float | None = None
    regret: float | None = None
    lifetime: str = ""

    def __str__(self) -> str:
        if self.lab:
            return "none: a lab run; do not use this model where rows need protection"
        rows = f" (all of its rows, at most {self.unit_rows})" if self.unit_rows > 1 else ""
        kind = {"add-or-remove": "adding or removing", "replace-one": "replacing"}[self.adjacency]
        delta = f", plus {_exact(self.delta)}" if self.delta else ""
        return (
            f"ε = {_exact(self.epsilon)}, δ = {_exact(self.delta)}: {kind} any one {self.unit}{rows} of {self.dataset!r} changes the "
            f"probability of any set of outcomes by at most a factor of {_up(math.exp(self.epsilon))}{delta}"
            + (f". All that the ledger knows of {self.dataset!r}: {self.lifetime}" if self.lifetime else "")
        )


class _Sotto(BaseEstimator):
    """What both estimators share."""

    epsilon: float | None
    delta: float | None
    adjacency: _types.Adjacency | None
    model: str | None
    method: str
    model_options: Mapping[str, Any] | None
    method_options: Mapping[str, Any] | None
    schema: _types.Path | None
    domain: _types.Domain | None
    hats: int | None
    label: str | None
    rows: int | None
    dataset: str | None
    row_scaling: Literal["scale", "project"]
    ledger: _types.Path | None
    run_dir: _types.Path | None
    lab: bool
    random_state: int | RandomState | None
    accept_delta: bool
    accept_dropped: bool
    holdout: float | None = None  # workers' rows are not divided
    disclosure: Mapping[str, Any] | None
    void: bool
    guarantee_: Guarantee
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    coef_: NDArray[Any]
    intercept_: NDArray[Any] | float
    coef_names_: NDArray[Any]

    _search: dict[str, Any] | None = None  # the spec's block tune, of a SottoSearchCV
    _target: str = LABEL  # the column of the label, without a schema file

    if not TYPE_CHECKING:  # a parameter of another library gets an answer; type checkers see __init__ alone

        def __new__(cls, *arguments: Any, **named: Any) -> Any:
            _foreign.refuse(cls, named)
            return super().__new__(cls)

        def __init_subclass__(cls, **more: Any) -> None:
            super().__init_subclass__(**more)
            signature = inspect.signature(cls.__init__)
            cls.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({**type(self)().get_params(deep=False), **state})  # an earlier version had fewer parameters

    def _keep(self, parameters: Mapping[str, Any]) -> None:
        """Keep the arguments of __init__ under their names, unchanged, as scikit-learn requires."""
        for name, value in parameters.items():
            if name != "self":
                setattr(self, name, value)

    def _fit(self, X: Any, y: Any, label: dict[str, Any] | None, options: dict[str, Any], named: Any) -> None:
        """Train on features X, a column for each name, and the label's texts or numbers y; options are the model's.
        ``named`` is y as it was given, which may have a name."""
        features, names = self._features(X)
        self._target = self._label_column(named, names)
        loaded = bool(self.run_dir) and finished(Path(str(self.run_dir)))
        warn_of_fitted_steps()
        with tempfile.TemporaryDirectory(prefix="sotto-") as directory, Rows() as rows:
            work = Path(directory)  # holds only public files
            spec, out, target, unit = self._plan(work, rows.path, names, features, label, options)
            self._write(rows, features, names, {target: y})
            with self._in_words(work, rows, names):
                if self._search is None:
                    flags = [flag for flag, given in (("--void", self.void and self.lab), ("--or-resume", self.run_dir)) if given]
                    run("fit", work / "spec.yaml", "--json", "--quiet", *flags, rows=rows, within=work)
                else:
                    with _new_search(out):
                        run("tune", work / "spec.yaml", "--json", "--quiet", "--out", out, rows=rows, within=work)
                    self._found = json.loads((out / "tune.json").read_text(encoding="utf-8"))
            self._keep_run(out, names, unit, new=not loaded)

    def _plan(
        self, work: Path, data: str, names: Sequence[str], features: Sequence[Any] | None, label: dict[str, Any] | None, options: dict[str, Any],
    ) -> tuple[dict[str, Any], Path, str, str | None]:
        """Write spec and schema to work. Return the spec, the run directory, and the columns of the label and of the unit."""
        out = Path(self.run_dir).absolute() if self.run_dir else work / "run"
        spec: dict[str, Any] = {
            "data": data,
            "schema": str(work / "schema.yaml"),
            "model": {"name": self._model(), **options},
            "method": {"name": self.method, **_options("method_options", self.method_options)},
            "privacy": self._budget(),
            "out": str(out),
        }
        if self._search is not None:
            del spec["method"], spec["out"]
            spec["tune"] = self._search
        if self.ledger is not None:
            spec["ledger"] = _place(self.ledger)
        if self.disclosure is not None:
            spec["disclosure"] = _options("disclosure", self.disclosure)
        for name in ("accept_delta", "accept_dropped"):
            if getattr(self, name):
                spec[name] = True
        if self.holdout is not None:
            spec["holdout"] = _number("holdout", self.holdout)
        if self.lab:
            spec["lab"] = True
            if self.random_state is not None:
                spec["seed"] = _seed(self.random_state)
        elif self.random_state is not None:
            raise ValueError("random_state: found it without lab=True; leave it out, as seeded noise protects nobody")
        if self.schema is not None:
            spec["schema"] = str(Path(self.schema).absolute())
            target, unit = self._columns_of_schema()
            self._columns = None
        else:
            target, unit = self._target, None
            assert label is not None  # there is no schema file
            schema = self._schema(features, names, label)
            self._columns = schema["columns"][:-1]
            (work / "schema.yaml").write_text(_json(schema), encoding="utf-8")
        if target in names:
            raise ValueError(f"X: found a column {target!r}, which is the label's name; give X without its label")
        (work / "spec.yaml").write_text(_json(spec), encoding="utf-8")  # JSON is YAML
        return spec, out, target, unit

    @classmethod
    def load(cls, run_dir: _types.Path, *, ledger: _types.Path | None = None, classes: Sequence[Any] | None = None) -> Any:
        """Return the estimator of a finished run, of Python or the command, without a fit: nothing is charged.

        Parameters
        ----------
        run_dir : path
            The run directory, which a fit with ``run_dir`` or ``sotto fit`` wrote.
        ledger : path or URL, optional
            The ledger, if it is not where it was when the run was made.
        classes : list, optional
            The labels that a classifier was trained with, in any order, where the model does not show them: texts that are
            whole numbers, and classes that the fit has numbered, of which it warned.

        Returns
        -------
        SottoClassifier or SottoRegressor
            A fitted estimator, of the class that it is called on. Without ``classes``, classes that are whole numbers, or
            false and true, have these types.

        Raises
        ------
        ValueError
            If the directory holds no finished run with a model of this kind, or one of other classes.

        Examples
        --------
        >>> import tempfile
        >>> from sottodp import SottoClassifier
        >>> directory = tempfile.mkdtemp() + "/run"
        >>> model = SottoClassifier(lab=True, random_state=1, run_dir=directory).fit([[0.1], [0.9]] * 50, ["low", "high"] * 50)
        >>> SottoClassifier.load(directory).predict([[0.8], [0.2]]).tolist()
        ['high', 'low']
        """
        out = Path(run_dir)
        if not finished(out) or not (out / "model.json").exists():
            raise ValueError(f"run_dir: {run_dir} holds no finished run with a model; a fit with that run_dir makes one, or goes on with it")
        done = json.loads((out / "run.json").read_text(encoding="utf-8"))
        schema, budget, model = done["schema"], done["budget"], done["model"]
        label = next((column for column in schema.get("columns", ()) if column["type"] == "label"), None)
        kinds = {"image": schema.get("image"), "sparse rows": schema["format"]["kind"] == "libsvm"}
        if label is None or any(kinds.values()):
            raise ValueError(f"run_dir: {run_dir} holds a run on images or sparse rows; `sotto predict` takes it")
        if bool(label.get("classes")) != issubclass(cls, ClassifierMixin):
            raise ValueError(f"run_dir: {run_dir} holds a {'classifier' if label.get('classes') else 'regression'}; use the other class")
        unit = next((column["name"] for column in schema["columns"] if column["type"] == "unit"), None)
        columns = [column for column in schema["columns"] if column["type"] not in ("label", "unit", "ignore")]
        names = [column["name"] for column in columns]
        unnamed = names == [f"x{i}" for i in range(len(names))]
        said = [_domain.said(column) for column in columns]
        self = cls(
            epsilon=budget["epsilon"], delta=budget["delta"], adjacency=budget["adjacency"], model=model["name"], method=done["method"],
            model_options={name: value for name, value in model.items() if name != "name"} or None,
            domain=said if unnamed else dict(zip(names, said)), label=label["name"], rows=schema["rows"], dataset=schema["dataset"],
            row_scaling=schema["row_scaling"], ledger=ledger or (done.get("ledger") or None), lab=bool(done.get("lab")),
        )
        if done.get("holdout"):
            self.holdout = done["holdout"]["share"]
        self._target, self._columns, self.n_features_in_ = label["name"], columns, len(names)
        if not unnamed or unit is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)
        self._set_label(label, classes)
        self._keep_run(out, names, None, new=False)
        return self

    def _set_label(self, label: Mapping[str, Any], classes: Sequence[Any] | None) -> None:
        """Take what a schema's label says, as a fit does; classes are those that a person gives."""
        raise NotImplementedError

    def _label_column(self, y: Any, names: Sequence[str]) -> str:
        """The name of the label's column: as said, or as y has it."""
        if self.label is not None:
            if not isinstance(self.label, str) or not _plain(self.label):
                raise ValueError(f"label: found {self.label!r}; give the name of the label's column, as 'readmitted'")
            return self.label
        columns: Any = getattr(y, "columns", ())
        name = columns[0] if len(columns) == 1 else getattr(y, "name", None)
        return name if isinstance(name, str) and _plain(name) and name not in names else LABEL

    def _keep_run(self, out: Path, names: list[str], unit: str | None, new: bool = True) -> None:
        """Keep the model and the guarantee of a run directory, and warn of what a new run says."""
        self._model_file = (out / "model.json").read_text(encoding="utf-8")
        done = json.loads((out / "run.json").read_text(encoding="utf-8"))
        budget, schema = done["budget"], done["schema"]
        self.guarantee_ = Guarantee(
            epsilon=budget["epsilon"], delta=budget["delta"], adjacency=budget["adjacency"], unit=schema["unit"],
            dataset=schema["dataset"], lab=bool(done.get("lab")), run=done["id"],
            assumptions=(*done["assumptions"], _OWN_STEPS), unit_rows=done.get("unit_rows", 0), **done.get("gdp", {}),
            lifetime="" if done.get("lab") else self._lifetime(schema["dataset"], new),
        )
        self.__dict__.pop("holdout_", None)  # of a fit before
        if done.get("holdout"):
            self.holdout_ = self._named(done["result"]["private"])
        for text in done.get("warnings", ()) if new and not done.get("lab") else ():
            warnings.warn(text, PrivacyWarning, stacklevel=4)
        self._names = names
        self._keep_coefficients()
        self._unit = unit
        if unit is not None:  # rows to predict need no unit
            kept = self.feature_names_in_ != unit
            self.feature_names_in_, self.n_features_in_ = self.feature_names_in_[kept], int(kept.sum())

    def _write(self, rows: Rows, features: Sequence[Any], names: Sequence[str], more: Mapping[str, Any]) -> None:
        columns = self._columns or [None] * len(names)
        table = {name: _domain.cells(name, feature, column) for name, feature, column in zip(names, features, columns)}
        table.update({name: column if isinstance(column, pyarrow.Array) else pyarrow.array(column) for name, column in more.items()})
        write(rows, pyarrow.table(table))

    def _lifetime(self, dataset: str, new: bool) -> str:
        """The ledger's statement on a dataset, with all runs by now. Warn of a new run that no budget would have refused."""
        where = () if self.ledger is None else ("--ledger", _place(self.ledger))
        if not new and self.ledger is not None and "://" not in str(self.ledger) and not Path(self.ledger).exists():
            return ""  # a run that was loaded on another machine
        known = json.loads(run("ledger", "show", dataset, "--json", *where))["dataset"]
        if new and known["runs"] > 1 and "budget" not in known:
            spent = known["spent"]
            warnings.warn(
                f"this was run {known['runs']} on the dataset {dataset!r}, which has no lifetime budget: together its runs have ε = {_exact(spent['epsilon'])}, "
                f"δ = {_exact(spent['delta'])}. A fit that is repeated charges again; with run_dir=DIR it loads the finished run. "
                f"`sotto ledger budget {dataset} --epsilon E --delta D --adjacency {known['adjacency']}` sets a limit",
                PrivacyWarning, stacklevel=5,
            )
        return str(known["statement"])

    def _keep_coefficients(self) -> None:
        """coef_, intercept_ and coef_names_ of a linear model, as scikit-learn shapes them."""
        model = json.loads(self._model_file)
        if model.get("layers"):
            return  # a network
        factor = model.get("margin_factor") or 1
        w = np.asarray(model["w"]).reshape(-1, model["dim"]) * factor
        intercept = np.full(len(w), model.get("offset", 0.0) * factor)
        order = self._model_order()
        if len(w) > 1:
            w, intercept = w[order], intercept[order]
        elif order and order != sorted(order):  # the margin is that of the second class
            w, intercept = -w, -intercept
        self.coef_, self.intercept_ = (w, intercept) if model.get("classes") else (w[0], float(intercept[0]))
        self.coef_names_ = np.asarray(model.get("features") or [f"x{i}" for i in range(model["dim"])], dtype=object)

    def _model_order(self) -> list[int]:
        """Where each class of classes_ stands in the model; empty for a regression."""
        return []

    def _budget(self) -> dict[str, Any]:
        """ε, δ and the relation: no default suits every table, so only the lab has one."""
        budget = {"epsilon": self.epsilon, "delta": self.delta, "adjacency": self.adjacency}
        if self.lab:
            return {name: default if budget[name] is None else budget[name] for name, default in _LAB_BUDGET.items()}
        missing = [name for name, value in budget.items() if value is None]
        if missing:
            raise ValueError(f"{', '.join(missing)}: must be said; adjacency is add-or-remove or replace-one")
        return budget

    def _features(self, X: Any) -> tuple[list[Any], list[str]]:
        """The columns of X and their names. A frame keeps its types if a schema or a dict says what they mean."""
        if isinstance(X, _Unnamed):
            return [X.cells[:, i] for i in range(len(X.names))], X.names
        if self.schema is not None or isinstance(self.domain, dict):
            if not hasattr(X, "columns"):
                raise ValueError("X: found no column names; give a data frame, since a schema or a dict as domain names columns")
            names = [str(name) for name in X.columns]
            return [X[name] for name in X.columns], names
        names = [f"x{i}" for i in range(X.shape[1])]
        return [X[:, i] for i in range(X.shape[1])], names

    def _schema(self, features: Sequence[Any] | None, names: Sequence[str], label: Mapping[str, Any]) -> dict[str, Any]:
        """The schema from scikit-learn's parameters. Without features, nothing is read off the rows, in the lab either."""
        if not self.lab or features is None:
            missing = [name for name in ("dataset", "domain") if getattr(self, name) is None]
            if self.rows is None and (self.adjacency != "replace-one" or features is None):
                missing.append("rows")
            if missing:
                raise ValueError(
                    f"{', '.join(missing)}: must be said, or schema=FILE: what is read off the rows is not private; "
                    "lab=True does so, for tables that need no protection"
                )
        if self.rows is not None and (not isinstance(self.rows, numbers.Integral) or isinstance(self.rows, bool)):
            raise ValueError(f"rows: found {self.rows!r}; give a whole number above 0, about how many rows the table has")
        if self.dataset is not None and (not isinstance(self.dataset, str) or not self.dataset):
            raise ValueError(f"dataset: found {self.dataset!r}; give the table's name in the ledger, as 'clinic'")
        columns = _domain.columns(self.domain, names, features or ())
        if self.hats is not None:
            for column in columns:
                if column["type"] == "numeric":
                    column.update({"hats": self.hats} if self.hats else {"encode": "linear"})
        return {
            "dataset": self.dataset or "lab",
            "rows": len(features[0]) if features is not None and self.rows is None else int(self.rows or 0),
            "format": {"kind": "csv"},
            "row_scaling": self.row_scaling,
            "columns": [*columns, {"name": self._target, "type": "label", **label}],
        }

    def _columns_of_schema(self) -> tuple[str, str | None]:
        """The names of the label's column and of the unit's, None where there is none, from sotto's own reading of the schema."""
        assert self.schema is not None
        said = _read(self.schema)
        return said["label"], said.get("unit_column")

    def _validated(self, X: Any) -> Any:
        _domain.tabular(X)
        if (self.schema is not None or isinstance(self.domain, dict)) and not hasattr(X, "columns"):
            X = X if isinstance(X, np.ndarray) else np.asarray(X, dtype=object)
            if X.ndim != 2:
                raise ValueError(f"X: found {X.ndim} dimensions; give rows and columns. Expected 2D array")
            validate_data(self, X, reset=False, skip_check_array=True)  # warns that there are no names, and counts the columns
            return _Unnamed(X, [str(name) for name in self.feature_names_in_])
        if self.schema is not None or isinstance(self.domain, dict):
            if self._unit in getattr(X, "columns", ()):
                X = X[[name for name in X.columns if name != self._unit]]
            validate_data(self, X, reset=False, skip_check_array=True)
            return X
        names, fitted = [str(name) for name in getattr(X, "columns", ())], [f"x{i}" for i in range(self.n_features_in_)]
        if names != fitted and sorted(names) == sorted(fitted) and not hasattr(self, "feature_names_in_"):  # a loaded run tells no more of its columns
            raise ValueError("The feature names should match those that were passed during fit. Feature names must be in the same order as they were in fit.")
        with _unquoted():
            return validate_data(self, X, reset=False, ensure_min_samples=0, **_finite(self.domain))

    def _predicted(self, X: Any) -> pyarrow.Table:
        """What sotto predict writes, with all digits: a column of predictions and, of a classifier, one for each of its classes."""
        check_is_fitted(self, "guarantee_")
        features, names = self._features(self._validated(X))
        if features and len(features[0]) == 0:
            return pyarrow.table({})
        with tempfile.TemporaryDirectory(prefix="sotto-") as directory, Rows() as rows:
            work = Path(directory)
            (work / "model.json").write_text(self._model_file, encoding="utf-8")
            self._write(rows, features, names, {})
            with self._in_words(work, rows, names):
                lines = output("predict", "--model", work / "model.json", "--data", rows.path, "--digits", 17, rows=rows, within=work)
        header = csv.reader(io.TextIOWrapper(io.BytesIO(lines), "utf-8", newline=""))
        columns = len(next(header))
        numbers = {f"f{i}": pyarrow.float64() for i in range(columns)}
        return pyarrow.csv.read_csv(
            pyarrow.BufferReader(lines), pyarrow.csv.ReadOptions(skip_rows=header.line_num, autogenerate_column_names=True),
            pyarrow.csv.ParseOptions(newlines_in_values=True), pyarrow.csv.ConvertOptions(column_types={**numbers, **self._prediction}, null_values=[""]),
        )

    def evaluate_private(
        self, X: ArrayLike, y: ArrayLike, *, epsilon: float, delta: float | None = None, rows: int | None = None,
        dataset: str | None = None, by: str | None = None, out: _types.Path | None = None,
    ) -> dict[str, Any]:
        """Score the model on protected rows, with noise, and charge the ledger (``sotto evaluate --epsilon``).

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Rows, with the columns of the training.
        y : array of shape (n_samples,)
            Their labels or numbers.
        epsilon : float
            The ε that the dataset is charged.
        delta : float, optional
            Likewise δ; by default that of the training.
        rows : int, optional
            About how many rows X has, a public number; by default as in training.
        dataset : str, optional
            The dataset that is charged: rows of other people are another one. By default that of the training.
        by : str, optional
            A categorical column by whose levels figures are split.
        out : path, optional
            A new directory for the record, which ``sotto verify`` checks; it is not kept without.

        Returns
        -------
        dict
            Figures, each a dict of ``value``, ``low`` and ``high``: an interval of 95 % for the noise and the sampling
            error. docs/how-to/evaluation.md explains them, oracle/private/PROOFS.md what they cost.

        Raises
        ------
        BudgetError
            If the dataset's lifetime budget does not cover the charge.
        ContentProtectedError
            If the ledger knows the rows under another name.

        Examples
        --------
        >>> import numpy as np
        >>> from sottodp import SottoClassifier
        >>> X = np.random.default_rng(1).uniform(-1, 1, (2000, 2))
        >>> model = SottoClassifier(
        ...     epsilon=1, delta=1e-6, adjacency="add-or-remove", dataset="scored", rows=2000, domain=(-1, 1), classes=[0, 1])
        >>> figures = model.fit(X[:1000], X[:1000, 0] > 0).evaluate_private(X[1000:], X[1000:, 0] > 0, epsilon=1, rows=1000)
        >>> sorted(figures["accuracy"])
        ['high', 'low', 'value']
        """
        check_is_fitted(self, "guarantee_")
        asked: list[Any] = ["--epsilon", epsilon]
        for flag, value in (("--delta", delta), ("--rows", rows), ("--dataset", dataset), ("--by", by), ("--ledger", self.ledger and _place(self.ledger))):
            if value is not None:
                asked += [flag, value]
        with tempfile.TemporaryDirectory(prefix="sotto-") as directory:
            return self._named(self._evaluated(X, y, *asked, "--out", out or Path(directory) / "record")["private"])

    def _admit(self, X: Any, y: Any) -> None:
        """Ask the command's gate whether rows may be scored exactly. A caller of score says that they need no protection."""
        asked: list[Any] = ["--unprotected", "--accept-dropped", *(["--void"] if self.void else [])]
        if self.ledger is not None:
            asked += ["--ledger", _place(self.ledger)]
        try:
            self._evaluated(X, y, *asked)
        except PrivacyError as error:
            why = re.sub(r"[.] Use other rows.*", "", str(error), flags=re.DOTALL)
            raise type(error)(
                f"{why}. An exact score would show protected rows without noise. Use evaluate_private(X, y, epsilon=...), which is charged, "
                "SottoSearchCV to choose a method, or rows that need no protection; void=True scores them all the same, which ends the guarantee forever"
            ) from error.__cause__

    def _evaluated(self, X: Any, y: Any, *asked: Any) -> dict[str, Any]:
        """What sotto evaluate says of the model on these rows."""
        features, names = self._features(self._validated(X))
        target = self._target if self.schema is None else self._columns_of_schema()[0]
        codes = self._codes(y)
        if len(codes) != len(features[0]):
            raise ValueError(f"y: found {len(codes)} labels; give one for each of the {len(features[0])} rows of X")
        with tempfile.TemporaryDirectory(prefix="sotto-") as directory, Rows() as cells:
            work = Path(directory)
            (work / "model.json").write_text(self._model_file, encoding="utf-8")
            self._write(cells, features, names, {target: codes})
            with self._in_words(work, cells, names):
                text = run("evaluate", "--model", work / "model.json", "--data", cells.path, "--json", *asked, rows=cells, within=work)
        found: dict[str, Any] = json.loads(text)
        return found

    def effects(self) -> list[dict[str, Any]]:
        """Return what each column adds to the model's margin, from the released model alone.

        It costs nothing. It is for models of two classes or of a number.

        Returns
        -------
        list of dict
            The keys are those of ``sotto export --to csv``: column, kind, value, effect, low, high, ratio. The band from
            low to high is that of the training's noise. Numbers are floats in the column's own units, or None where
            there is none; ``pandas.DataFrame`` makes a table of the list.

        Raises
        ------
        InputError
            If the model has several margins or layers.

        Examples
        --------
        >>> import numpy as np
        >>> from sottodp import SottoClassifier
        >>> X = np.random.default_rng(1).uniform(-1, 1, (400, 2))
        >>> model = SottoClassifier(lab=True, random_state=1, hats=0).fit(X, X[:, 0] > 0)
        >>> [(line["column"], line["kind"]) for line in model.effects()]
        [('x0', 'slope'), ('x1', 'slope')]
        """
        check_is_fitted(self, "guarantee_")
        with tempfile.TemporaryDirectory(prefix="sotto-") as directory:
            model = Path(directory) / "model.json"
            model.write_text(self._model_file, encoding="utf-8")
            text = run("export", model, "--to", "csv", "--out", "-", within=model.parent)
        lines: list[dict[str, Any]] = list(csv.DictReader(io.StringIO(text)))
        order = self._model_order()
        for line in lines:
            effect, low, high, ratio = (float(line[key]) if line[key] else None for key in ("effect", "low", "high", "ratio"))
            if order != sorted(order):  # the model's margin is that of the first of classes_
                effect, low, high = _negative(effect), _negative(high), _negative(low)
                ratio = None if ratio is None else 1 / ratio
            line.update({"effect": effect, "low": low, "high": high, "ratio": ratio})
        return lines

    @contextlib.contextmanager
    def _in_words(self, work: Path, rows: Rows, names: Sequence[str]) -> Iterator[None]:
        """Errors of the command in terms of the estimator's parameters: no temporary file, no column by its number."""
        try:
            yield
        except SottoError as error:
            text = str(error)
            text = re.sub(re.escape(str(work)) + r"/(schema|spec)\.yaml(:\d+:\d+)?: ", "", text)
            text = re.sub(r"^columns\[\d+\]\.hats: ", "hats: ", text)
            text = re.sub(r"^columns\[(\d+)\]\.", lambda m: f"domain: column {names[int(m[1])]!r}: " if int(m[1]) < len(names) else f"{self._says_label}: ", text)
            for pattern, words in _WORDS:
                text = re.sub(pattern, words, text)
            text = re.sub(rf"(?m)^{re.escape(str(rows.path))}: ", "X: ", text)  # several columns have a line each
            if not self.run_dir:
                text = re.sub(r"\n(The budget stays reserved\.) .*", r"\n\1 With run_dir=DIR, the same fit can be repeated, and goes on", text)
            if isinstance(error, BudgetError) and self._search is None:
                text += _MANY_FITS.format(epsilon=self.epsilon)
            if self._search is not None:
                text = re.sub(r"^method(_options)?: ", "methods: ", text)
            if self.schema is None:
                for schema, domain in _DOMAIN_WORDS:
                    text = text.replace(schema, domain)
            raise type(error)(text) from error.__cause__

    _says_label = "y"  # the parameter that says what labels there are
    _prediction: ClassVar[dict[str, pyarrow.DataType]] = {}  # how a prediction is read, if it is no number

    def _model(self) -> str:
        """The name of the model in the spec."""
        raise NotImplementedError

    def _codes(self, y: Any) -> Any:
        """Labels or numbers as the command reads them."""
        raise NotImplementedError

    def _named(self, figures: dict[str, Any]) -> dict[str, Any]:
        """Figures of an evaluation with the labels of y."""
        return figures


# What the command says, in the words of the estimator's parameters.
_WORDS = [
    (r"^privacy\.", ""),
    (r"^(method|model)\.name\b", r"\1"),
    (r"^(method|model)\.", r"\1_options: "),
    (r'^unknown field ("[^"]*"); the fields of (method|model) are (?:name, )?', r"\2_options: unknown \1; choose "),
    (r'^unknown field ("[^"]*"); the fields of disclosure are ', r"disclosure: unknown \1; choose "),
    (r"^model: [a-z-]+: (a class weight is|class weights are) ", r"class_weight: \1 "),
    (r"^out: ", "run_dir: "),
    (r"^--([a-z]+): (\1: )?", r"\1: "),
    (r"^tune\.", ""),
    (r"Write dataset: (.*) in the schema, so", r"Say dataset='\1', so"),
    (r"--void\b", "void=True"),
    (r"--accept-delta\b", "accept_delta=True"),
    (r"--accept-dropped\b", "accept_dropped=True"),
]
_DOMAIN_WORDS = [
    ("a categorical column of the schema", "a categorical column of X"),
    (", the number in the schema, under replace-one", " under replace-one"),
    ("the levels in the schema", "the levels in domain"),
    ("a level that the schema does not list", "a level that domain does not list"),
    ("rule for this column in the schema", "rule for this column in domain"),
    ("an unknown or missing rule for this column", "an 'unknown' or a 'missing' rule for this column"),
    ("or a missing rule for this column", "or a 'missing' rule for this column"),
    ("or the schema if the row is right", "or domain if the row is right"),
]


_MANY_FITS = (
    ". Each fit of a search or a cross-validation is charged: GridSearchCV needs (candidates × folds + 1) × {epsilon}. By default it goes on without the "
    'fits that fail; error_score="raise" stops it, and SottoSearchCV chooses within the ε of one fit'
)


@dataclass(frozen=True)
class _Unnamed:
    """Rows of an array for a model that was fitted to a frame: its columns have the names of the fit, in their order."""

    cells: NDArray[Any]
    names: list[str]

    def __len__(self) -> int:
        return len(self.cells)


def finished(run_dir: Path) -> bool:
    """Whether a directory holds a finished run."""
    try:
        return bool(json.loads((run_dir / "run.json").read_text(encoding="utf-8"))["status"] == "finished")
    except (OSError, ValueError, KeyError):
        return False


def _plain(text: str) -> bool:
    """Whether a text can be a name in a schema."""
    return bool(text) and text == text.strip() and text.isprintable()


def _json(said: Any) -> str:
    """A parameter as JSON, also where it has NumPy's scalars and arrays."""
    return json.dumps(_python(said))


def _python(said: Any) -> Any:
    if isinstance(said, Mapping):
        return {key if isinstance(key, str) else str(_python(key)): _python(value) for key, value in said.items()}
    if isinstance(said, (np.generic, np.ndarray)):
        said = said.tolist()
    return [_python(value) for value in said] if isinstance(said, (list, tuple)) else said


def _negative(value: float | None) -> float | None:
    return None if value is None else -value


@contextlib.contextmanager
def _new_search(out: Path) -> Iterator[None]:
    """Make the directory of a search, which tells that one began there: a search that was stopped cannot go on."""
    try:
        out.mkdir(0o700, parents=True)
    except FileExistsError:
        raise ValueError(
            f"run_dir: {out} exists, and a search cannot be resumed: its candidates are secret. Nothing was charged now, but a search that was "
            "stopped keeps its ε. Use a new directory, which charges a new search"
        ) from None
    try:
        yield
    except (InputError, PrivacyError):  # nothing was charged
        with contextlib.suppress(OSError):
            out.rmdir()
        raise


def _options(name: str, said: Mapping[str, Any] | None) -> dict[str, Any]:
    """The fields of a block of the spec."""
    if said is None:
        return {}
    if not isinstance(said, Mapping):
        raise ValueError(f"{name}: found {type(said).__name__}; give a dict of fields and values")
    return dict(said)


def _place(ledger: _types.Path) -> str:
    """The ledger's file from anywhere, or its address: in the spec, a relative path would begin at the spec's own directory."""
    return str(ledger) if "://" in str(ledger) else str(Path(ledger).absolute())


def _finite(domain: _types.Domain | None) -> dict[str, Any]:
    """What scikit-learn's checks say to NaN: it may be there if domain has a rule for it."""
    return {"ensure_all_finite": "allow-nan"} if _domain.replaces(domain) else {}


@contextlib.contextmanager
def _unquoted() -> Iterator[None]:
    """Say what to do about NaN, where scikit-learn's own advice is another estimator, and about X of another form, where it quotes rows."""
    try:
        yield
    except ValueError as error:
        if "Complex data not supported" in str(error):
            raise ValueError("X: has complex numbers; give real ones. Complex data not supported") from None
        if found := re.match(r"Expected 2D array, got \S+ array instead", str(error)):
            raise ValueError(f"X: {found[0]}. Reshape your data: X.reshape(-1, 1) has one feature, X.reshape(1, -1) one row") from None
        if "X contains NaN" not in str(error):
            raise
        raise ValueError(
            "X: found NaN where numbers should be; let domain say what replaces it in a column, as {'bounds': (0, 9), 'missing': 4}, "
            "or put sottodp.preprocessing.PublicImputer before"
        ) from None


def _exact(v: float) -> str:
    """An ε or δ that a person chose, or a sum of such: all its digits, written as the reports do."""
    mantissa, power = f"{v:.11e}".split("e")
    mantissa, exponent = mantissa.rstrip("0").rstrip("."), int(power)
    if -6 <= exponent < 15 or v == 0:
        return f"{v:,.{max(0, len(mantissa.replace('.', '')) - 1 - exponent)}f}"
    high = str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{high}" if mantissa == "1" else f"{mantissa} × 10{high}"


def _up(x: float) -> str:
    """x with four digits, rounded up, as every bound is."""
    unit = 10.0 ** (math.floor(math.log10(x)) - 3)
    return f"{math.ceil(x / unit - 1e-9) * unit:.4g}"


def _number(name: str, value: Any) -> float:
    """A parameter that is a number, also one of NumPy."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ValueError(f"{name}: found {value!r}; give a number")
    return float(value)


def _seed(random_state: int | RandomState) -> int:
    if isinstance(random_state, RandomState):  # as in scikit-learn
        return int(random_state.randint(2**31))
    return int(random_state)


_PARAMETERS = """
    What it promises follows from the theorems in privacy/account/PROOFS.md, by the accountant of docs/explanation/privacy.md.

    Parameters
    ----------
    epsilon : float
        ε of one fit. It has no default, but 1 in the lab.
    delta : float
        δ of one fit, far below 1 over the number of rows. It has no default, but 1e-5 in the lab.
    adjacency : {{"add-or-remove", "replace-one"}}
        Which tables are neighbors. It has no default, but "add-or-remove" in the lab.
    model : str, optional
        {models}
    method : str, default "auto"
        As in ``sotto fit --method``; "auto" chooses every number from public facts.
    model_options : dict, optional
        Further fields of the spec's block ``model`` (docs/reference/spec.md), as ``{{"l2": 1e-4}}``.
    method_options : dict, optional
        Further fields of the block ``method``, as ``{{"steps": 30}}``.
    schema : path, optional
        A schema file, which says all that follows; X is a data frame with its columns then.
    domain : (low, high), sequence of shape (n_features,), or dict, optional
        Public bounds of the features, in their own units. In a dict, a column's name maps to what is known of it; X is
        a data frame then. That is (low, high), or the levels of a categorical column: a list of texts or of truth
        values, a pandas ``CategoricalDtype``, whose order counts if it has one, or a Polars ``Enum``. Two dates bound a
        column of dates. Or it is a dict of ``"bounds"``, ``"levels"`` or, for free text, ``"dimension"`` (the number of
        features that words are hashed to) and further fields, as ``{{"bounds": (0, 9), "missing": 4}}``,
        ``{{"bounds": ("2020-01-01", "2024-12-31"), "cycles": ["week"]}}`` or ``{{"levels": ["low", "high"], "ordered": True}}``:
        ``missing`` replaces NaN and None, ``unknown`` other levels. Values beyond a bound are clamped to it. Without a
        rule, a missing value is an error.
    hats : int, optional
        So many piecewise-linear bumps over its bounds beside each numeric feature, from 2 to 64, for effects that are
        no straight lines; 0 is none. Left out, method auto chooses. A schema file says this of each column.
    label : str, optional
        The name of the label's column in the model, in predictions and in the disclosure; by default the name of y, if it is a
        series or a frame of one column.
    {label}
    rows : int, optional
        Public, nominal number of rows. Under replace-one it is that of X.
    dataset : str, optional
        The name of the table in the ledger, whose lifetime budget is charged.
    row_scaling : {{"scale", "project"}}, default "scale"
        Whether each row is brought to the norm 1, or only shrunk to it.
    ledger : path or URL, optional
        The ledger's file or PostgreSQL address; by default the user's own.
    run_dir : path, optional
        A new directory for the run's record, which ``sotto verify`` checks; it is not kept without. If a fit stopped, the
        same fit on the same rows goes on with the run there; if that is finished, it loads the model, and nothing is charged.
    lab : bool, default False
        Take what is missing from the rows, and allow ``random_state``: no promise is made then.
    random_state : int or RandomState, optional
        Seeds samples and noise; for lab=True only.
    accept_delta : bool, default False
        Accept a δ of 1/rows or more. Without it, `errors.DeltaError` is raised.
    accept_dropped : bool, default False
        Accept that the schema's rule for bad rows drops more than 1 % of them. Without it, `errors.DroppedRowsError`
        is raised.
    {more}disclosure : dict, optional
        What only a person knows, for ``sotto disclose``, as ``{{"purpose": "…", "operator": "…"}}`` (docs/how-to/disclosure.md).
    void : bool, default False
        Let ``score`` and the lab use rows that the ledger protects, as ``--void`` does: that ends the guarantee of their
        dataset forever, and the ledger records it.

    Attributes
    ----------
    guarantee_ : Guarantee
        ε, δ, μ, whom it protects, the public facts that it rests on, and what all fits that the ledger knows
        promise together (``lifetime``).
    coef_, intercept_ : ndarray or float
        Of a linear model: the margin is that of an encoded row, brought to its norm, with coef_, plus intercept_.
        `effects` has them in the columns' own units.
{after}    coef_names_ : ndarray of str
        The features of an encoded row: columns, their levels and bumps, and at the end "(intercept)", which is 1 before
        the row is brought to its norm.
    n_features_in_, feature_names_in_
        The columns of X.

    Examples
    --------
    {examples}
    """


class _Scored:
    """The gate before scikit-learn's own score."""

    _admit: Callable[[Any, Any], None]
    _codes: Callable[[Any], Any]

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the exact score of the model on rows that need no protection.

        It has no noise and is not charged, so it refuses rows that the ledger protects, as those of a fit.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Rows, with the columns of the training.
        y : array of shape (n_samples,)
            Their labels or numbers.
        sample_weight : array of shape (n_samples,), optional
            Weights of the rows in the score.

        Returns
        -------
        float
            Accuracy of a classifier, R² of a regression.

        Raises
        ------
        ContentProtectedError
            If the ledger protects the rows. `evaluate_private` scores them with noise, `SottoSearchCV` chooses a method
            by their scores, and ``void=True`` ends their guarantee.

        Examples
        --------
        >>> from sottodp import SottoClassifier
        >>> model = SottoClassifier(lab=True, random_state=1).fit([[0.1], [0.9]] * 50, ["low", "high"] * 50)
        >>> model.score([[0.8], [0.2], [0.7]], ["high", "low", "high"])
        1.0
        """
        check_is_fitted(self, "guarantee_")
        if not hasattr(self, "classes_"):
            y = self._codes(y)
        self._admit(X, y)
        return float(super().score(X, y, sample_weight=sample_weight))  # type: ignore[misc]


class SottoClassifier(_Scored, ClassifierMixin, _Sotto):
    classes: Sequence[Any] | None
    class_weight: Mapping[Any, float] | None
    classes_: NDArray[Any]

    _says_label = "classes"
    _prediction: ClassVar[dict[str, pyarrow.DataType]] = {"f0": pyarrow.dictionary(pyarrow.int32(), pyarrow.string())}

    def __init__(
        self, epsilon: float | None = None, delta: float | None = None, adjacency: _types.Adjacency | None = None, *,
        model: str | None = None, method: str = "auto", model_options: Mapping[str, Any] | None = None,
        method_options: Mapping[str, Any] | None = None, schema: _types.Path | None = None, domain: _types.Domain | None = None,
        hats: int | None = None, label: str | None = None, classes: Sequence[Any] | None = None, rows: int | None = None, dataset: str | None = None,
        row_scaling: Literal["scale", "project"] = "scale", ledger: _types.Path | None = None, run_dir: _types.Path | None = None,
        lab: bool = False, random_state: int | RandomState | None = None, accept_delta: bool = False, accept_dropped: bool = False,
        class_weight: Mapping[Any, float] | None = None, holdout: float | None = None, disclosure: Mapping[str, Any] | None = None, void: bool = False,
    ) -> None:
        self._keep(locals())

    def _model(self) -> str:
        return self.model or ("logistic" if len(self.classes_) == 2 else "softmax")

    def fit(self, X: ArrayLike, y: ArrayLike, **refused: Any) -> SottoClassifier:
        """Train on the rows of X with the labels y, and charge the ledger.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Rows; a data frame of pandas or Polars, where schema or a dict as domain names its columns.
        y : array of shape (n_samples,)
            The label of each row, one of ``classes``.
        **refused
            Nothing else is allowed; ``sample_weight`` is refused with its reason.

        Returns
        -------
        SottoClassifier
            The estimator itself.

        Raises
        ------
        ValueError
            If a public fact or a privacy parameter is missing or wrong: it names the parameter, and nothing was charged.
        BudgetError
            If the dataset's lifetime budget does not cover the fit; nothing was charged.
        PrivacyError
            If privacy does not allow it for another reason, as for rows that the ledger knows under another name.

        Examples
        --------
        >>> from sottodp import SottoClassifier
        >>> SottoClassifier(lab=True, random_state=1).fit([[0.1], [0.9]] * 50, ["low", "high"] * 50).classes_.tolist()
        ['high', 'low']
        """
        refuse(refused)
        if self.classes is not None:
            _labels.listed(self.classes)
        labels: Any = None if y is None else _labels.array(y, missing=self.schema is not None)
        X, labels = _checked(self, X, labels)
        if self.schema is not None:
            self._set_classes(*self._classes_of_schema(labels.dtype))
        elif self.classes is not None:
            self._set_classes(_labels.classes(self.classes, labels.dtype))
        elif self.lab:
            self._set_classes(np.unique(labels))
        else:
            raise ValueError("classes: must be said, or schema=FILE: the classes that occur are not private; lab=True takes them from y")
        if len(self.classes_) < 2:
            raise ValueError(f"Classifier can't train when only one class is present: {len(self.classes_)} class")
        label = {"classes": self._class_names} if self.schema is None else None
        if self.schema is None:
            _labels.warn_of_numbers(self.classes_.tolist(), self._class_names)
        self._fit(X, self._codes(labels), label, self._options(self._order()), y)
        return self

    def _set_classes(self, classes: NDArray[Any], names: Sequence[str] | None = None) -> None:
        """Keep classes as classes_, sorted, and beside each its name in the model: by default its text."""
        order = np.argsort(classes, kind="stable").tolist()
        self.classes_ = classes[order]
        self._class_names = _labels.texts(self.classes_.tolist()) if names is None else [names[i] for i in order]

    def _set_label(self, label: Mapping[str, Any], classes: Sequence[Any] | None) -> None:
        names = label["classes"]
        found = _labels.of_names(names)
        if classes is not None:
            found = _labels.classes(classes, None)
            texts = _labels.texts(found.tolist())
            if sorted(names) != sorted(texts):
                raise ValueError(f"classes: lists {', '.join(map(repr, found.tolist()))}, and the model's are {', '.join(map(repr, names))}; list the labels of the fit")
            names = texts
        self._set_classes(found, names)
        self.classes = self.classes_.tolist()

    def _classes_of_schema(self, like: np.dtype[Any]) -> tuple[NDArray[Any], list[str]]:
        """The classes of the schema file in the type of y, and their names there."""
        assert self.schema is not None
        names = _read(self.schema).get("classes") or []
        if not names:
            raise ValueError("schema: its label has no classes; use SottoRegressor, or a schema whose label lists classes")
        found = _labels.of_schema(names, like)
        if self.classes is not None and _labels.classes(self.classes, like).tolist() != np.unique(found).tolist():
            raise ValueError(f"classes: lists other labels than the schema, whose classes are {', '.join(map(repr, names))}; leave classes out")
        return found, names

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "guarantee_" in state and "_class_names" not in state:  # of a version that kept the classes in the order in which they were listed
            self._set_classes(self.classes_, json.loads(self._model_file)["classes"])
            self._keep_coefficients()

    def _model_order(self) -> list[int]:
        names = json.loads(self._model_file)["classes"]
        return [names.index(name) for name in self._class_names]

    def _order(self) -> dict[Any, str]:
        """The name of each class in the schema."""
        return dict(zip(self.classes_.tolist(), self._class_names))

    def _codes(self, y: Any) -> pyarrow.Array:
        """Labels as the schema names them. A schema file says what is done about a label that it does not list, or that is missing."""
        order = self._order()
        labels = _labels.array(y, missing=self.schema is not None).tolist()
        if self.schema is not None:
            return pyarrow.array([order.get(v, None if _domain.absent(v) else str(v)) for v in labels], pyarrow.string())
        try:
            return pyarrow.array([order[v] for v in labels], pyarrow.string())
        except KeyError:
            raise ValueError("y: found a label that classes does not list; add it to classes, or correct the row") from None

    def _named(self, figures: dict[str, Any]) -> dict[str, Any]:
        labels = dict(zip(self._class_names, self.classes_.tolist()))
        if figures.get("classes"):
            figures["classes"].sort(key=lambda one: self._class_names.index(one["class"]))
            for one in figures["classes"]:
                one["class"] = labels[one["class"]]
        return figures

    def _options(self, order: Mapping[Any, str]) -> dict[str, Any]:
        """model_options with class_weight; order has the name of each class in the schema."""
        options = _options("model_options", self.model_options)
        if self.class_weight is not None:
            if not isinstance(self.class_weight, Mapping):
                raise ValueError(
                    f"class_weight: found {self.class_weight!r}; give a dict of public numbers, as {{label: 5}}: balanced "
                    "weights would count the rows of each class, and no charge covers that"
                )
            if "class_weights" in options:
                raise ValueError("class_weight: found it beside model_options['class_weights']; give one of them")
            options["class_weights"] = self.class_weight
        if self.schema is not None:  # the schema's own words, too
            order = {**{name: name for name in self._class_names}, **order}
        for field, parameter in (("class_weights", "class_weight"), ("threshold", "model_options: threshold")):
            if isinstance(options.get(field), Mapping):
                said = list(_of_classes(parameter, options[field], order))
                if len({order[label] for label, _ in said}) < len(said):
                    raise ValueError(f"{parameter}: names a class twice; name each class once")
                options[field] = {order[label]: value for label, value in said}
        return options

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the most probable class of each row, or the class that the model's threshold decides for.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Rows, with the columns of the training.

        Returns
        -------
        ndarray of shape (n_samples,)
            A class of each row. They are no private release: they depend on X, and X alone.

        Examples
        --------
        >>> from sottodp import SottoClassifier
        >>> model = SottoClassifier(lab=True, random_state=1).fit([[0.1], [0.9]] * 50, ["low", "high"] * 50)
        >>> model.predict([[0.8], [0.2]]).tolist()
        ['high', 'low']
        """
        return self._decided(self._predicted(X))

    def _decided(self, predicted: pyarrow.Table) -> NDArray[Any]:
        """The class of each row that sotto predict wrote. Rows that a schema file drops have none."""
        if predicted.num_rows == 0:
            return np.asarray(self.classes_[:0])
        position = {name: i for i, name in enumerate(self._class_names)}
        labels, names = self.classes_, predicted.column(0).combine_chunks()
        found = names.dictionary.to_pylist()
        if any(name not in position for name in found):
            if labels.dtype.kind not in "OU":
                raise ValueError("X: the schema drops some of the rows, which have no class then; mend them, or leave them out")
            labels, position = np.append(labels, np.asarray([""], dtype=labels.dtype)), {**position, "": len(labels)}
        return np.asarray(labels[np.asarray([position[name] for name in found], dtype=int)[names.indices.to_numpy()]])

    @available_if(lambda self: self.model not in ("svm", "huber-svm"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the model's probability of each class, in the order of classes_.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Rows, with the columns of the training.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities; each row adds up to 1.

        Examples
        --------
        >>> from sottodp import SottoClassifier
        >>> model = SottoClassifier(lab=True, random_state=1).fit([[0.1], [0.9]] * 50, ["low", "high"] * 50)
        >>> model.predict_proba([[0.8], [0.2]]).shape
        (2, 2)
        """
        return self._columns_of_classes(X)

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the margin of each row.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Rows, with the columns of the training.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Above 0 for the second of two classes; of more, log-odds up to a number of each row.

        Examples
        --------
        >>> from sottodp import SottoClassifier
        >>> model = SottoClassifier(lab=True, random_state=1).fit([[0.1], [0.9]] * 50, ["low", "high"] * 50)
        >>> (model.decision_function([[0.8], [0.2]]) > 0).tolist()
        [False, True]
        """
        with np.errstate(divide="ignore"):
            z: NDArray[np.float64] = np.log(self._columns_of_classes(X))
        return z[:, 1] - z[:, 0] if len(self.classes_) == 2 else z

    def _columns_of_classes(self, X: ArrayLike) -> NDArray[np.float64]:
        return self._probabilities(self._predicted(X))

    def _probabilities(self, predicted: pyarrow.Table) -> NDArray[np.float64]:
        """The probabilities of each row that sotto predict wrote, NaN for rows that a schema file drops."""
        order = self._model_order()
        if predicted.num_rows == 0:
            return np.empty((0, len(order)))
        return np.column_stack([predicted.column(1 + i).to_numpy() for i in order])


class SottoRegressor(_Scored, RegressorMixin, _Sotto):
    target_range: tuple[float, float] | None
    target_scale: float | None = None

    _says_label = "target_range"

    def __init__(
        self, epsilon: float | None = None, delta: float | None = None, adjacency: _types.Adjacency | None = None, *,
        model: str | None = None, method: str = "auto", model_options: Mapping[str, Any] | None = None,
        method_options: Mapping[str, Any] | None = None, schema: _types.Path | None = None, domain: _types.Domain | None = None,
        hats: int | None = None, label: str | None = None, target_range: tuple[float, float] | None = None, rows: int | None = None,
        dataset: str | None = None,
        row_scaling: Literal["scale", "project"] = "scale", ledger: _types.Path | None = None, run_dir: _types.Path | None = None,
        lab: bool = False, random_state: int | RandomState | None = None, accept_delta: bool = False, accept_dropped: bool = False,
        target_scale: float | None = None, holdout: float | None = None, disclosure: Mapping[str, Any] | None = None, void: bool = False,
    ) -> None:
        self._keep(locals())

    def _model(self) -> str:
        return self.model or "linear"

    def _set_label(self, label: Mapping[str, Any], classes: Sequence[Any] | None) -> None:
        if classes is not None:
            raise ValueError("classes: a regression has none; leave classes out")
        self.target_range = (label["bounds"]["min"], label["bounds"]["max"])
        self.target_scale = label.get("scale")

    def _range(self, otherwise: str = "") -> dict[str, Any]:
        """What a schema says of the target."""
        if self.target_range is None:
            raise ValueError(f"target_range: must be said, or schema=FILE: the range that occurs is not private{otherwise}")
        try:
            low, high = map(float, self.target_range)
        except (TypeError, ValueError):
            raise ValueError(f"target_range: found {self.target_range!r}; give a pair of numbers (low, high)") from None
        scale = {} if self.target_scale is None else {"scale": _number("target_scale", self.target_scale)}
        return {"min": low, "max": high, **scale}

    def _codes(self, y: Any) -> NDArray[np.float64]:
        found = np.asarray(y)
        if found.dtype.kind in "mMc" or found.dtype.kind == "O" and any(isinstance(v, (np.timedelta64, np.datetime64, complex)) for v in found.ravel()):
            raise ValueError(
                f"y: found {'complex numbers. Complex data not supported' if found.dtype.kind == 'c' else 'times, durations or complex numbers'}; "
                "give numbers in a unit of your own, as durations divided by numpy.timedelta64(1, 's')"
            )
        try:
            return np.asarray(y, dtype=float)
        except (TypeError, ValueError):  # the error would quote a label
            raise ValueError("y: found what is no number; give numbers") from None

    def fit(self, X: ArrayLike, y: ArrayLike, **refused: Any) -> SottoRegressor:
        """Train on the rows of X with the numbers y, and charge the ledger.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Rows; a data frame of pandas or Polars, where schema or a dict as domain names its columns.
        y : array of shape (n_samples,)
            The number of each row, clamped to ``target_range``.
        **refused
            Nothing else is allowed; ``sample_weight`` is refused with its reason.

        Returns
        -------
        SottoRegressor
            The estimator itself.

        Raises
        ------
        ValueError
            If a public fact or a privacy parameter is missing or wrong: it names the parameter, and nothing was charged.
        BudgetError
            If the dataset's lifetime budget does not cover the fit; nothing was charged.
        PrivacyError
            If privacy does not allow it for another reason, as for rows that the ledger knows under another name.

        Examples
        --------
        >>> from sottodp import SottoRegressor
        >>> SottoRegressor(lab=True, random_state=1).fit([[0.1], [0.9]] * 50, [1, 9] * 50).guarantee_.lab
        True
        """
        refuse(refused)
        named = y
        if y is not None:
            y = self._codes(y)
        X, y = _checked(self, X, y, y_numeric=True)
        options = _options("model_options", self.model_options)
        if self.schema is not None:
            self._fit(X, y, None, options, named)
            return self
        if self.target_range is None and self.lab:
            low, high = float(np.min(y)), float(np.max(y))
            label = {"min": low - 1, "max": high + 1} if low == high else {"min": low, "max": high}
        else:
            label = self._range("; lab=True takes it from y")
        self._fit(X, y, label, options, named)
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the predicted number of each row.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Rows, with the columns of the training.

        Returns
        -------
        ndarray of shape (n_samples,)
            Numbers in the target's units. They are no private release: they depend on X, and X alone.

        Examples
        --------
        >>> from sottodp import SottoRegressor
        >>> model = SottoRegressor(lab=True, random_state=1).fit([[0.1], [0.9]] * 50, [1, 9] * 50)
        >>> low, high = model.predict([[0.2], [0.8]])
        >>> bool(low < high)
        True
        """
        return self._numbers(self._predicted(X))

    @staticmethod
    def _numbers(predicted: pyarrow.Table) -> NDArray[np.float64]:
        """The prediction of each row that sotto predict wrote, NaN for rows that a schema file drops."""
        return predicted.column(0).to_numpy().copy() if predicted.num_rows else np.empty(0)  # Arrow's own cannot be written


def _read(schema: _types.Path) -> dict[str, Any]:
    """What sotto says of a schema file."""
    try:
        return dict(json.loads(run("schema", "check", schema, "--json")))
    except InputError as error:
        raise type(error)(f"schema: {error}") from None


def _of_classes(parameter: str, said: Mapping[Any, Any], order: Mapping[Any, str]) -> Iterator[tuple[Any, Any]]:
    """The classes and numbers of a dict."""
    for name, value in said.items():
        if name not in order:
            raise ValueError(f"{parameter}: found {name!r}; choose from the classes {', '.join(map(repr, order))}")
        if not isinstance(value, numbers.Real):
            raise ValueError(f"{parameter}: found {value!r} for {name!r}; give a number")
        yield name, value


def refuse(arguments: Mapping[str, Any]) -> None:
    """Other arguments of fit than X and y."""
    if arguments.get("sample_weight") is not None:  # None says that all rows count alike, as they do
        raise ValueError(
            "sample_weight: found it; use class_weight instead, as {label: 5}: what a row may add has one public bound, "
            "and weights of rows may depend on what is private"
        )
    if other := [name for name in arguments if name != "sample_weight"]:
        raise TypeError(f"fit: found {', '.join(other)}; give only X and y")


def _checked(self: _Sotto, X: Any, y: Any, **more: Any) -> tuple[Any, Any]:
    """X and y as scikit-learn checks them. A frame stays a frame if its types have a meaning."""
    _domain.tabular(X)
    if self.schema is not None or isinstance(self.domain, Mapping):
        columns = [str(name) for name in getattr(X, "columns", ())]
        for name in columns:
            if columns.count(name) > 1:
                raise ValueError(f"X: found the column {name!r} a second time; give each column once")
        validate_data(self, X, skip_check_array=True)
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        y = np.asarray(y).ravel()
        if len(X) == 0:
            raise ValueError("X: has no rows; a fit needs rows")
        if len(X) != len(y):
            raise ValueError(f"y: found {len(y)} labels; give one for each of the {len(X)} rows of X")
        return X, y
    try:
        with _unquoted():
            checked: tuple[Any, Any] = validate_data(self, X, y, **_finite(self.domain), **more)
            return checked
    except ValueError as error:
        if "could not convert" in str(error):  # the error would quote a cell
            raise ValueError("X: found text where numbers should be; say domain as a dict or schema=FILE for a frame with categories") from None
        raise


_CLASSIFIER_EXAMPLES = """>>> import numpy as np
    >>> from sottodp import SottoClassifier
    >>> X = np.random.default_rng(1).uniform(0, 120, (1000, 1))
    >>> model = SottoClassifier(
    ...     epsilon=1, delta=1e-6, adjacency="add-or-remove", dataset="ages", rows=1000, domain=(0, 120), classes=["young", "old"])
    >>> model = model.fit(X, np.where(X[:, 0] < 60, "young", "old"))
    >>> model.predict([[100]]).tolist()
    ['old']
    >>> model.guarantee_.epsilon
    1"""

_REGRESSOR_EXAMPLES = """>>> import numpy as np
    >>> from sottodp import SottoRegressor
    >>> X = np.random.default_rng(2).uniform(0, 120, (1000, 1))
    >>> model = SottoRegressor(
    ...     epsilon=1, delta=1e-6, adjacency="add-or-remove", dataset="heights", rows=1000, domain=(0, 120), target_range=(0, 60))
    >>> low, high = model.fit(X, X[:, 0] / 2).predict([[20], [100]])
    >>> bool(low < high)
    True"""

_HOLDOUT = """holdout : float, optional
        The share of the rows that is not trained on, but scored with noise, at no further cost: at most 0.5. The figures are
        ``holdout_``, as `evaluate_private` returns them.
    """

_HELD_OUT = """    holdout_ : dict
        With ``holdout``: the private scores of the rows that were held out.
"""

SottoClassifier.__doc__ = "A differentially private classifier.\n" + _PARAMETERS.format(
    models='"logistic" (default for two classes), "softmax" (for more), or another one of the page Models.',
    label="classes : sequence, optional\n        All classes that a label may have, public, in any order. ``classes_`` has them sorted and in the type of y, as in all of scikit-learn.",
    more="class_weight : dict, optional\n        Public weights of classes in the loss, as ``{label: 5}``, 1 where there is none; they cost nothing.\n    " + _HOLDOUT,
    after=_HELD_OUT,
    examples=_CLASSIFIER_EXAMPLES,
)
SottoRegressor.__doc__ = "A differentially private regression.\n" + _PARAMETERS.format(
    models='"linear" (default), or another one of the page Models.',
    label="target_range : (low, high), optional\n        Public bounds of the target, in its own units. Targets beyond are clamped.",
    more="""target_scale : float, optional
        About the standard deviation of the target, known without the rows; it helps where target_range is wide.
    """ + _HOLDOUT,
    after=_HELD_OUT,
    examples=_REGRESSOR_EXAMPLES,
)

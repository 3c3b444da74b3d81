"""The estimators."""

import contextlib
import csv
import io
import json
import math
import numbers
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from . import _domain
from ._command import Rows, run
from .errors import SottoError
from .preprocessing import warn_of_fitted_steps

_LAB_BUDGET = {"epsilon": 1.0, "delta": 1e-5, "adjacency": "add-or-remove"}

LABEL = "sotto-label"  # the label's column; features may have any other name

_LINEAR = ("logistic", "linear", "poisson", "svm", "huber-svm", "softmax")  # models with a coefficient for each encoded feature

_OWN_STEPS = "X was not made by steps that were fitted to the same rows, such as scalers, encoders, imputers or selections."


@dataclass(frozen=True)
class Guarantee:
    """What one fit promises, and under which assumptions."""

    epsilon: float
    delta: float
    adjacency: str  # add-or-remove, or replace-one
    unit: str  # whom it protects: "record", which is one row, or what the schema calls a unit
    dataset: str  # whose budget in the ledger was charged
    lab: bool  # a lab run promises nothing
    run: str  # its name in the ledger
    assumptions: tuple  # public facts, a sentence each
    unit_rows: int = 0  # the most rows of a unit that are used; 0 for one row
    mu: float | None = None  # of Gaussian differential privacy, for the whole plan; None where no theorem gives it
    outside: float | None = None  # what an attack's true positive rate may be above that of mu
    regret: float | None = None  # what mu gives away of either rate
    lifetime: str = ""  # what the ledger says of the dataset after this fit: all runs together, and accesses without protection

    def __str__(self):
        if self.lab:
            return "none: a lab run; do not use this model where rows need protection"
        rows = f" (all of its rows, at most {self.unit_rows})" if self.unit_rows > 1 else ""
        kind = {"add-or-remove": "adding or removing", "replace-one": "replacing"}[self.adjacency]
        delta = f", plus {self.delta:g}" if self.delta else ""
        return (
            f"ε = {self.epsilon:g}, δ = {self.delta:g}: {kind} any one {self.unit}{rows} of {self.dataset!r} changes the "
            f"probability of any set of outcomes by at most a factor of {_up(math.exp(self.epsilon))}{delta}"
            + (f". All that the ledger knows of {self.dataset!r}: {self.lifetime}" if self.lifetime else "")
        )


class _Sotto(BaseEstimator):
    """What both estimators share."""

    _search = None  # the spec's block tune, of a SottoSearchCV

    def _keep(self, parameters):
        """Keep the arguments of __init__ under their names, unchanged, as scikit-learn requires."""
        for name, value in parameters.items():
            if name != "self":
                setattr(self, name, value)

    def _fit(self, X, y, label, options=None):
        """Train on features X, a column for each name, and the label's texts or numbers y; options: in place of model_options."""
        features, names = self._features(X)
        warn_of_fitted_steps(self)
        with tempfile.TemporaryDirectory(prefix="sotto-") as work, Rows() as rows:
            work = Path(work)  # holds only public files
            out = Path(self.run_dir).absolute() if self.run_dir else work / "run"
            spec = {
                "data": rows.path,
                "schema": str(work / "schema.yaml"),
                "model": {"name": self._model(), **(options or self.model_options or {})},
                "method": {"name": self.method, **(self.method_options or {})},
                "privacy": self._budget(),
                "out": str(out),
            }
            if self._search is not None:
                del spec["method"], spec["out"]
                spec["tune"] = self._search
            if self.ledger is not None:
                spec["ledger"] = str(self.ledger)
            if self.disclosure is not None:
                spec["disclosure"] = dict(self.disclosure)
            for name in ("accept_delta", "accept_dropped"):
                if getattr(self, name):
                    spec[name] = True
            if self.lab:
                spec["lab"] = True
                if self.random_state is not None:
                    spec["seed"] = _seed(self.random_state)
            elif self.random_state is not None:
                raise ValueError("random_state: seeded noise protects nobody; it is for lab=True only")
            if self.schema is not None:
                spec["schema"] = str(Path(self.schema).absolute())
                target, unit = self._columns_of_schema()
                self._columns = None
            else:
                target, unit = LABEL, None
                schema = self._schema(features, names, label)
                self._columns = schema["columns"][:-1]
                (work / "schema.yaml").write_text(json.dumps(schema), encoding="utf-8")
            if target in names:
                raise ValueError(f"X has a column {target!r}, which is the label's name")
            self._write(rows, features, names, {target: y})
            (work / "spec.yaml").write_text(json.dumps(spec), encoding="utf-8")  # JSON is YAML
            with _in_words(work, rows, names):
                if self._search is None:
                    run("fit", work / "spec.yaml", "--json", "--quiet", rows=rows)
                else:
                    run("tune", work / "spec.yaml", "--json", "--quiet", "--out", out, rows=rows)
                    self._found = json.loads((out / "tune.json").read_text(encoding="utf-8"))
            self._model_file = (out / "model.json").read_text(encoding="utf-8")
            done = json.loads((out / "run.json").read_text(encoding="utf-8"))
        budget, schema = done["budget"], done["schema"]
        self.guarantee_ = Guarantee(
            epsilon=budget["epsilon"], delta=budget["delta"], adjacency=budget["adjacency"], unit=schema["unit"],
            dataset=schema["dataset"], lab=bool(done.get("lab")), run=done["id"],
            assumptions=(*done["assumptions"], _OWN_STEPS), unit_rows=done.get("unit_rows", 0), **done.get("gdp", {}),
            lifetime="" if done.get("lab") else self._lifetime(schema["dataset"]),
        )
        self._names = names
        self._keep_coefficients()
        self._unit = unit
        if unit is not None:  # rows to predict need no unit
            kept = self.feature_names_in_ != unit
            self.feature_names_in_, self.n_features_in_ = self.feature_names_in_[kept], int(kept.sum())
        return self

    def _write(self, rows, features, names, more):
        columns = self._columns or [None] * len(names)
        table = {name: _domain.cells(feature, column) for name, feature, column in zip(names, features, columns)}
        table.update({name: pyarrow.array(column) for name, column in more.items()})
        pyarrow.parquet.write_table(pyarrow.table(table), rows.file)

    def _lifetime(self, dataset):
        """The ledger's statement on a dataset, with all runs by now."""
        where = () if self.ledger is None else ("--ledger", self.ledger)
        return json.loads(run("ledger", "show", dataset, "--json", *where))["dataset"]["statement"]

    def _keep_coefficients(self):
        """coef_, intercept_ and coef_names_ of a linear model, as scikit-learn shapes them."""
        model = json.loads(self._model_file)
        if model["model"] not in _LINEAR:
            return
        factor = model.get("margin_factor") or 1
        w = np.asarray(model["w"]).reshape(-1, model["dim"]) * factor
        intercept = np.full(len(w), model.get("offset", 0.0) * factor)
        if not model.get("classes"):
            w, intercept = w[0], float(intercept[0])
        self.coef_, self.intercept_ = w, intercept
        self.coef_names_ = np.asarray(model.get("features") or [f"x{i}" for i in range(model["dim"])], dtype=object)

    def _budget(self):
        """ε, δ and the relation: no default suits every table, so only the lab has one."""
        budget = {"epsilon": self.epsilon, "delta": self.delta, "adjacency": self.adjacency}
        if self.lab:
            return {name: default if budget[name] is None else budget[name] for name, default in _LAB_BUDGET.items()}
        missing = [name for name, value in budget.items() if value is None]
        if missing:
            raise ValueError(f"{', '.join(missing)}: must be said; adjacency is add-or-remove or replace-one")
        return budget

    def _features(self, X):
        """The columns of X and their names. A frame keeps its types if a schema or a dict says what they mean."""
        if self.schema is not None or isinstance(self.domain, dict):
            if not hasattr(X, "columns"):
                raise ValueError("X: found no column names; a schema or a dict as domain wants a data frame")
            names = [str(name) for name in X.columns]
            return [X[name] for name in X.columns], names
        names = [f"x{i}" for i in range(X.shape[1])]
        return [X[:, i] for i in range(X.shape[1])], names

    def _schema(self, features, names, label):
        """The schema from scikit-learn's parameters."""
        if not self.lab:
            missing = [name for name in ("dataset", "domain") if getattr(self, name) is None]
            if self.rows is None and self.adjacency != "replace-one":
                missing.append("rows")
            if missing:
                raise ValueError(
                    f"{', '.join(missing)}: must be said, or schema=FILE: what is read off the rows is not private; "
                    "lab=True does so, for tables that need no protection"
                )
        columns = _domain.columns(self.domain, names, features)
        if self.hats is not None:
            for column in columns:
                if column["type"] == "numeric":
                    column.update({"hats": self.hats} if self.hats else {"encode": "linear"})
        return {
            "dataset": self.dataset or "lab",
            "rows": int(self.rows or len(features[0])),
            "format": {"kind": "csv"},
            "row_scaling": self.row_scaling,
            "columns": [*columns, {"name": LABEL, "type": "label", **label}],
        }

    def _columns_of_schema(self):
        """The names of the label's column and of the unit's, None where there is none, from sotto's own reading of the schema."""
        said = json.loads(run("schema", "check", self.schema, "--json"))
        return said["label"], said.get("unit_column")

    def _validated(self, X):
        if self.schema is not None or isinstance(self.domain, dict):
            if self._unit in getattr(X, "columns", ()):
                X = X.drop(columns=self._unit)
            validate_data(self, X, reset=False, skip_check_array=True)
            return X
        return validate_data(self, X, reset=False, **_finite(self.domain))

    def _predicted(self, X):
        """The lines that sotto predict writes, as lists of texts, with all digits."""
        check_is_fitted(self, "guarantee_")
        features, names = self._features(self._validated(X))
        with tempfile.TemporaryDirectory(prefix="sotto-") as work, Rows() as rows:
            work = Path(work)
            (work / "model.json").write_text(self._model_file, encoding="utf-8")
            self._write(rows, features, names, {})
            with _in_words(work, rows, names):
                text = run("predict", "--model", work / "model.json", "--data", rows.path, "--digits", 17, rows=rows)
        return list(csv.reader(io.StringIO(text)))[1:]

    def evaluate_private(self, X, y, *, epsilon, delta=None, rows=None, dataset=None, by=None, out=None):
        """Score the model on protected rows, with noise, and charge the ledger (``sotto evaluate --epsilon``).

        Parameters
        ----------
        X, y
            Rows and their labels or numbers.
        epsilon, delta : float
            What the dataset is charged; δ is by default that of the training.
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
            error. See docs/how-to/evaluation.md.
        """
        check_is_fitted(self, "guarantee_")
        features, names = self._features(self._validated(X))
        target = LABEL if self.schema is None else self._columns_of_schema()[0]
        asked = ["--epsilon", epsilon]
        for flag, value in (("--delta", delta), ("--rows", rows), ("--dataset", dataset), ("--by", by), ("--ledger", self.ledger)):
            if value is not None:
                asked += [flag, value]
        with tempfile.TemporaryDirectory(prefix="sotto-") as work, Rows() as cells:
            work = Path(work)
            (work / "model.json").write_text(self._model_file, encoding="utf-8")
            self._write(cells, features, names, {target: self._codes(y)})
            with _in_words(work, cells, names):
                text = run("evaluate", "--model", work / "model.json", "--data", cells.path, "--json", "--out", out or work / "record", *asked, rows=cells)
        return self._named(json.loads(text)["private"])

    def effects(self):
        """What each column adds to the model's margin, from the released model alone: a list of dicts.

        The keys are those of ``sotto export --to csv``: column, kind, value, effect, low, high, ratio. Numbers are
        floats, or None where there is none. It is for models of two classes or of a number.
        """
        check_is_fitted(self, "guarantee_")
        with tempfile.TemporaryDirectory(prefix="sotto-") as work:
            model = Path(work) / "model.json"
            model.write_text(self._model_file, encoding="utf-8")
            text = run("export", model, "--to", "csv", "--out", "-")
        lines = list(csv.DictReader(io.StringIO(text)))
        for line in lines:
            line.update({key: float(line[key]) if line[key] else None for key in ("effect", "low", "high", "ratio")})
        return lines


@contextlib.contextmanager
def _in_words(work, rows, names):
    """Errors of the command in terms of the estimator's parameters: no temporary file, no column by its number."""
    try:
        yield
    except SottoError as error:
        text = str(error)
        text = re.sub(re.escape(str(work)) + r"/(schema|spec)\.yaml(:\d+:\d+)?: ", "", text)
        text = re.sub(r"^columns\[(\d+)\]\.", lambda m: f"domain: column {names[int(m[1])]!r}: " if int(m[1]) < len(names) else "y: ", text)
        text = re.sub(r"^privacy\.", "", text)
        text = re.sub(r"^method\.name\b", "method", text)
        text = re.sub(r"^model\.name\b", "model", text)
        text = re.sub(r"^(method|model)\.", r"\1_options: ", text)
        text = text.replace(f"{rows.path}: ", "X: ", 1) if text.startswith(f"{rows.path}: ") else text
        text = re.sub(r"Write dataset: (.*) in the schema, so", r"Say dataset='\1', so", text)
        raise type(error)(text) from None


def _finite(domain):
    """What scikit-learn's checks say to NaN: it may be there if domain has a rule for it."""
    return {"ensure_all_finite": "allow-nan"} if _domain.replaces(domain) else {}


def _up(x):
    """x with four digits, rounded up, as every bound is."""
    unit = 10.0 ** (math.floor(math.log10(x)) - 3)
    return f"{math.ceil(x / unit - 1e-9) * unit:.4g}"


def _seed(random_state):
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    return int(random_state.randint(2**31))  # a RandomState, as in scikit-learn


_PARAMETERS = """
    Parameters
    ----------
    epsilon, delta : float
        The privacy budget of one fit.
    adjacency : "add-or-remove" or "replace-one"
        Which tables are neighbors. None of the three has a default, but in the lab (1, 1e-5, add-or-remove).
    model : str, optional
        {models}
    method : str
        As in ``sotto fit --method``; "auto" chooses every number from public facts.
    model_options, method_options : dict, optional
        Further fields of the spec's blocks ``model`` and ``method``, as ``{{"l2": 1e-4}}``.
    schema : path, optional
        A schema file, which says all that follows; X is a data frame with its columns then.
    domain : (low, high), pairs of shape (n_features, 2), or dict, optional
        Public bounds of the features. In a dict, a column's name maps to what is known of it; X is a data frame then.
        That is (low, high), or the levels of a categorical column: a list of texts or of truth values, a pandas
        ``CategoricalDtype`` or a Polars ``Enum``. Or it is a dict of ``"bounds"`` or ``"levels"`` and further
        fields, as ``{{"bounds": (0, 9), "missing": 4}}``: ``missing`` replaces NaN and None, ``unknown`` other levels.
        Values beyond a bound are clamped to it. Without a rule, a missing value is an error.
    hats : int, optional
        So many piecewise-linear bumps over its bounds beside each numeric feature, from 2 to 64, for effects that are
        no straight lines; 0 is none. Left out, method auto chooses. A schema file says this of each column.
    {label}
    rows : int, optional
        Public, nominal number of rows. Under replace-one it is that of X.
    dataset : str, optional
        The name of the table in the ledger, whose lifetime budget is charged.
    row_scaling : "scale" or "project"
        Whether each row is brought to the norm 1, or only shrunk to it.
    ledger : path or URL, optional
        Default: the user's own.
    run_dir : path, optional
        A new directory for the run's record, which ``sotto verify`` checks; it is not kept without.
    lab : bool
        Take what is missing from the rows, and allow ``random_state``: no promise is made then.
    random_state : int, RandomState or None
        Seeds samples and noise; for lab=True only.
    accept_delta : bool
        Accept a δ of 1/rows or more. Without it, `errors.DeltaError` is raised.
    accept_dropped : bool
        Accept that the schema's rule for bad rows drops more than 1 % of them. Without it, `errors.DroppedRowsError`
        is raised.
    disclosure : dict, optional
        What only a person knows, for ``sotto disclose``, as ``{{"purpose": "…", "operator": "…"}}`` (docs/how-to/disclosure.md).

    Attributes
    ----------
    guarantee_ : Guarantee
        ε, δ, μ, whom it protects, the public facts that it rests on, and what all fits that the ledger knows
        promise together (``lifetime``).
    coef_, intercept_ : ndarray or float
        Of a linear model: the margin is that of an encoded row, brought to its norm, with coef_, plus intercept_.
        `effects` has them in the columns' own units.
    coef_names_ : ndarray of str
        The features of an encoded row: columns, their levels and bumps, and at the end "(intercept)", which is 1 before
        the row is brought to its norm.
    n_features_in_, feature_names_in_
        The columns of X.
"""


class SottoClassifier(ClassifierMixin, _Sotto):
    def __init__(
        self, epsilon=None, delta=None, adjacency=None, *, model=None, method="auto", model_options=None,
        method_options=None, schema=None, domain=None, hats=None, classes=None, rows=None, dataset=None, row_scaling="scale",
        ledger=None, run_dir=None, lab=False, random_state=None, accept_delta=False, accept_dropped=False, class_weight=None, disclosure=None,
    ):
        self._keep(locals())

    def _model(self):
        return self.model or ("logistic" if len(self.classes_) == 2 else "softmax")

    def fit(self, X, y, **refused):
        """Train on the rows of X with the labels y, and charge the ledger."""
        _refuse(refused)
        X, y = _checked(self, X, y)
        check_classification_targets(y)
        if self.schema is not None:
            self.classes_ = np.asarray(json.loads(run("schema", "check", self.schema, "--json"))["classes"])
            return self._fit(X, self._codes(y), None, self._options({v: v for v in self.classes_.tolist()}))
        if self.classes is not None:
            self.classes_ = np.asarray(self.classes)
        elif self.lab:
            self.classes_ = np.unique(y)
        else:
            raise ValueError("classes: must be said, or schema=FILE: the classes that occur are not private; lab=True takes them from y")
        if len(self.classes_) < 2:
            raise ValueError(f"Classifier can't train when only one class is present: {len(self.classes_)} class")
        order = self._order()
        return self._fit(X, self._codes(y), {"classes": list(order.values())}, self._options(order))

    def _order(self):
        """The name of each class in the schema."""
        return {value: str(i) for i, value in enumerate(self.classes_.tolist())}

    def _codes(self, y):
        """Labels as the schema names them."""
        if self.schema is not None:
            return [str(v) for v in y]
        order = self._order()
        try:
            return [order[v] for v in np.asarray(y).tolist()]
        except KeyError:
            raise ValueError("y: a label is none of classes") from None

    def _named(self, figures):
        """Figures with the labels of y."""
        if self.schema is None:
            for one in figures.get("classes", ()):
                one["class"] = self.classes_[int(one["class"])].item()
        return figures

    def _options(self, order):
        """model_options with class_weight; order has the name of each class in the schema."""
        options = dict(self.model_options or {})
        if self.class_weight is not None:
            if not isinstance(self.class_weight, dict):
                raise ValueError(
                    f"class_weight: found {self.class_weight!r}; allowed is a dict of public numbers, as {{label: 5}}: balanced "
                    "weights would count the rows of each class, which nobody charged"
                )
            if "class_weights" in options:
                raise ValueError("class_weight: found it beside model_options['class_weights']; allowed is one of them")
            options["class_weights"] = self.class_weight
        for field in ("class_weights", "threshold"):
            if isinstance(options.get(field), dict):
                options[field] = {order.get(name, str(name)): value for name, value in options[field].items()}
        return options

    def predict(self, X):
        """Return the most probable class of each row, or the class that the model's threshold decides for."""
        lines = self._predicted(X)
        if self.schema is not None:
            return np.asarray([line[0] for line in lines])
        return self.classes_[[int(line[0]) for line in lines]]

    @available_if(lambda self: self.model not in ("svm", "huber-svm"))
    def predict_proba(self, X):
        """Return the model's probability of each class, in the order of classes_."""
        return self._columns_of_classes(X)

    def decision_function(self, X):
        """Return the margin of each row, above 0 for the second of two classes; of more, log-odds up to a number of each row."""
        with np.errstate(divide="ignore"):
            z = np.log(self._columns_of_classes(X))
        return z[:, 1] - z[:, 0] if len(self.classes_) == 2 else z

    def _columns_of_classes(self, X):
        return np.asarray([[float(v) for v in line[1:]] for line in self._predicted(X)])


class SottoRegressor(RegressorMixin, _Sotto):
    def __init__(
        self, epsilon=None, delta=None, adjacency=None, *, model=None, method="auto", model_options=None,
        method_options=None, schema=None, domain=None, hats=None, target_range=None, rows=None, dataset=None,
        row_scaling="scale", ledger=None, run_dir=None, lab=False, random_state=None, accept_delta=False, accept_dropped=False, disclosure=None,
    ):
        self._keep(locals())

    def _model(self):
        return self.model or "linear"

    def _codes(self, y):
        return np.asarray(y, dtype=float)

    def _named(self, figures):
        return figures

    def fit(self, X, y, **refused):
        """Train on the rows of X with the numbers y, and charge the ledger."""
        _refuse(refused)
        X, y = _checked(self, X, y, y_numeric=True)
        y = np.asarray(y, dtype=float)
        if self.schema is not None:
            return self._fit(X, y, None)
        if self.target_range is not None:
            low, high = map(float, self.target_range)
        elif self.lab:
            low, high = float(np.min(y)), float(np.max(y))
            if low == high:
                low, high = low - 1, high + 1
        else:
            raise ValueError("target_range: must be said, or schema=FILE: the range that occurs is not private; lab=True takes it from y")
        return self._fit(X, y, {"min": low, "max": high})

    def predict(self, X):
        """Return the predicted number of each row."""
        return np.asarray([float(line[0]) for line in self._predicted(X)])


def _refuse(arguments):
    """Other arguments of fit than X and y."""
    if "sample_weight" in arguments:
        raise ValueError(
            "sample_weight: found it; allowed is class_weight, as {label: 5}: what a row may add has one public bound, "
            "and weights of rows may depend on what is private"
        )
    if arguments:
        raise TypeError(f"fit: found {', '.join(arguments)}; allowed are X and y")


def _checked(self, X, y, **more):
    """X and y as scikit-learn checks them. A frame stays a frame if its types have a meaning."""
    if self.schema is not None or isinstance(self.domain, dict):
        validate_data(self, X, skip_check_array=True)
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        y = np.asarray(y).ravel()
        if len(X) != len(y):
            raise ValueError(f"X has {len(X)} rows, y has {len(y)}")
        return X, y
    try:
        return validate_data(self, X, y, **_finite(self.domain), **more)
    except ValueError as error:
        if "could not convert" in str(error):  # the error would quote a cell
            raise ValueError("X: found text where numbers should be; say domain as a dict or schema=FILE for a frame with categories") from None
        raise


SottoClassifier.__doc__ = "A differentially private classifier.\n" + _PARAMETERS.format(
    models='"logistic" (default for two classes), "softmax" (for more), "svm", "huber-svm" or "mlp".',
    label="classes : list, optional\n        All classes that a label may have, public.\n"
    "    class_weight : dict, optional\n        Public weights of classes in the loss, as ``{{label: 5}}``, 1 where there is none; they cost nothing.",
)
SottoRegressor.__doc__ = "A differentially private regression.\n" + _PARAMETERS.format(
    models='"linear" (default) or "mlp".',
    label="target_range : (low, high), optional\n        Public bounds of the target. Targets beyond are clamped.",
)

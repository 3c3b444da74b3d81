"""Parameters of other libraries, and what stands for them here."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

_CLIP = 'method_options={"clip": …}, the norm to which each row\'s gradient is clipped; "auto" chooses it'
_NOISE = "epsilon and delta, from which the noise follows; method_options={\"noise_multiplier\": …} sets it"
_STEPS = 'method_options={"steps": …}; "auto" chooses it'
_NONE = "nothing: it has no counterpart here"

# By their names, what to write. docs/how-to/coming-from.md has the same as a table.
INSTEAD = {
    # diffprivlib
    "bounds": "domain, (low, high) of all features or of each",
    "bounds_X": "domain, (low, high) of all features or of each",
    "bounds_y": "target_range, (low, high)",
    "data_norm": "domain, from whose bounds the norm of rows follows; row_scaling says how a row is brought to it",
    "accountant": "dataset and ledger, which count the budget of all fits; `sotto ledger budget` limits it",
    "fit_intercept": "nothing: there is an intercept; a schema file with intercept: false has none",
    # Opacus, TensorFlow Privacy
    "noise_multiplier": _NOISE, "target_epsilon": "epsilon", "target_delta": "delta", "max_grad_norm": _CLIP, "l2_norm_clip": _CLIP, "clipping_norm": _CLIP,
    "sample_rate": 'method_options={"batch": …}, the expected number of rows of a step', "batch_size": 'method_options={"batch": …}, the expected number of rows of a step',
    "epochs": _STEPS, "steps": _STEPS, "num_microbatches": "nothing: each row, or each unit, is clipped by itself",
    "poisson_sampling": 'nothing: batches are Poisson samples; method_options={"sampling": …} chooses others', "secure_mode": "nothing: noise is always from a secure source, exact on a grid",
    # OpenDP, SmartNoise, Tumult
    "privacy_loss": "epsilon and delta", "budget": "epsilon and delta", "privacy_budget": "epsilon and delta", "privacy_unit": "schema, whose unit says whom it protects; without it, a row",
    "input_metric": "adjacency, \"add-or-remove\" or \"replace-one\"", "neighboring": "adjacency, \"add-or-remove\" or \"replace-one\"", "public_rows": "rows", "dataset_size": "rows", "n_rows": "rows", "n": "rows",
    "eps": "epsilon", "privacy_epsilon": "epsilon", "budget_epsilon": "epsilon",
    # scikit-learn
    "C": 'model_options={"l2": …}, the weight of ‖w‖²/2', "alpha": 'model_options={"l2": …}, the weight of ‖w‖²/2', "penalty": 'model_options={"l2": …}, the weight of ‖w‖²/2',
    "max_iter": _STEPS, "n_epochs": _STEPS, "learning_rate": 'method_options={"rate": …}; "auto" chooses it', "lr": 'method_options={"rate": …}; "auto" chooses it', "eta0": 'method_options={"rate": …}; "auto" chooses it',
    "tol": "nothing: a stop that depends on the rows would have to be charged; method_options={\"steps\": …} sets the steps", "solver": "method", "optimizer": "method",
    "loss": "model", "hidden_layer_sizes": 'model="mlp" with model_options={"layers": ["128 relu"]}', "early_stopping": "nothing: a stop that depends on the rows would have to be charged",
    "warm_start": _NONE, "n_jobs": "nothing: the command uses all processors", "verbose": _NONE, "seed": "random_state, with lab=True alone: seeded noise gives no protection",
    "class_weights": "class_weight", "categories": "classes, or domain for a column's levels", "target": "label", "y_range": "target_range",
}


def refuse(cls: type, named: Mapping[str, Any]) -> None:
    """Refuse parameters that ``cls`` does not have, and say what to write."""
    own = inspect.signature(cls.__init__).parameters  # type: ignore[misc]
    for name in named:
        if name in own:
            continue
        if name in INSTEAD:
            said = INSTEAD[name]
            raise TypeError(f"{name}: unknown parameter of {cls.__name__}; write {said}" if not said.startswith("nothing") else f"{name}: unknown parameter of {cls.__name__}; leave it out{said.removeprefix('nothing')}")
        raise TypeError(f"{name}: unknown parameter of {cls.__name__}; choose from {', '.join(n for n in own if n != 'self')}")

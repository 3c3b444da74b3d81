"""Types that the package's signatures share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Literal

Adjacency = Literal["add-or-remove", "replace-one"]

# What domain says of all columns, or of each.
Domain = tuple[float, float] | Sequence[Any] | Mapping[str, Any]

Path = str | PathLike[str]

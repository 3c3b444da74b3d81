import pickle
import subprocess
import sys

import pytest

import sottodp


def test_import_is_light():
    """Importing the package loads no other; the names that need one load it when they are used."""
    code = """
import sys
import sottodp
heavy = {"sklearn", "scipy", "pandas", "pyarrow", "numpy", "matplotlib"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
assert set(sottodp.__all__) <= set(dir(sottodp))
sottodp.errors.BudgetError, sottodp.command
assert not heavy & set(sys.modules), heavy & set(sys.modules)
sottodp.SottoClassifier
assert "sklearn" in sys.modules and "matplotlib" not in sys.modules
from sottodp import *
assert SottoClassifier is sottodp.SottoClassifier and plots is sottodp.plots
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_names():
    for name in sottodp.__all__:
        assert getattr(sottodp, name) is vars(sottodp)[name]
    with pytest.raises(AttributeError, match="no attribute 'SottoTransformer'"):
        sottodp.SottoTransformer
    assert pickle.loads(pickle.dumps(sottodp.SottoClassifier)) is sottodp.SottoClassifier

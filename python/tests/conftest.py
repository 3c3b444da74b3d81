import pytest


@pytest.fixture(autouse=True)
def ledger(tmp_path, monkeypatch):
    """Each test has a ledger of its own."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

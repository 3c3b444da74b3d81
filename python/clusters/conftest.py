import os

import numpy as np
import pandas as pd
import pytest

FEATURES = ["age", "pressure", "sex"]
SAID = dict(
    domain={"age": (0, 120), "pressure": (60, 220), "sex": ["f", "m"]}, classes=[0, 1], rows=3000, dataset="clinic", lab=True, random_state=1,
    method="sgd", hats=0,
)
LONG = {"steps": 100_000, "batch": 100}  # outlives two deaths


@pytest.fixture(autouse=True, scope="session")
def ledger(tmp_path_factory):
    os.environ["XDG_DATA_HOME"] = os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("ledger"))


@pytest.fixture(scope="session")
def patients():
    random = np.random.default_rng(3)
    age = random.uniform(0, 120, 3000)
    return pd.DataFrame({
        "age": age, "pressure": random.normal(120, 20, 3000), "sex": random.choice(["f", "m"], 3000),
        "ill": (age + random.normal(0, 20, 3000) > 60).astype(int),
    })


@pytest.fixture
def deaths(tmp_path):
    """Kill what processes() names first, twice, each time when the run goes on."""
    import signal
    import threading
    import time

    run, killed = tmp_path / "run", []

    def steps():
        try:
            return (run / "steps.jsonl").read_bytes().count(b"\n")
        except FileNotFoundError:
            return 0

    def wait(more):
        while steps() < more:
            time.sleep(0.3)

    def kill(processes, times=2):
        def loop():
            for _ in range(times):
                wait(steps() + 100)
                victim = None
                while victim is None:  # the cluster may be in the middle of mending itself
                    try:
                        victim = next((pid for pid in processes() if pid not in killed), None)
                        if victim is not None:
                            os.kill(victim, signal.SIGKILL)
                    except Exception:
                        victim = None
                    time.sleep(0.3)
                killed.append(victim)
                time.sleep(3)  # what was on its way to the disk arrives

        thread = threading.Thread(target=loop, daemon=True)
        thread.start()
        return run, killed

    return kill

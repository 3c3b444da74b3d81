"""The code of a cluster's tasks, fed by a driver of plain Python: what Spark and Dask add is tested by .ci/long."""

import dataclasses
import json
import socket
import struct
import sys
import threading
import zlib

import numpy as np
import pandas as pd
import pyarrow
import pytest

import sottodp
import sottodp.dask
import sottodp.spark
from sottodp import _cluster

FEATURES = ["age", "pressure", "sex"]
SAID = dict(
    domain={"age": (0, 120), "pressure": (60, 220), "sex": ["f", "m"]}, rows=900, dataset="clinic", epsilon=1, delta=1e-6,
    adjacency="add-or-remove", method="sgd", method_options={"steps": 30, "batch": 90}, hats=0,
)


def frame():
    random = np.random.default_rng(1)
    age = random.uniform(0, 120, 900)
    return pd.DataFrame({
        "age": age, "pressure": random.normal(120, 20, 900), "sex": random.choice(["f", "m"], 900), "ill": age + random.normal(0, 20, 900) > 60,
    })


def parts(rows, *cuts):
    """Partitions of several batches each."""
    ends = [0, *cuts, len(rows)]
    return [pyarrow.Table.from_pandas(rows[a:b], preserve_index=False).to_batches(100) for a, b in zip(ends, ends[1:])]


class Threads:
    """A cluster of threads."""

    def __init__(self, work, partitions, barrier=True):
        self.work, self.partitions, self.ended, self.wrong, self.over = work, partitions, [], None, threading.Event()
        self.barrier, self.read = threading.Barrier(len(partitions)), []
        self.agree = self._agree if barrier else bool
        self.threads = [threading.Thread(target=self.one, args=(i, rows)) for i, rows in enumerate(partitions)]
        for thread in self.threads:
            thread.start()

    def _agree(self, read):
        self.read.append(read)
        self.barrier.wait(60)
        return all(self.read)

    def one(self, shard, rows):
        try:
            self.ended.append(_cluster.work(self.work, shard, rows, agree=self.agree, stop=self.over.is_set))
        except _cluster.Lost as error:
            self.wrong = error

    def failed(self):
        return self.wrong or next((one for one in self.ended if one.code), None)

    def stop(self):
        self.over.set()
        for thread in self.threads:
            thread.join()


def fit(model, partitions, tasks=Threads):
    _cluster.fit(model, FEATURES, model.label, [*FEATURES, "ill"], len(partitions), ("127.0.0.1:0", "127.0.0.1"), lambda work: tasks(work, partitions))
    return model


def classifier(**more):
    return sottodp.spark.SottoClassifier(label="ill", classes=[False, True], **{**SAID, **more})


def test_partitions_are_one_table(tmp_path):
    rows = frame()
    seeded = dict(lab=True, random_state=7)
    here = sottodp.SottoClassifier(classes=[False, True], **{**SAID, **seeded}).fit(rows[FEATURES], rows["ill"])
    away = fit(classifier(run_dir=tmp_path / "run", **seeded), parts(rows, 100, 100, 350))  # the second is empty
    assert away.partitions_ == 4
    np.testing.assert_array_equal(here.coef_, away.coef_)
    np.testing.assert_array_equal(here.predict(rows[FEATURES]), away.predict(rows[FEATURES]))
    values, probabilities = _cluster.predictions(away, rows)
    np.testing.assert_array_equal(values, here.predict(rows[FEATURES]))
    np.testing.assert_array_equal(probabilities, here.predict_proba(rows[FEATURES]))
    assert (tmp_path / "run" / "report.html").exists()


def test_numbers_and_the_ledger():
    rows = frame().assign(ill=lambda r: r["age"] / 2)
    said = dict(SAID, label="ill", target_range=(0, 60))
    model = fit(sottodp.dask.SottoRegressor(**said), parts(rows, 450))
    low, high = model.predict(pd.DataFrame({"age": [10, 110], "pressure": [120, 120], "sex": ["f", "f"]}))
    assert low < high and model.guarantee_.epsilon == 1 and not model.guarantee_.lab
    # The same rows in another order and division, under another name.
    with pytest.raises(sottodp.errors.ContentProtectedError, match="knows them as \"clinic\""):
        fit(sottodp.dask.SottoRegressor(**{**said, "dataset": "other"}), parts(rows[::-1], 200, 500))
    assert "(ε 2, δ 0.000002)" in fit(sottodp.dask.SottoRegressor(**said), parts(rows[::-1], 200)).guarantee_.lifetime


@pytest.mark.parametrize("barrier", [True, False])
def test_rows_that_do_not_fit(barrier):
    rows = parts(frame(), 450)
    wrong = pyarrow.array(["secret"] * 100)
    rows[1][0] = rows[1][0].set_column(0, "age", wrong)
    with pytest.raises(sottodp.SottoError, match=r"^partition 2 of 2: ") as found:
        fit(classifier(), rows, lambda work, partitions: Threads(work, partitions, barrier))
    assert "secret" not in str(found.value)
    rows = parts(frame().assign(ill="secret"), 450)
    with pytest.raises(sottodp.SottoError, match=r"^partition \d of 2: label: column 'ill': found a label that classes does not list") as found:
        fit(classifier(), rows)
    assert "secret" not in str(found.value)


class Again(Threads):
    """A cluster that loses a task once the run has begun, and computes its partition again in another order of rows."""

    def __init__(self, work, partitions, run):
        self.steps = run / "steps.jsonl"
        super().__init__(work, partitions, barrier=False)

    def one(self, shard, rows):
        if shard == 0:
            _cluster.work(self.work, 0, rows, stop=lambda: self.over.is_set() or self.steps.exists() and self.steps.stat().st_size > 0)
            rows = rows[::-1]
        super().one(shard, rows)


def test_other_rows_are_refused(tmp_path):
    model = classifier(method_options={"steps": 1_000_000, "batch": 90}, lab=True, random_state=1, run_dir=tmp_path / "run")
    with pytest.raises(sottodp.errors.MachineError, match="shard 1 of 2: a task came back with other rows .* write the frame"):
        fit(model, parts(frame(), 450), lambda work, partitions: Again(work, partitions, tmp_path / "run"))


class Broken(Threads):
    """A cluster that gives up."""

    def failed(self):
        return RuntimeError("the cluster's own words")


def test_what_a_cluster_says_is_the_cause():
    with pytest.raises(sottodp.errors.MachineError, match="the error above says why") as found:
        fit(classifier(), parts(frame(), 450), Broken)
    assert str(found.value.__cause__) == "the cluster's own words"


class Bare(Threads):
    """A cluster whose machines lack a package."""

    def failed(self):
        return RuntimeError("Traceback, a row\nModuleNotFoundError: No module named 'sottodp.spark'\n\tat org.apache.spark")


def test_a_missing_package_is_named():
    with pytest.raises(sottodp.errors.MachineError, match=r"^a task found a package missing: No module named 'sottodp.spark'; install"):
        fit(classifier(), parts(frame(), 450), Bare)


def test_what_is_said_wrongly():
    for more, text in [
        (dict(classes=None), "classes: must be said"), (dict(domain=(0, 1)), "domain: must be a dict"), (dict(rows=None), "rows: must be said"),
        (dict(method="outpert", method_options=None), "replace-one"),
    ]:
        model = sottodp.spark.SottoClassifier(label="ill", **{**SAID, "classes": [False, True], **more})
        with pytest.raises((ValueError, sottodp.SottoError), match=text):
            fit(model, parts(frame()))
    with pytest.raises(ValueError, match="partitions: found 3; choose at most 2"):
        _cluster.partitions(3, 2, "so many workers the cluster has")
    with pytest.raises(ValueError, match="label: must be said"):
        _cluster.label(sottodp.spark.SottoClassifier())


def test_batches_are_predicted_together(monkeypatch):
    monkeypatch.setattr(sottodp.spark, "_AT_ONCE", 5)
    frames = [pd.DataFrame({"a": range(first, last)}) for first, last in ((0, 2), (2, 4), (4, 9), (9, 9), (9, 10))]
    found = list(sottodp.spark._together(iter(frames)))
    assert [len(frame) for frame in found] == [9, 1] and [v for frame in found for v in frame["a"]] == list(range(10))
    assert list(sottodp.spark._together(iter([]))) == []


def test_sessions_are_checked():
    good = dict(sottodp.spark._SETTINGS)
    sottodp.spark.check("spark://host:7077", lambda name, default: good.get(name, default), "3.5.9")
    sottodp.spark.check("local[2]", lambda name, default: default, "4.1.4")
    for master in ("local-cluster[2,1,1024]", "yarn", "k8s://host", "spark://host:7077"):
        with pytest.raises(ValueError, match="spark.authenticate=true, spark.network.crypto.enabled=true, spark.io.encryption.enabled=true; start"):
            sottodp.spark.check(master, lambda name, default: default, "4.1.4")
    for name, value in good.items():
        bad = {**good, name: "true" if value == "false" else "false"}
        with pytest.raises(ValueError, match=f"lacks {name}={value}; "):
            sottodp.spark.check("yarn", lambda name, default: bad.get(name, default), "4.0.0")
    tls = {**good, "spark.network.crypto.enabled": "false", "spark.ssl.rpc.enabled": "true"}
    sottodp.spark.check("yarn", lambda name, default: tls.get(name, default), "4.0.0")
    with pytest.raises(ValueError, match="lacks spark.network.crypto.enabled=true; "):  # 3.5 does not know the other setting
        sottodp.spark.check("yarn", lambda name, default: tls.get(name, default), "3.5.9")


class Client:
    def __init__(self, address="tls://host:1", encrypted=True, spills=False):
        self.about = {"address": address, "workers": {address: {}}}
        self.security = type("Security", (), {"require_encryption": encrypted})
        self.spills = spills

    def scheduler_info(self, n_workers):
        return self.about

    def run(self, what):
        return {"host": self.spills}


def test_a_shard_without_a_dask_worker_ends_the_fit(monkeypatch):
    class Gone:
        status = "pending"

    futures = object.__new__(sottodp.dask._Futures)
    futures._client, futures._at, futures._tasks, futures._again, futures._alone = Client("tls://left:1"), ["tls://lost:1"], [Gone()], 0, 0.0
    futures._free = lambda: []
    assert futures.failed() is None  # it may come back
    monkeypatch.setattr(sottodp.dask, "_PATIENT", -1)
    ended = futures.failed()
    assert ended.code == 1 and "no other was free" in ended.text


def test_a_fit_on_dask_leaves_others_their_rows(monkeypatch):
    """Partitions of the same frame are the same futures in two fits: the first to end releases them, and cancels nothing."""
    done = []
    client = type("Client", (), {"cancel": lambda self, *more, **options: done.append("cancel")})()
    part = type("Part", (), {"release": lambda self: done.append("release")})()

    def wait(tasks, timeout):
        raise RuntimeError("Dask has ended a task")

    monkeypatch.setitem(sys.modules, "distributed", type("distributed", (), {"wait": staticmethod(wait)}))
    futures = object.__new__(sottodp.dask._Futures)
    futures._client, futures._tasks, futures._parts = client, [], [part, part]
    futures.stop()
    assert done == ["release", "release"]


def test_a_stopped_run_goes_on(tmp_path):
    """With run_dir, the same fit on the same partitions continues, and charges nothing more."""
    out = tmp_path / "run"
    said = dict(method_options={"steps": 40_000, "batch": 90}, run_dir=out)

    class Lost(Threads):
        def failed(self):
            return RuntimeError("lost") if (out / "steps.jsonl").exists() and (out / "steps.jsonl").stat().st_size else super().failed()

    with pytest.raises(sottodp.errors.MachineError, match="the error above says why"):
        fit(classifier(**said), parts(frame(), 450), Lost)
    begun = json.loads((out / "run.json").read_text())
    assert begun["status"] == "interrupted"
    model = fit(classifier(**said), parts(frame(), 450))
    assert model.guarantee_.run == begun["id"] and "together (ε 1, " in model.guarantee_.lifetime
    with pytest.raises(ValueError, match="^run_dir: .* holds a finished run; use a new directory"):
        fit(classifier(**said), parts(frame(), 450))


def test_dask_clusters_are_checked():
    assert sottodp.dask.check(Client())[1] == ["tls://host:1"]
    sottodp.dask.check(Client("inproc://1", encrypted=False))
    for client, text in [(Client("tcp://host:1"), "tls://"), (Client(encrypted=False), "require_encryption=True"), (Client(spills=True), "memory.target and .spill")]:
        with pytest.raises(ValueError, match=text):
            sottodp.dask.check(client)


def test_the_key_is_not_shown():
    work = _cluster.Work("{}", "", "host:1", 1, ["a"], None, "y", "y", None, None, b"secret key")
    assert "secret" not in repr(work)
    started = []
    real = _cluster._start
    _cluster._start = lambda arguments, *more: started.append(arguments) or real(arguments, *more)
    try:
        fit(classifier(lab=True, random_state=1), parts(frame()))
    finally:
        _cluster._start = real
    assert len(started) == 2 and all(arguments[arguments.index("--key") + 1] == "-" for arguments in started)


def test_units_are_whole(tmp_path):
    (tmp_path / "schema.yaml").write_text(
        "dataset: visits\nunit: {name: patient, rows: 4}\nunits: 300\ncolumns:\n  - {name: patient, type: unit}\n  - {name: age, type: numeric, min: 0, max: 120}\n"
        "  - {name: ill, type: label, classes: ['no', 'yes']}\n"
    )
    rows = pd.DataFrame({"patient": [f"p{i % 300}" for i in range(900)], "age": frame()["age"]}).sort_values("patient", kind="stable")
    rows["ill"] = np.where(rows["age"] > 60, "yes", "no")
    said = dict(schema=tmp_path / "schema.yaml", lab=True, random_state=1, method="sgd", method_options={"steps": 30, "batch": 30})

    def train(*cuts):
        model = sottodp.spark.SottoClassifier(**said)
        names = _cluster.features(model, list(rows.columns))
        assert names == ["age"]
        cut = parts(rows, *cuts)
        _cluster.fit(model, names, None, list(rows.columns), len(cut), ("127.0.0.1:0", "127.0.0.1"), lambda work: Threads(work, cut))
        return model

    here = sottodp.SottoClassifier(**said).fit(rows[["patient", "age"]], rows["ill"])
    away = train(300)
    np.testing.assert_array_equal(here.coef_, away.coef_)
    assert away.predict(rows[["age"]])[0] == here.predict(rows[["age"]])[0]
    with pytest.raises(sottodp.errors.InputError, match="patient|unit"):
        train(301)  # within a patient


class Tap:
    """A connection to address through this process, which keeps what passes in each direction."""

    def __init__(self, address):
        host, _, port = address.rpartition(":")
        self.to, self.heard, self.listener = (host, int(port)), [], socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                one, _ = self.listener.accept()
                other = socket.create_connection(self.to)
            except OSError:
                return
            for a, b in ((one, other), (other, one)):
                self.heard.append(bytearray())
                threading.Thread(target=self.copy, args=(a, b, self.heard[-1]), daemon=True).start()

    @staticmethod
    def copy(a, b, heard):
        try:
            while some := a.recv(1 << 16):
                heard += some
                b.sendall(some)
            b.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def test_the_wire_is_sealed():
    taps = []

    def start(work, partitions):
        taps.append(Tap(work.address))
        return Threads(dataclasses.replace(work, address=taps[0].address), partitions)

    fit(classifier(lab=True, random_state=1), parts(frame(), 450), start)
    taps[0].listener.close()
    assert len(taps[0].heard) >= 4
    for heard in map(bytes, taps[0].heard):
        assert b"sotto" not in heard and b"pressure" not in heard
        kinds, sealed, at = [], b"", 0
        while at + 5 <= len(heard):
            kind, _, size = struct.unpack_from(">BHH", heard, at)
            kinds.append(kind)
            sealed += heard[at + 5 : at + 5 + size] if kind == 23 else b""
            at += 5 + size
        assert kinds[0] == 22 and kinds.count(22) == 1 and set(kinds[1:]) <= {20, 23}  # TLS 1.3: a hello, then nothing in plaintext
        assert len(zlib.compress(sealed)) > 0.99 * len(sealed) > 2000

"""Time epochs of private training by Sotto, and by PyTorch and Opacus, alternating, on tables of the same shape.

    (cd tools/bench && go build -o ../../bench .)
    pip install torch opacus && taskset -c 0 python docs/measurements/epochs.py ./bench [PART [ROUNDS]]

PART is one of adult, mnist, mlp, cnn, workers (two cores by the clock: without taskset), or all of one core. Each round runs
all peers in one process and Sotto's benchmark in another. Prints the median over the rounds of each, and the ratio of Sotto
to each peer. An epoch is of as many steps as the table has batches of 256: Poisson batches, of PyTorch without privacy
batches of shuffled rows. All take rows out of one tensor, so no peer pays for a data loader. Tables are random and without
zeros. All times are of the processor on one core, and by the clock on two. Sotto's are of tools/bench: the best of its
rounds.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

import torch
from torch import nn

BATCH = 256
# part: rows, of which each epoch takes a share; columns; classes; the key of tools/bench
PARTS = {
    "adult": (32_561, 1, 106, 2, "adult_epoch_ms"),
    "mnist": (60_000, 1, 784, 10, "mnist_softmax_epoch_ms"),
    "mlp": (60_000, 1, 784, 10, "mlp_dense_epoch_ms"),
    "cnn": (15_000, 4, 784, 10, "cnn_dense_epoch_ms"),
}
TWO = {"mlp": "mlp_dense_two_workers_ms", "cnn": "cnn_dense_two_workers_ms"}


def network(part, columns, classes):
    if part == "mlp":
        return nn.Sequential(nn.Linear(columns, 128), nn.ReLU(), nn.Linear(128, classes))
    if part == "cnn":
        return nn.Sequential(nn.Unflatten(1, (1, 28, 28)), nn.Conv2d(1, 16, 8, 2, padding=3), nn.ReLU(), nn.MaxPool2d(2, 1),
                             nn.Conv2d(16, 32, 4, 2), nn.ReLU(), nn.MaxPool2d(2, 1), nn.Flatten(),
                             nn.Linear(512, 32), nn.ReLU(), nn.Linear(32, classes))
    return nn.Linear(columns, classes)


def trainer(part, how):
    """Return a function that runs one epoch."""
    rows, _, columns, classes, _ = PARTS[part]
    torch.manual_seed(1)
    x, y = torch.randn(rows, columns) / columns**0.5, torch.randint(classes, (rows,))
    model, loss = network(part, columns, classes), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if how != "PyTorch":
        from opacus import PrivacyEngine
        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=BATCH)
        ghost = how == "Opacus, ghost clipping"
        made = PrivacyEngine().make_private(module=model, optimizer=optimizer, data_loader=loader, criterion=loss,
                                            noise_multiplier=1.0, max_grad_norm=1.0, poisson_sampling=True,
                                            **({"grad_sample_mode": "ghost"} if ghost else {}))
        model, optimizer = made[:2]
        if ghost:
            loss = made[2]
        optimizer.attach_step_hook(lambda o: None)  # in place of its accountant, which counts each step

    def epoch():
        shuffled = torch.randperm(rows).split(BATCH) if how == "PyTorch" else None
        for step in range(-(-rows // BATCH)):
            at = shuffled[step] if shuffled else torch.nonzero(torch.rand(rows) < BATCH / rows).squeeze(1)
            optimizer.zero_grad()
            loss(model(x[at]), y[at]).backward()
            optimizer.step()
    return epoch


def sotto(bench, part, key):
    with tempfile.TemporaryDirectory() as d:
        out = os.path.join(d, "bench.json")
        subprocess.run([bench, "-only", part, "-out", out], check=True, stdout=subprocess.DEVNULL)
        with open(out) as f:
            return json.load(f)[key] / 1e3


def measure(bench, name, part, key, rounds):
    clock = time.perf_counter if name == "workers" else time.process_time
    share = PARTS[part][1]
    peers = {how: trainer(part, how) for how in ("PyTorch", "Opacus", "Opacus, ghost clipping")}
    for epoch in peers.values():
        epoch()  # the first epoch allocates
    times = {how: [] for how in ["Sotto", *peers]}
    for _ in range(rounds):
        times["Sotto"].append(sotto(bench, name, key))
        for how, epoch in peers.items():
            start = clock()
            epoch()
            times[how].append(share * (clock() - start))
    median = {how: statistics.median(t) for how, t in times.items()}
    for how, t in median.items():
        print(f"{part:6} {how:24} {t:7.4f} s  Sotto over this {median['Sotto'] / t:6.3f}", flush=True)


def main(bench, which="all", rounds=3):
    import opacus
    warnings.simplefilter("ignore")
    cores = len(os.sched_getaffinity(0))
    torch.set_num_threads(2 if which == "workers" else 1)
    print("torch", torch.__version__, "opacus", opacus.__version__, "cores", cores, "load", *os.getloadavg())
    if which == "workers":
        for part, key in TWO.items():
            measure(bench, "workers", part, key, int(rounds))
        return
    for part in PARTS if which == "all" else [which]:
        measure(bench, part, part, PARTS[part][4], int(rounds))


main(*sys.argv[1:])

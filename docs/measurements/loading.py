"""Load tables of 1,000,000 × 20 with Sotto and with polars, alternating, each time in a new process.

    go test -c -o data.test ./data
    pip install polars && python docs/measurements/loading.py ./data.test DIR [ROUNDS]

Prints for each table the median over the rounds of seconds by the clock, seconds of processor time (user and system) and
the most memory of the process, and the ratio of Sotto to polars. DIR keeps the tables; BenchmarkLoad of ./data makes them.
Imports and the start of a process are outside of the seconds, inside of the memory. polars uses as many threads as Sotto.
"""

import os
import re
import resource
import statistics
import subprocess
import sys
import time

ROWS = 1_000_000
FORMATS = "csv", "parquet"


def child(path):
    import polars
    read = polars.read_csv if "csv" in os.path.basename(path) else polars.read_parquet
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    table = read(path)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    assert table.shape == (ROWS, 21)
    print(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def run(*command):
    """Return the output of a command and the most memory of its process, in MB."""
    p = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ, POLARS_MAX_THREADS=str(os.cpu_count())))
    out = p.stdout.read()
    _, status, usage = os.wait4(p.pid, 0)
    if status != 0:
        raise SystemExit(f"{command[0]} failed")
    return out, usage.ru_maxrss / 1e3


def sotto(binary, directory, table, hashes):
    out, memory = run(binary, "-test.run", "^$", "-test.bench", f"Load/{table}$/{hashes}", "-test.benchtime", "1x",
                      "-load.rows", str(ROWS), "-load.dir", directory)
    wall = float(re.search(r"([0-9.]+) ns/op", out)[1]) / 1e9
    return wall, float(re.search(r"([0-9.]+) cpu-s/op", out)[1]), memory


def polars(path):
    out, memory = run(sys.executable, __file__, "--child", path)
    wall, cpu = map(float, out.split())
    return wall, cpu, memory


def main(binary, directory, rounds=5):
    for table in FORMATS:
        sotto(binary, directory, table, "plain")  # makes the table, and puts it in the page cache
        path = os.path.join(directory, f"{table}-{ROWS}")
        runs = {"polars": [], "Sotto": [], "Sotto with hashes": []}
        for _ in range(int(rounds)):
            runs["polars"].append(polars(path))
            runs["Sotto"].append(sotto(binary, directory, table, "plain"))
            runs["Sotto with hashes"].append(sotto(binary, directory, table, "hashed"))
        median = {name: [statistics.median(x) for x in zip(*r)] for name, r in runs.items()}
        for name, m in median.items():
            ratios = " ".join(f"{x / y:5.2f}" for x, y in zip(m, median["polars"]))
            print(f"{table:8} {name:18} wall {m[0]:5.2f} s  processor {m[1]:5.2f} s  {m[2]:4.0f} MB  over polars {ratios}", flush=True)
    print("load", *os.getloadavg())


if __name__ == "__main__":
    child(sys.argv[2]) if sys.argv[1] == "--child" else main(*sys.argv[1:])

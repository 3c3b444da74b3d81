"""Measure how time and memory of Sotto grow with the rows of a table, and draw the picture of docs/explanation/performance.md.

    pip install numpy pyarrow
    python docs/measurements/growth.py ./sotto DIR [ROWS ...]

Makes tables of 20 float32 columns and a label of two classes as Parquet in DIR, which keeps them (85 bytes a row), packs each, fits `auto` at ε = 1 to
the Parquet and to the packed file, and predicts the Parquet's rows. ROWS are 10^4, 10^5, 10^6 and 10^7 if none are given. Each figure is of one
new process: seconds of processor time (user and system), seconds by the clock, and the most anonymous memory in MB, mapped files apart, which
is read every 20 ms from /proc (Linux). Writes DIR/growth.csv, to which a later call adds its rows, and DIR/growth.svg from all of it.
"""

import csv
import math
import os
import subprocess
import sys
import time

COLUMNS, BLOCK = 20, 1_000_000
JOBS = "data pack", "fit", "fit, packed", "predict"
COLORS = "#0b6e4f", "#1d4e89", "#7fa7d4", "#b5542a"


def table(path, rows):
    """Write the table: columns uniform in [-1, 1], a label that bends with the first four and follows lines of the others."""
    import numpy
    import pyarrow
    import pyarrow.parquet

    if os.path.exists(path):
        return
    rng = numpy.random.default_rng(1)
    names = [f"x{i}" for i in range(COLUMNS)] + ["y"]
    schema = pyarrow.schema([(n, pyarrow.float32()) for n in names[:-1]] + [("y", pyarrow.int8())])
    with pyarrow.parquet.ParquetWriter(path + ".part", schema, use_dictionary=False, compression="none") as file:
        for start in range(0, rows, BLOCK):
            x = rng.uniform(-1, 1, (min(BLOCK, rows - start), COLUMNS)).astype(numpy.float32)
            margin = 3 * (x[:, :4] ** 2).sum(1) - 4 + x[:, 4:] @ numpy.linspace(-0.5, 0.5, COLUMNS - 4, dtype=numpy.float32)
            y = (rng.uniform(size=len(x)) < 1 / (1 + numpy.exp(-margin))).astype(numpy.int8)
            file.write_table(pyarrow.table([x[:, i] for i in range(COLUMNS)] + [y], schema=schema), row_group_size=BLOCK)
    os.rename(path + ".part", path)


def schema(path, rows):
    with open(path, "w") as file:
        file.write(f"dataset: growth\nrows: {rows}\nunit: record\ncolumns:\n  - {{names: x0..x{COLUMNS - 1}, type: numeric, min: -1, max: 1}}\n"
                   "  - {name: y, type: label, classes: [0, 1]}\n")


def anonymous(pid):
    """Return the anonymous memory of a process in MB, 0 if it has ended."""
    try:
        with open(f"/proc/{pid}/status") as status:
            return next((int(line.split()[1]) / 1e3 for line in status if line.startswith("RssAnon")), 0)
    except FileNotFoundError:
        return 0


def measure(*command):
    """Return seconds of processor time and by the clock, and the most anonymous memory in MB, of a command."""
    start, most = time.perf_counter(), 0
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        most = max(most, anonymous(process.pid))
        time.sleep(0.02)
    if status != 0:
        raise SystemExit(f"{' '.join(command)}: {process.stderr.read()}")
    return usage.ru_utime + usage.ru_stime, time.perf_counter() - start, most


def run(sotto, directory, rows):
    """Yield a job, its processor time, seconds and memory for each job at a number of rows."""
    at = lambda name: os.path.join(directory, f"{rows}{name}")
    table(at(".parquet"), rows)
    schema(at(".yaml"), rows)
    subprocess.run(["rm", "-rf", at("-fit"), at("-packed"), at(".pack"), at("-home")], check=True)
    os.environ.update(XDG_DATA_HOME=at("-home"), XDG_STATE_HOME=at("-home"))  # a ledger of its own
    fit = [sotto, "fit", "--quiet", "--schema", at(".yaml"), "--model", "logistic", "--epsilon", "1", "--delta", f"{0.01 / rows:g}",
           "--adjacency", "add-or-remove"]
    yield JOBS[0], *measure(sotto, "data", "pack", "--schema", at(".yaml"), "--data", at(".parquet"), "--out", at(".pack"))
    yield JOBS[1], *measure(*fit, "--data", at(".parquet"), "--out", at("-fit"))
    yield JOBS[2], *measure(*fit, "--data", at(".pack"), "--out", at("-packed"))
    yield JOBS[3], *measure(sotto, "predict", "--model", at("-fit"), "--data", at(".parquet"), "--out", os.devnull)


def short(rows):
    """Return 10⁶ for a million, and other numbers with commas."""
    power = round(math.log10(rows))
    return "10" + str(power).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")) if rows == 10**power else f"{rows:,}"


def draw(path, figures):
    """Write the picture: processor time and memory over rows, both axes logarithmic, a line for each job."""
    sizes = sorted({rows for rows, *_ in figures})
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 790 330" font-family="sans-serif" font-size="12" role="img">',
           '<title>Processor time and memory over rows</title><rect width="790" height="330" fill="#fff"/>']
    for panel, (title, column, low, high) in enumerate((("processor time, seconds", 2, -2, 4), ("anonymous memory, MB", 4, 0, 4))):
        left, width, top, height = 60 + 370 * panel, 280, 40, 220
        first, last = math.log10(sizes[0]), max(math.log10(sizes[-1]), math.log10(sizes[0]) + 1)
        x = lambda rows: left + width * (math.log10(rows) - first) / (last - first)
        y = lambda value: top + height * (1 - (math.log10(max(value, 10.0 ** low)) - low) / (high - low))
        out.append(f'<text x="{left}" y="20" font-weight="bold">{title}</text>')
        for power in range(low, high + 1):
            out.append(f'<path d="M{left} {y(10.0 ** power):.1f}h{width}" stroke="#ddd"/><text x="{left - 6}" y="{y(10.0 ** power) + 4:.1f}" '
                       f'text-anchor="end">{10.0 ** power:,g}</text>')
        for rows in sizes:
            out.append(f'<text x="{x(rows):.1f}" y="{top + height + 18}" text-anchor="middle">{short(rows)}</text>')
        for job, color in zip(JOBS, COLORS):
            points = sorted((f[0], float(f[column])) for f in figures if f[1] == job)
            line = " ".join(f"{x(rows):.1f},{y(value):.1f}" for rows, value in points)
            out.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"/>')
            out += [f'<circle cx="{x(rows):.1f}" cy="{y(value):.1f}" r="3" fill="{color}"/>' for rows, value in points]
        out.append(f'<text x="{left + width / 2}" y="{top + height + 36}" text-anchor="middle">rows</text>')
    for i, (job, color) in enumerate(zip(JOBS, COLORS)):
        out.append(f'<rect x="{60 + 170 * i}" y="312" width="14" height="4" fill="{color}"/><text x="{80 + 170 * i}" y="318">{job}</text>')
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(out) + "\n</svg>\n")


def main(sotto, directory, sizes):
    path = os.path.join(directory, "growth.csv")
    new = not os.path.exists(path)
    with open(path, "a", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        if new:
            out.writerow(["rows", "job", "cpu_seconds", "seconds", "anonymous_mb"])
        for rows in sizes:
            for job, cpu, wall, memory in run(sotto, directory, rows):
                out.writerow([rows, job, f"{cpu:.2f}", f"{wall:.2f}", f"{memory:.0f}"])
                file.flush()
                print(f"{rows:>11,} rows  {job:12} {cpu:9.2f} s  {wall:9.2f} s by the clock  {memory:7.0f} MB", flush=True)
    with open(path) as file:
        figures = [(int(r[0]), *r[1:]) for r in list(csv.reader(file))[1:]]
    latest = {(rows, job): (rows, job, *rest) for rows, job, *rest in figures}
    draw(os.path.join(directory, "growth.svg"), list(latest.values()))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    os.makedirs(sys.argv[2], exist_ok=True)
    main(os.path.abspath(sys.argv[1]), sys.argv[2], [int(float(n)) for n in sys.argv[3:]] or [10**4, 10**5, 10**6, 10**7])

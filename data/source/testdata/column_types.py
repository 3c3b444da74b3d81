# Writes the tables of data/types_test.go with pyarrow 26, pandas 3.1 and polars 2.1: python column_types.py data/source/testdata/types
# Each file has a column of each type that its way can write. The texts of types.csv are those that Sotto's rule asks for.
import datetime as d, decimal, io, json, sys, zoneinfo
import numpy as np, pandas as pd, polars as pl, pyarrow as pa, pyarrow.feather as feather, pyarrow.parquet as parquet

dir = sys.argv[1]
day, at, span, clock = d.date, d.datetime, d.timedelta, d.time
days = [day(2024, 10, 4), day(1969, 12, 31), None, day(2000, 2, 29)]
times = [at(2024, 10, 4, 12, 30), at(1969, 12, 31, 23, 59, 59), None, at(2000, 2, 29)]
spans = [span(seconds=90), span(days=-1), None, span(hours=5)]
clocks = [clock(12, 30), clock(0, 0, 1), None, clock(23, 59, 59)]
cents = [decimal.Decimal(t) if t else None for t in ["-0.05", "123.25", "", "7.00"]]
words = ["red", "a longer text than twelve bytes", None, "1.0"]
small = [1, -7, None, 100]

# Of each column: its Arrow array, and the texts of its cells; no texts: it is refused.
columns = {}
def column(name, array, texts=None):
    columns[name] = array, texts
def ints(name, values, type):
    column(name, pa.array(values, type), ["" if v is None else str(v) for v in values])

column("bool", pa.array([True, False, None, True]), ["true", "false", "", "true"])
for bits in [8, 16, 32, 64]:
    ints(f"int{bits}", [-2 ** (bits - 1), 2 ** (bits - 1) - 1, None, 3], getattr(pa, f"int{bits}")())
    ints(f"uint{bits}", [2**bits - 1, 0, None, 2 ** (bits - 1) + 1], getattr(pa, f"uint{bits}")())
floats = [0.1, -16777216.0, None, 1e-4]
column("float16", pa.array(np.array([0.1, 2, 3, 4], np.float16)))
column("float32", pa.array(floats, pa.float32()), ["0.1", "-16777216", "", "1e-4"])
column("float64", pa.array(floats), ["0.1", "-16777216", "", "1e-4"])
for kind in ["string", "large_string", "string_view", "binary", "large_binary", "binary_view"]:
    column(kind, pa.array(words).cast("binary").cast(getattr(pa, kind)()) if "binary" in kind else pa.array(words, getattr(pa, kind)()), [w or "" for w in words])
column("fixed_binary", pa.array([b"ab", b"cd", None, b"ef"], pa.binary(2)))
for kind in ["date32", "date64"]:
    column(kind, pa.array(days, getattr(pa, kind)()), ["" if v is None else v.isoformat() for v in days])
for unit in ["s", "ms", "us", "ns"]:
    texts = ["" if v is None else v.isoformat() for v in times]
    column("timestamp_" + unit, pa.array(times, pa.timestamp(unit)), texts)
    column("timestamp_utc_" + unit, pa.array(times, pa.timestamp(unit, "UTC")), [t and t + "Z" for t in texts])
    column("timestamp_zone_" + unit, pa.array([v and v.replace(tzinfo=d.timezone.utc).astimezone(zoneinfo.ZoneInfo("Asia/Tokyo")) for v in times], pa.timestamp(unit, "Asia/Tokyo")), [t and t + "Z" for t in texts])
    column("duration_" + unit, pa.array(spans, pa.duration(unit)))
column("time_s", pa.array(clocks, pa.time32("s")))
column("time_ms", pa.array(clocks, pa.time32("ms")))
column("time_us", pa.array(clocks, pa.time64("us")))
column("time_ns", pa.array(clocks, pa.time64("ns")))
for bits, precision in [(32, 9), (64, 18), (128, 30), (256, 60)]:
    column(f"decimal{bits}", pa.array(cents, getattr(pa, f"decimal{bits}")(precision, 2)), ["" if v is None else str(v) for v in cents])
column("decimal_tens", pa.array([decimal.Decimal("1E2"), decimal.Decimal("3E2"), None, decimal.Decimal("4E2")], pa.decimal128(5, -2)))
column("null", pa.array([None] * 4), [""] * 4)
column("dictionary_string", pa.array(words).dictionary_encode(), [w or "" for w in words])
column("dictionary_int", pa.array(small, pa.int16()).dictionary_encode(), ["" if v is None else str(v) for v in small])
column("dictionary_date", pa.array(days).dictionary_encode(), ["" if v is None else v.isoformat() for v in days])
column("dictionary_duration", pa.array(spans, pa.duration("ms")).dictionary_encode())
column("list", pa.array([[1], [2, 3], None, []]))
column("fixed_list", pa.array([[1], [2], None, [3]], pa.list_(pa.int32(), 1)))
column("struct", pa.array([{"a": 1}, {"a": 2}, None, {"a": 3}]))
column("map", pa.array([[("a", 1)], [], None, [("b", 2)]], pa.map_(pa.string(), pa.int32())))
column("union", pa.UnionArray.from_sparse(pa.array([0, 0, 0, 0], pa.int8()), [pa.array([1, 2, 3, 4])]))
column("run_ends", pa.RunEndEncodedArray.from_arrays(pa.array([2, 4], pa.int32()), pa.array([1, 2])))
column("interval", pa.array([(1, 2, 3), (0, 0, 0), None, (0, 1, 0)], pa.month_day_nano_interval()))
column("uuid", pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0123456789abcdef"] * 4, pa.binary(16))))
column("bool8", pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0, None, 1], pa.int8())))
column("json", pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}", "null", None, "{}"])), ["{}", "null", "", "{}"])
column("period", pa.array(pd.array(["2024-10", "1969-12", None, "2000-02"], dtype="period[M]")))
column("pandas_interval", pa.array(pd.arrays.IntervalArray.from_tuples([(0, 1), (1, 2), (2, 3), (3, 4)])))

labels = ["yes", "no", "no", "yes"]

lost = {"fixed_binary", "decimal_tens", "run_ends", "bool8", "uuid"} # types that pandas and Polars turn into others

def write(name, save):
    """Write the columns that this way can write, one by one and then together."""
    good = {}
    for column, (array, _) in columns.items():
        if column in lost and name.startswith("p") and not name.startswith("pyarrow"):
            continue
        try:
            save({column: array}, io.BytesIO())
            good[column] = array
        except (pa.ArrowException, OSError, NotImplementedError, ValueError, TypeError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as e:
            print(f"{name}: no {column}: {type(e).__name__}")
    with open(f"{dir}/{name}", "wb") as f:
        save(good, f)

def arrow(good):
    return pa.table({**good, "sick": labels})
def stream(good, f):
    with pa.ipc.new_stream(f, arrow(good).schema) as w:
        w.write_table(arrow(good))
def file(good, f):
    with pa.ipc.new_file(f, arrow(good).schema) as w:
        w.write_table(arrow(good))
def frame(good):
    return arrow(good).to_pandas()
def polars(good):
    return pl.from_arrow(arrow(good))

write("file.arrow", file)
write("stream.arrows", stream)
write("zstd.feather", lambda good, f: feather.write_feather(arrow(good), f, compression="zstd"))
write("pyarrow.parquet", lambda good, f: parquet.write_table(arrow(good), f))
write("pyarrow-1.parquet", lambda good, f: parquet.write_table(arrow(good), f, version="1.0", use_dictionary=False))
write("pandas.parquet", lambda good, f: frame(good).to_parquet(f))
write("pandas.feather", lambda good, f: frame(good).to_feather(f))
write("polars.parquet", lambda good, f: polars(good).write_parquet(f))
write("polars.arrow", lambda good, f: polars(good).write_ipc(f))

texts = {name: cells for name, (_, cells) in columns.items() if cells}
with open(dir + "/types.csv", "w") as f:
    f.write(",".join([*texts, "sick"]) + "\n")
    for i in range(4):
        f.write(",".join([*(cells[i] for cells in texts.values()), labels[i]]) + "\n")
with open(dir + "/types.jsonl", "w") as f:
    for i in range(4):
        f.write(json.dumps({**{name: cells[i] for name, cells in texts.items() if cells[i]}, "sick": labels[i]}) + "\n")

# Timestamps as Spark 3 and older writers have them, of 96 bits; and numbers that are durations to pandas or Spark alone.
parquet.write_table(pa.table({"timestamp_ns": columns["timestamp_ns"][0], "sick": labels}), dir + "/int96.parquet", use_deprecated_int96_timestamps=True)
plain = pa.table({"duration_ms": pa.array([1, 2, None, 3]), "sick": labels})
for name, key, items, noted_type in [("pandas", "pandas", "columns", {"numpy_type": "timedelta64[ns]", "pandas_type": "timedelta"}),
                              ("spark", "org.apache.spark.sql.parquet.row.metadata", "fields", {"type": "interval day to second", "nullable": True})]:
    with parquet.ParquetWriter(f"{dir}/noted-{name}.parquet", plain.schema, store_schema=False) as w:
        w.write_table(plain)
        w.add_key_value_metadata({key: json.dumps({items: [{"name": "duration_ms", **noted_type}, {"name": "sick", "type": "string"}]})})

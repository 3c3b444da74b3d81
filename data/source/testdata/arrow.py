# Writes the tables of arrow_test.go and parquet_test.go with pyarrow 26 and polars 2.1: python arrow.py data/source/testdata/arrow
import sys, datetime, decimal
import pyarrow as pa, pyarrow.feather as feather, polars as pl

dir = sys.argv[1]
rows = 5000
age = [None if i % 37 == 5 else (i * 7) % 130 - 4 for i in range(rows)]
color = [None if i % 41 == 3 else ["red", "green", "mauve", "1.0"][i % 4] for i in range(rows)]
gain = [(i * i % 200000) / 100 for i in range(rows)]
sick = ["yes." if i * i % 7 < 3 else "no" for i in range(rows)]
ident = [[i, i] for i in range(rows)]

def table(colors, sicks):
    return pa.table({"gain": pa.array(gain), "id": pa.array(ident), "age": pa.array(age, pa.int16()), "sick": sicks, "colour": colors})

whole = table(pa.array(color), pa.array(sick, pa.large_string()))
n = 300 # of the tables that are not compressed
plain = whole.slice(0, n).combine_chunks()
dictionary = table(pa.array(color).dictionary_encode(), pa.array(sick).dictionary_encode())

def write(name, t, batch=110, stream=False, **options):
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(dir + "/" + name, t.schema, options=pa.ipc.IpcWriteOptions(**options)) as w:
        w.write_table(t, max_chunksize=batch)

write("plain.arrow", plain)
write("stream.arrows", plain, stream=True, metadata_version=pa.ipc.MetadataVersion.V4)
write("lz4.arrow", dictionary, batch=4000, compression="lz4")
write("zstd.arrow", whole, batch=rows, compression="zstd")
# A second batch whose dictionary has more entries: a delta.
grown = [pa.record_batch([pa.array(gain[a:b]), pa.array(ident[a:b]), pa.array(age[a:b], pa.int16()), pa.DictionaryArray.from_arrays(pa.array([s == "yes." for s in sick[a:b]]).cast(pa.int8()), pa.array(["no", "yes."])),
          pa.DictionaryArray.from_arrays(pa.array([None if c is None else levels.index(c) for c in color[a:b]], pa.int8()), pa.array(levels))], names=dictionary.schema.names)
         for a, b, levels in [(0, 1, ["red"]), (1, n, ["red", "mauve", "green", "1.0"])]]
with pa.ipc.new_stream(dir + "/delta.arrows", grown[0].schema, options=pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)) as w:
    for b in grown:
        w.write_batch(b)
pl.from_arrow(plain).write_ipc(dir + "/polars.arrow")
pl.from_arrow(whole).with_columns(pl.col("colour").cast(pl.Categorical)).write_ipc(dir + "/polars-zstd.arrow", compression="zstd")
feather.write_feather(plain.drop(["id"]).slice(0, 20).cast(pa.schema([("gain", pa.float64()), ("age", pa.int16()), ("sick", pa.string()), ("colour", pa.string())])), dir + "/v1.feather", version=1)

day = datetime.date
types = pa.table({
    "a": pa.array([True, None, False]), "b": pa.array([2**64 - 1, 0, None], pa.uint64()), "c": pa.array([day(2024, 10, 4), day(1969, 12, 31), None]),
    "d": pa.array([day(2024, 10, 4), day(1969, 12, 31), None], pa.date64()), "e": pa.array([decimal.Decimal("-0.05"), decimal.Decimal("12345678901234567890.25"), None], pa.decimal128(30, 2)),
    "f": pa.array([0.1, 16777216.0, None], pa.float32()), "g": pa.array([1e-300, -0.0, None]), "h": pa.array([-7, 127, None], pa.int8()),
    "i": pa.array([None, None, None]), "j": pa.array(["", "a longer text than twelve bytes", None], pa.string_view()), "k": pa.array([b"x", b"\xff", None], pa.binary()),
    "l": pa.array([-2**63, 2**63 - 1, None]), "m": pa.array([day(2000, 1, 1), day(2000, 1, 2), day(2000, 1, 1)]).dictionary_encode(), "n": pa.array([1, 2, None], pa.timestamp("s")),
    "o": pa.array([decimal.Decimal("-1.5"), decimal.Decimal("3.25"), None], pa.decimal256(60, 3))})
write("types.arrow", types)

# Seeds of FuzzArrow.
few = whole.slice(0, 12).combine_chunks().drop(["id"]).append_column("id", pa.array(range(12)))
write("few.arrow", few, batch=8)
write("few-lz4.arrows", few.set_column(2, "sick", few["sick"].cast(pa.string()).dictionary_encode()), batch=8, stream=True, compression="lz4")
pl.from_arrow(few).write_ipc(dir + "/few-polars.arrow", compression="zstd")

# Pages of Parquet: of texts that shrink much and of numbers that do not, one of 4,096 bytes, without nulls.
import pyarrow.parquet as parquet
pages = whole.slice(0, 512).combine_chunks()
pages = pages.cast(pages.schema.set(0, pa.field("gain", pa.float64(), nullable=False)))
for codec in ["lz4", "gzip", "brotli"]:
    parquet.write_table(pages, dir + "/" + codec + ".parquet", compression=codec, use_dictionary=["colour"])
parquet.write_table(pages, dir + "/lz4-v2.parquet", compression="lz4", data_page_version="2.0", row_group_size=300)
pl.from_arrow(pages).write_parquet(dir + "/polars-lz4.parquet", compression="lz4")
# Truth values in runs.
parquet.write_table(pa.table({"on": [i % 97 < 50 for i in range(1000)], "gap": [None if i % 41 == 3 else i > 200 or i % 3 == 0 for i in range(1000)], "sick": sick[:1000]}),
                    dir + "/truths.parquet", compression="lz4", data_page_version="2.0", data_page_size=400, write_batch_size=100)

# Writes the Arrow files of crossings_test.go with pyarrow 26: python arrow.py cli/testdata/crossings
import sys
import pyarrow as pa

n = 1200
ranges = {"same": range(n), "reordered": range(n - 1, -1, -1), "one-more": range(n + 1), "one-less": range(n - 1), "half": range(n // 2),
          "columns-reordered": range(n), "4-%": range(n * 96 // 100, n * 196 // 100), "disjoint": range(10 * n, 11 * n)}
for relation, rows in ranges.items():
    t = pa.table({"x": pa.array(rows, pa.int32()), "y": pa.array([["no", "yes"][i % 2] for i in rows]).dictionary_encode()})
    if relation == "columns-reordered":
        t = t.select(["y", "x"])
    with pa.ipc.new_file(f"{sys.argv[1]}/{relation}.arrow", t.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as w:
        w.write_table(t)

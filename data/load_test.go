//go:build unix

package data

import (
	"bufio"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/metrics"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/sottodp/sotto/schema"
)

var loadRows = flag.Int("load.rows", 20_000, "rows of the tables of BenchmarkLoad")

// loadFile writes a table of 20 columns in a format: normal numbers, of four decimal places or of
// all their digits. An image has 784 pixels, of which one in five is not zero.
func loadFile(b *testing.B, format string, rows int) (s *schema.Schema, path string) {
	const columns = 20
	path = filepath.Join(b.TempDir(), format)
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	rng := rand.New(rand.NewPCG(1, 2))
	full := strings.HasSuffix(format, "digits")
	number := func() float64 {
		v := rng.NormFloat64()
		if !full {
			v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'f', 4, 64), 64)
		}
		return v
	}
	src := "dataset: d\nrow_norm: 1\nrow_scaling: scale\nformat: {kind: csv}\ncolumns:\n"
	for j := range columns {
		src += fmt.Sprintf("  - {name: x%d, type: numeric, min: -3, max: 3}\n", j)
	}
	src += "  - {name: y, type: label, classes: ['0', '1']}\n"
	var text []byte
	switch kind, _, _ := strings.Cut(format, "-"); kind {
	case "csv":
		for j := range columns {
			fmt.Fprintf(w, "x%d,", j)
		}
		w.WriteString("y\n")
		for range rows {
			text = text[:0]
			for range columns {
				text = append(strconv.AppendFloat(text, number(), 'g', -1, 64), ',')
			}
			w.Write(append(text, '0'+byte(rng.IntN(2)), '\n'))
		}
	case "parquet":
		leaf := parquet.Group{"y": parquet.Int(64)}
		for j := range columns {
			leaf["x"+strconv.Itoa(j)] = parquet.Leaf(parquet.DoubleType)
		}
		p := parquet.NewGenericWriter[any](w, parquet.NewSchema("t", leaf), parquet.Compression(&parquet.Snappy), parquet.MaxRowsPerRowGroup(1<<20))
		row := make(parquet.Row, columns+1)
		for range rows {
			for j := range row {
				v := parquet.DoubleValue(number())
				if j == columns { // the columns are in the order of their names: y is the last
					v = parquet.Int64Value(int64(rng.IntN(2)))
				}
				row[j] = v.Level(0, 0, j)
			}
			if _, err := p.WriteRows([]parquet.Row{row}); err != nil {
				b.Fatal(err)
			}
		}
		if err := p.Close(); err != nil {
			b.Fatal(err)
		}
	case "libsvm":
		src = "dataset: d\nrow_norm: 1\nrow_scaling: scale\nformat: {kind: libsvm}\nfeatures: 20\ncolumns: [{name: y, type: label, classes: ['0', '1']}]\n"
		for range rows {
			text = append(text[:0], '0'+byte(rng.IntN(2)))
			for j := range columns {
				text = append(strconv.AppendInt(append(text, ' '), int64(j+1), 10), ':')
				text = strconv.AppendFloat(text, number(), 'g', -1, 64)
			}
			w.Write(append(text, '\n'))
		}
	case "idx":
		src = "dataset: d\nrow_norm: 1\nrow_scaling: scale\nformat: {kind: idx}\nimage: {shape: [28, 28], center: 33, scale: 79}\ncolumns: [{name: y, type: label, classes: ['0', '1']}]\n"
		head := []byte{0, 0, 8, 3}
		for _, n := range []int{rows, 28, 28} {
			head = binary.BigEndian.AppendUint32(head, uint32(n))
		}
		w.Write(head)
		image := make([]byte, 28*28)
		for range rows {
			for j := range image {
				if image[j] = 0; rng.IntN(5) == 0 {
					image[j] = byte(rng.IntN(256))
				}
			}
			w.Write(image)
		}
		labels := binary.BigEndian.AppendUint32([]byte{0, 0, 8, 1}, uint32(rows))
		for range rows {
			labels = append(labels, byte(rng.IntN(2)))
		}
		if err := os.WriteFile(path+".labels", labels, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	return mustParse(b, src), path
}

// BenchmarkLoad reads tables of each format, without and with hashes of the rows. cpu-s is the processor
// time of a load, MB-held the memory that the process holds after it. -load.rows sets the size.
func BenchmarkLoad(b *testing.B) {
	for _, format := range []string{"csv", "csv-digits", "parquet", "parquet-digits", "libsvm", "idx"} {
		b.Run(format, func(b *testing.B) {
			rows := *loadRows
			if format == "idx" {
				rows = min(rows, 60_000)
			}
			s, path := loadFile(b, format, rows)
			opt := Options{Rows: rows}
			if format == "idx" {
				opt.Labels = path + ".labels"
			}
			for name, key := range map[string][]byte{"plain": nil, "hashed": []byte("key")} {
				b.Run(name, func(b *testing.B) {
					info, err := os.Stat(path)
					if err != nil {
						b.Fatal(err)
					}
					b.SetBytes(info.Size())
					b.ReportAllocs()
					before := cpuSeconds()
					for b.Loop() {
						t, _, err := readTable(context.Background(), &testGate{key: key}, s, path, opt)
						if err != nil {
							b.Fatal(err)
						}
						t.Close()
					}
					b.ReportMetric((cpuSeconds()-before)/float64(b.N), "cpu-s/op")
					m := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/released:bytes"}, {Name: "/memory/classes/total:bytes"}}
					metrics.Read(m)
					b.ReportMetric(float64(m[2].Value.Uint64()-m[1].Value.Uint64())/1e6, "MB-held")
				})
			}
		})
	}
}

func cpuSeconds() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

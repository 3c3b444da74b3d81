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

var (
	loadRows = flag.Int("load.rows", 20_000, "rows of the tables of BenchmarkLoad")
	loadDir  = flag.String("load.dir", "", "directory in which BenchmarkLoad keeps its tables, so that another process only loads them")
)

const loadColumns = 20

// loadSchema is the schema of a table of BenchmarkLoad.
func loadSchema(b *testing.B, format string) *schema.Schema {
	const head, label = "dataset: d\nrow_norm: 1\nrow_scaling: scale\n", "{name: y, type: label, classes: ['0', '1']}"
	switch kind, _, _ := strings.Cut(format, "-"); kind {
	case "libsvm":
		return mustParse(b, head+"format: {kind: libsvm}\nfeatures: "+strconv.Itoa(loadColumns)+"\ncolumns: ["+label+"]\n")
	case "idx":
		return mustParse(b, head+"format: {kind: idx}\nimage: {shape: [28, 28], center: 33, scale: 79}\ncolumns: ["+label+"]\n")
	}
	src := head + "format: {kind: csv}\ncolumns:\n  - " + label + "\n"
	for j := range loadColumns {
		src += fmt.Sprintf("  - {name: x%d, type: numeric, min: -3, max: 3}\n", j)
	}
	return mustParse(b, src)
}

// writeLoad writes a table: normal numbers, of four decimal places or of all their digits, and a label.
// An image has 784 pixels, of which one in five is not zero; its label stands in another file.
func writeLoad(format, path string, rows int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	rng := rand.New(rand.NewPCG(1, 2))
	number := func() float64 {
		v := rng.NormFloat64()
		if !strings.HasSuffix(format, "digits") {
			v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'f', 4, 64), 64)
		}
		return v
	}
	label := func() byte { return byte(rng.IntN(2)) }
	var text []byte
	switch kind, _, _ := strings.Cut(format, "-"); kind {
	case "csv":
		for j := range loadColumns {
			fmt.Fprintf(w, "x%d,", j)
		}
		w.WriteString("y\n")
		for range rows {
			text = text[:0]
			for range loadColumns {
				text = append(strconv.AppendFloat(text, number(), 'g', -1, 64), ',')
			}
			w.Write(append(text, '0'+label(), '\n'))
		}
	case "libsvm":
		for range rows {
			text = append(text[:0], '0'+label())
			for j := range loadColumns {
				text = append(strconv.AppendInt(append(text, ' '), int64(j+1), 10), ':')
				text = strconv.AppendFloat(text, number(), 'g', -1, 64)
			}
			w.Write(append(text, '\n'))
		}
	case "parquet":
		leaf := parquet.Group{"y": parquet.Int(64)}
		for j := range loadColumns {
			leaf["x"+strconv.Itoa(j)] = parquet.Leaf(parquet.DoubleType)
		}
		p := parquet.NewGenericWriter[any](w, parquet.NewSchema("t", leaf), parquet.Compression(&parquet.Snappy), parquet.MaxRowsPerRowGroup(1<<20))
		row := make(parquet.Row, loadColumns+1)
		for range rows {
			for j := range row {
				v := parquet.DoubleValue(number())
				if j == loadColumns { // the columns are in the order of their names: y is the last
					v = parquet.Int64Value(int64(label()))
				}
				row[j] = v.Level(0, 0, j)
			}
			if _, err := p.WriteRows([]parquet.Row{row}); err != nil {
				return err
			}
		}
		if err := p.Close(); err != nil {
			return err
		}
	case "idx":
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
			labels = append(labels, label())
		}
		if err := os.WriteFile(path+".labels", labels, 0o600); err != nil {
			return err
		}
	}
	return w.Flush()
}

// BenchmarkLoad reads tables of each format, images as numbers and as bytes, without and with hashes of the rows. cpu-s is the processor
// time of a load, MB-held the memory that the process holds after it. -load.rows sets the size.
func BenchmarkLoad(b *testing.B) {
	for _, format := range []string{"csv", "csv-digits", "parquet", "parquet-digits", "libsvm", "idx", "idx-bytes"} {
		b.Run(format, func(b *testing.B) {
			rows := *loadRows
			if strings.HasPrefix(format, "idx") {
				rows = min(rows, 60_000)
			}
			dir := *loadDir
			if dir == "" {
				dir = b.TempDir()
			}
			s, path := loadSchema(b, format), filepath.Join(dir, fmt.Sprint(format, "-", rows))
			if _, err := os.Stat(path); err != nil {
				if err := writeLoad(format, path, rows); err != nil {
					b.Fatal(err)
				}
			}
			opt := Options{Rows: rows, Coding: Coding{Bytes: format == "idx-bytes"}}
			if s.Format.Kind == schema.KindIDX {
				opt.Labels = path + ".labels"
			}
			for _, key := range []*RowKey{nil, testKey} {
				name := "plain"
				if key != nil {
					name = "hashed"
				}
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

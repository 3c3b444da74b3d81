package source

import (
	"fmt"

	"github.com/sottodp/sotto/config"
)

// A columnType is what a file of typed columns says that a column holds, in the words of no format. What Sotto reads of
// it is written here, once for all of these formats: a reader maps its own types to kinds, and asks.
type columnType struct {
	kind typeKind
	name string // in the words of the format, for people
}

// A typeKind is a set of types that are read, or refused, in the same way.
type typeKind byte

const (
	typeUnknown typeKind = iota
	// whole and other numbers, truth values, text, decimals, dates, timestamps: the stored value has a text
	typeValue
	typeNull // every value is missing
	typeDuration
	typeTime
	typeInterval
	typeFloat16
	typeDecimal // with a scale that has no text
	typeInt96
	typeBinary // of a fixed length
	typeNested
	typeRunEnds
	typeExtension
)

// refusedTypes says of each kind that is not read what its columns hold, and what to do. The number that such a column
// stores is not its value: another unit would give other features, in silence.
var refusedTypes = map[typeKind]struct{ holds, advice string }{
	typeUnknown: {"values of a type that Sotto does not know", "write them as numbers or text"},
	typeDuration: {"durations",
		"write them as numbers of one unit, in pandas: .dt.total_seconds(), in Polars: .dt.total_seconds(fractional=True)"},
	typeTime:     {"times of day without a date", "write them as numbers, as seconds since midnight"},
	typeInterval: {"calendar intervals", "write them as numbers of one unit"},
	typeFloat16:  {"16-bit floats", "write them as float32 or float64"},
	typeDecimal:  {"decimals whose scale is below 0 or above 1000", "write them as float64"},
	typeInt96: {"timestamps of 96 bits, which have no declared zone",
		`write them as TIMESTAMP, in Spark: spark.sql.parquet.outputTimestampType=TIMESTAMP_MICROS`},
	typeBinary:    {"bytes of a fixed length", "write them as numbers or text"},
	typeNested:    {"nested values", "write each part that the schema needs as a column of its own"},
	typeRunEnds:   {"run-end encoded values", "write the values themselves, in pyarrow: pyarrow.compute.run_end_decode"},
	typeExtension: {"an extension type", "write its values as numbers, text or dates"},
}

// read reports whether columns of the type are read.
func (t columnType) read() bool { return t.kind == typeValue || t.kind == typeNull }

// A refusedColumn is a column that the schema reads and Sotto does not.
type refusedColumn struct {
	name string
	of   columnType
}

// wrongTypes is the error of those columns.
func wrongTypes(path string, columns []refusedColumn) error {
	var all config.Errors
	for _, c := range columns {
		why := refusedTypes[c.of.kind]
		holds := why.holds
		if c.of.kind == typeExtension || c.of.kind == typeUnknown {
			holds += ", " + config.Quote(c.of.name)
		}
		all = append(all,
			&config.Error{File: path, Err: fmt.Errorf("column %s holds %s; %s", config.Quote(c.name), holds, why.advice)})
	}
	return all.Err()
}

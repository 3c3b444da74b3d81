package plan

import (
	"fmt"
	"io"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/internal/text"
)

// Needs are the memory and the disk that a run takes, by public facts alone, in bytes. Package run/size computes them.
type Needs struct {
	RowBytes int   `json:"row_bytes"` // of an encoded row in memory; 0: mapped from a file, or not known beforehand
	Rows     int64 `json:"rows"`      // of all declared rows
	Releases int64 `json:"releases"`  // on disk, as long as each step answers one vector of the parameters
	Steps    int64 `json:"steps"`     // of steps.jsonl, on disk
}

// mostSilent is the size in bytes, of memory or disk, from which on people are told.
const mostSilent = 100_000_000

// Large says whether people should know before the run.
func (n Needs) Large() bool { return n.Rows >= mostSilent || n.Disk() >= mostSilent }

// Disk is what the run writes.
func (n Needs) Disk() int64 {
	if all := n.Releases + n.Steps; all >= 0 {
		return all
	}
	return n.Releases // near the largest number
}

// Words say it for people.
func (n Needs) Words() string {
	disk := fmt.Sprintf("%s of disk (releases %s, log of the steps %s)", Bytes(n.Disk()), Bytes(n.Releases),
		Bytes(n.Steps))
	if n.RowBytes == 0 {
		return "at most " + disk
	}
	return fmt.Sprintf("%s of memory for the declared rows, %s bytes each encoded; at most %s", Bytes(n.Rows),
		chart.Integer(n.RowBytes), disk)
}

// print prints needs that people should know of.
func (n Needs) print(w io.Writer) {
	if n.Large() {
		text.Row(w, "Needs", "%s", n.Words())
	}
}

// Bytes is a size for people.
func Bytes(n int64) string {
	for _, unit := range []struct {
		name string
		size float64
	}{{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}} {
		if v := float64(n) / unit.size; v >= 1 {
			return fmt.Sprintf("%.3g %s", v, unit.name)
		}
	}
	return fmt.Sprintf("%.3g kB", float64(n)/1e3)
}

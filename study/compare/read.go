package compare

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"strconv"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/internal/readfile"
)

// HeadFile is in the directory of every comparison, complete or not.
const HeadFile = headFile

// A Row is a cell as the results in a directory have it, its figures as in the tables of
// [Page].
type Row struct {
	Table, Method, Epsilon, Delta, Adjacency string
	Runs, Diverged                           int
	Measure                                  string // what Score is, with its unit
	Score, Objective, Seconds                string
	Mean, SD                                 float64 // of Score, in its unit; NaN without one
	Refused                                  string  // why there are no figures
}

// Done counts the completed trainings in a directory.
func Done(dir string) (int, error) {
	b, err := readfile.All(filepath.Join(dir, runsFile), readfile.JSON)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	return bytes.Count(b, []byte("\n")), err
}

// ReadRows reads the cells that a comparison wrote to its directory. The file exists once all trainings
// are complete.
func ReadRows(dir string) ([]Row, error) {
	path := filepath.Join(dir, CellsCSV)
	text, err := readfile.All(path, readfile.JSON)
	if err != nil {
		return nil, err
	}
	lines, err := csv.NewReader(bytes.NewReader(text)).ReadAll() // all lines have as many fields
	if err != nil || len(lines) == 0 {
		return nil, fmt.Errorf("%s: is not the table of a comparison's cells (%v)", path, err)
	}
	place := map[string]int{}
	for i, name := range lines[0] {
		place[name] = i
	}
	var rows []Row
	for n, l := range lines[1:] {
		text := func(name string) string {
			if i, ok := place[name]; ok {
				return l[i]
			}
			return ""
		}
		r := Row{Table: text("table"), Method: text("method"), Epsilon: text("epsilon"), Delta: text("delta"),
			Adjacency: text("adjacency"), Refused: text("refused")}
		var noRuns, noDiverged error
		r.Runs, noRuns = strconv.Atoi(text("runs"))
		r.Diverged, noDiverged = strconv.Atoi(text("diverged"))
		if err := errors.Join(noRuns, noDiverged); err != nil {
			return nil, fmt.Errorf("%s:%d: the line is not a cell of a comparison; repeat `sotto compare` with this directory to write it again", path, n+2)
		}
		number := func(name string) float64 {
			if v, err := strconv.ParseFloat(text(name), 64); err == nil {
				return v
			}
			return math.NaN()
		}
		figure := func(s shown, name string, n int) string {
			return s.text(Figure{Mean: number(name + "_mean"), SD: number(name + "_sd"), Median: number(name + "_median"), N: n})
		}
		s, plain := scored(text("measure") == "accuracy"), shown{scale: 1, write: chart.Number}
		whole := r.Runs - r.Diverged
		r.Mean, r.SD = s.scale*number("score_mean"), s.scale*number("score_sd")
		r.Measure, r.Score, r.Objective, r.Seconds = s.name, figure(s, "score", whole), figure(plain, "objective", whole),
			figure(plain, "seconds", r.Runs)
		rows = append(rows, r)
	}
	return rows, nil
}

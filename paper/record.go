package paper

import (
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/internal/text"
	"github.com/sottodp/sotto/run/runlog"
)

// recordFile has the Record of a run.
const recordFile = "record.json"

// A Record says what ran, where, for how long, and what came out.
type Record struct {
	Paper     string            `json:"paper"`
	Full      bool              `json:"full"`
	Settings  string            `json:"settings"`
	Build     runlog.Build      `json:"build"`
	Ran       *Ran              `json:"ran,omitempty"` // the build that ran the jobs, if Build only judged them
	Seeds     string            `json:"seeds"`
	Data      map[string]string `json:"data,omitempty"` // SHA-256 of the files that were read
	Pieces    []Piece           `json:"pieces"`         // more than one if the run was continued
	Wall      float64           `json:"wall_seconds"`
	Processor float64           `json:"processor_seconds"`
	Printed   int               `json:"printed"` // results of the paper that stand beside Sotto's
	Claims    Claims            `json:"claims"`
}

// Ran names the build that ran an experiment.
type Ran struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Program string `json:"program,omitempty"` // SHA-256 of a program that no commit describes
}

func (r *Ran) String() string {
	if r.Commit == "" {
		return r.Version
	}
	return r.Version + " at " + r.Commit[:min(12, len(r.Commit))]
}

// A Piece is what one process did.
type Piece struct {
	Start     time.Time `json:"start"`
	Processor string    `json:"cpu"`
	Cores     int       `json:"cores"` // that Go uses
	Loads     [2]string `json:"load"`  // at the start and the end; "" for the end of a process that was killed
	Wall      float64   `json:"wall_seconds"`
	Busy      float64   `json:"processor_seconds"`
}

func newPiece(start time.Time) Piece {
	model := "processor not known"
	if m := regexp.MustCompile(`(?m)^model name\s*:\s*(.*)$`).FindSubmatch(proc("cpuinfo")); m != nil {
		model = string(m[1])
	}
	return Piece{Start: start.UTC().Truncate(time.Second), Processor: model, Cores: runtime.GOMAXPROCS(0),
		Loads: [2]string{Load()}}
}

func (p *Piece) until(l line) { p.Wall, p.Busy, p.Loads[1] = l.Wall, l.Processor, l.Load }

// proc is what Linux says of the machine; nil elsewhere.
func proc(name string) []byte {
	f, err := readfile.OpenFile("/proc/"+name, os.O_RDONLY, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	b, _ := io.ReadAll(f)
	return b
}

// Load is the mean number of processes over a minute that run or wait to, and how many do now.
func Load() string {
	f := strings.Fields(string(proc("loadavg")))
	if len(f) < 4 {
		return "not known"
	}
	now, _, _ := strings.Cut(f[3], "/")
	return f[0] + " (now " + now + ")"
}

// record is the record of what was found.
func (k *keeper) record(e Experiment, l *Lab, r *Results) *Record {
	rec := &Record{Paper: e.Name, Full: l.Full, Settings: k.id.Settings, Build: runlog.ThisBuild(), Seeds: e.Seeds,
		Data: k.files, Pieces: k.pieces, Claims: r.Claims}
	if k.judge {
		rec.Ran = &Ran{k.was.Version, k.was.Commit, k.was.Program}
	}
	for _, p := range k.pieces {
		rec.Wall, rec.Processor = rec.Wall+p.Wall, rec.Processor+p.Busy
	}
	for _, t := range r.Tables {
		rec.Printed += t.printed()
	}
	return rec
}

// Name tells the run from others: paper, size, when it began, and from which sources.
func (r *Record) Name() string {
	if r == nil {
		return ""
	}
	size := map[bool]string{true: "full", false: "small"}[r.Full]
	s := fmt.Sprintf("%s, %s size, %s UTC", r.Paper, size, r.Pieces[0].Start.Format("2006-01-02 15:04"))
	if r.Build.Commit != "" {
		s += ", commit " + r.Build.Commit[:min(12, len(r.Build.Commit))]
	}
	return s
}

// Line is the record in a line, without claims and checksums.
func (r *Record) Line() string {
	p := r.Pieces[0]
	size := map[bool]string{true: "full", false: "small"}[r.Full]
	s := fmt.Sprintf("%s size, %s UTC, %s, %d cores, %s, kernels %s, Sotto %s", size, p.Start.Format("2006-01-02 15:04"),
		p.Processor, p.Cores, r.Build.Platform, r.Build.Kernels, r.Build.Version)
	if r.Build.Commit != "" {
		s += " at " + r.Build.Commit[:min(12, len(r.Build.Commit))]
	}
	if r.Ran != nil {
		s += fmt.Sprintf(", which judged what Sotto %s ran", r.Ran)
	}
	if len(r.Pieces) > 1 {
		s += fmt.Sprintf(", in %d pieces", len(r.Pieces))
	}
	last := r.Pieces[len(r.Pieces)-1]
	return s + fmt.Sprintf(". Seeds: %s. Wall time %.0f s, processor time %.0f s. Load %s at the start, %s at the end",
		r.Seeds, r.Wall, r.Processor, p.Loads[0], last.Loads[1])
}

// Files are the names of the files that were read, sorted.
func (r *Record) Files() []string { return slices.Sorted(maps.Keys(r.Data)) }

// printed counts the results in columns that are the paper's, where the next column, which is Sotto's or the ratio, is
// not empty. Settings are not counted.
func (t *Table) printed() (n int) {
	if t.Settings {
		return 0
	}
	for j, h := range t.Head {
		if h != "paper" && h != "the paper" && !strings.HasSuffix(h, ", paper") {
			continue
		}
		for _, row := range t.Rows {
			if strings.ContainsAny(row[j], "0123456789") && row[j+1] != "" {
				n++
			}
		}
	}
	return n
}

// Summary is the page docs/measurements/papers.md: what the records of the papers' runs add up to, the claims that fail
// with the reason of each, those that hold with their figures, notes that a person wrote, and the records.
func Summary(records []*Record, of map[string]Publication, notes string) string {
	var b strings.Builder
	b.WriteString("# Reproductions\n\nWhat runs of `sotto paper` found, one for each paper; `sotto paper all` makes the pages of all. To add a\n" +
		"run, copy its `record.json` to `paper/pN/record.json` in the sources and write this page again:\n" +
		"`go test ./docs -run Papers -update`, which leaves the notes as they are. The tables and figures of a run are in\n" +
		"its own directory.\n\n## Overview\n\n" +
		"| paper | claims of the paper | held | failed | not tested | results of the paper beside ours |\n|---|---|---|---|---|---|\n")
	for _, r := range records {
		c := r.Claims.Paper()
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d |\n", strings.ToUpper(r.Paper), len(c), c.Passed(), c.Failed(),
			c.Untested(), r.Printed)
	}
	b.WriteString("\n")
	for _, r := range records {
		p := of[r.Paper]
		line := fmt.Sprintf("- **%s**: %s, *%s*, %s.", strings.ToUpper(r.Paper), p.Names(), p.Title, p.Venue())
		for _, l := range p.Links() {
			line += fmt.Sprintf(" [%s](%s)", l.Text, l.URL)
		}
		b.WriteString(text.Indented(line, 98, 2) + "\n")
	}
	if notes != "" {
		b.WriteString("\n## Notes\n\n" + strings.TrimSpace(notes) + "\n")
	}
	b.WriteString("\n## Claims that fail\n\n| paper | claim | found | reason |\n|---|---|---|---|\n")
	listed(&b, records, func(c Claim) bool { return !c.Holds && !c.NotTested },
		func(c Claim) string { return c.Found + " | " + c.Why })
	b.WriteString("\n## Claims that hold\n\n| paper | claim | found |\n|---|---|---|\n")
	listed(&b, records, func(c Claim) bool { return c.Holds }, func(c Claim) string { return c.Found })
	b.WriteString("\n## Claims that are not tested\n\n| paper | claim | reason |\n|---|---|---|\n")
	listed(&b, records, func(c Claim) bool { return c.NotTested }, func(c Claim) string { return c.Why })
	b.WriteString("\n## Runs\n\nThe checksums of the files that were read are in each `record.json`.\n")
	for _, r := range records {
		b.WriteString("\n" +
			text.Wrap(fmt.Sprintf("**%s.** %s. Results of the paper beside ours: %d.", strings.ToUpper(r.Paper), r.Line(),
				r.Printed), 100) + "\n")
	}
	return b.String()
}

// listed writes a line for each claim of the papers of some kind. Claims that hold and are cells of the paper's tables
// share a line, and so do claims that follow one another with the same sentence and reason.
func listed(b *strings.Builder, records []*Record, of func(Claim) bool, cells func(Claim) string) {
	escape := strings.NewReplacer("|", "\\|", "\n", " ")
	for _, r := range records {
		name, printed := strings.ToUpper(r.Paper), 0
		all := r.Claims.Paper().of(of)
		for i, c := range all {
			if c.Holds && strings.HasPrefix(c.Name, PrintedCell) {
				printed++
				continue
			}
			same := func(a, b Claim) bool { return a.From == b.From && a.Says == b.Says && a.Why == b.Why }
			if i > 0 && same(all[i-1], c) {
				continue
			}
			for _, d := range all[i+1:] {
				if !same(c, d) {
					break
				}
				c.Name, c.Found = c.Name+"`, `"+d.Name, c.Found+" / "+d.Found
			}
			row := cells(Claim{Found: escape.Replace(c.Found), Why: escape.Replace(c.Why)})
			fmt.Fprintf(b, "| %s | %s: %s (`%s`) | %s |\n", name, c.From, escape.Replace(c.Says), escape.Replace(c.Name), row)
		}
		if printed > 0 {
			fmt.Fprintf(b, "| %s | cells of its tables, as printed | %d, each with steps, loss and noise in [record.json](../../paper/%s/record.json) |\n",
				name, printed, r.Paper)
		}
	}
}

// PrintedCell begins the name of a claim that is one cell of a paper's table.
const PrintedCell = "printed, "

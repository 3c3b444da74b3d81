package web

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/privacy"
)

// The page of a dataset shows the last runs and entries, what was left after each of the runs, and links to the ones before.
func TestDatasetInPages(t *testing.T) {
	defer func(n int) { mostEntries = n }(mostEntries)
	mostEntries = 3
	root := t.TempDir()
	l, err := ledger.Open(t.Context(), filepath.Join(root, "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	budget := privacy.Budget{Epsilon: 5, Delta: 0.1, Adjacency: privacy.AddRemove}
	if err := l.SetBudget(t.Context(), "clinic", "record", "", budget); err != nil {
		t.Fatal(err)
	}
	for i := range 7 {
		if _, err := l.Reserve(t.Context(), ledger.Reservation{Dataset: "clinic", Unit: "record", Adjacency: privacy.AddRemove, Run: fmt.Sprint("r", i), Epsilon: 0.1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(root, "runs"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := open(t, root).enter()
	for _, c := range []struct {
		query string
		runs  []int
		left  []string
		links []string
		seqs  []int
	}{
		{"", []int{6, 5, 4}, []string{"4.3", "4.4", "4.5"}, []string{"2"}, []int{9, 8, 7}},
		{"?page=1", []int{6, 5, 4}, []string{"4.3", "4.4", "4.5"}, []string{"2"}, []int{9, 8, 7}},
		{"?page=2", []int{3, 2, 1}, []string{"4.6", "4.7", "4.8"}, []string{"1", "3"}, []int{6, 5, 4}},
		{"?page=3", []int{0}, []string{"4.9"}, []string{"2"}, []int{3, 2, 1}},
		{"?page=4", nil, nil, []string{"3"}, nil},
		{"?page=-1", []int{6, 5, 4}, nil, []string{"2"}, nil},
		{"?page=x", []int{6, 5, 4}, nil, []string{"2"}, nil},
		{"?page=99999999999", nil, nil, nil, nil},
	} {
		status, text := s.get("/datasets/clinic" + c.query)
		if status != 200 {
			t.Fatalf("%s: %d: %s", c.query, status, text)
		}
		runs, entries, _ := strings.Cut(text, `<section aria-labelledby="entries">`)
		if n := strings.Count(runs, `<th scope="row">r`); n != len(c.runs) {
			t.Errorf("%s: %d runs are shown, want %d", c.query, n, len(c.runs))
		}
		for i, run := range c.runs {
			want := fmt.Sprintf(`<th scope="row">r%d</th>`, run)
			_, row, shown := strings.Cut(runs, want)
			row, _, _ = strings.Cut(row, "</tr>")
			if !shown || c.left != nil && !strings.Contains(row, `<td class="num" data-name="ε left after it">`+c.left[i]+`</td>`) {
				t.Errorf("%s: run %d: %s", c.query, run, row)
			}
		}
		for _, seq := range c.seqs {
			if !strings.Contains(entries, fmt.Sprintf(`<th scope="row" class="num">%d</th>`, seq)) {
				t.Errorf("%s: entry %d is not shown", c.query, seq)
			}
		}
		if c.query != "?page=99999999999" && strings.Count(entries, `href="?page=`) != len(c.links) {
			t.Errorf("%s: the links are not %v: %s", c.query, c.links, entries)
		}
		for _, link := range c.links {
			if !strings.Contains(entries, `href="?page=`+link+`"`) {
				t.Errorf("%s: no link to page %s: %s", c.query, link, entries)
			}
		}
	}
}

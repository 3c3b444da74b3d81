package data

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
)

// TestA5EmptyTable: in every form, a table without rows, or one of which every row was dropped, is a table. Under
// add-or-remove its neighbor has one row, and both must give one or neither an error.
func TestA5EmptyTable(t *testing.T) {
	ctx := context.Background()
	db, file := sqliteFileOf(t)
	if _, err := db.Exec(`CREATE TABLE people (gain REAL, sick BOOLEAN, age INTEGER, id DATE, colour TEXT)`); err != nil {
		t.Fatal(err)
	}
	images := idx(2, []int{2, 3}, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6)
	noHeader := strings.Replace(small, "format: {", "format: {header: false, ", 1)
	for name, c := range map[string]struct {
		schema, path  string
		rows, dropped int
	}{
		"csv":             {small, writeFile(t, "f", "age,colour,id,gain,sick\n"), 0, 0},
		"csv, no newline": {small, writeFile(t, "f", "age,colour,id,gain,sick"), 0, 0},
		"csv, no header":  {noHeader, writeFile(t, "f", ""), 0, 0},
		"csv, gzip":       {small, writeFile(t, "f", zipped("age,colour,id,gain,sick\n\n")), 0, 0},
		"csv, dropped":    {"on_bad_row: drop\n" + small, writeFile(t, "f", "age,colour,id,gain,sick\n1,red,x,2,perhaps\n"), 1, 1},
		"libsvm":          {svm, writeFile(t, "f", ""), 0, 0},
		"libsvm, comment": {svm, writeFile(t, "f", "# nothing\n"), 0, 0},
		"idx":             {pictures, pair(t, idx(0, []int{2, 3}), idx(0, nil), ""), 0, 0},
		"idx, dropped":    {"on_bad_row: drop\n" + pictures, pair(t, images, idx(2, nil, 8, 9), ""), 2, 2},
		"parquet":         {small, writeParquet(t, []smallParquet{}), 0, 0},
		"sqlite":          {small, file + "?table=people", 0, 0},
		"units":           {visits, writeFile(t, "f", "patient_id,who,age,sick\n"), 0, 0},
		"units, dropped":  {visits, writeFile(t, "f", "patient_id,who,age,sick\np1,1,1,perhaps\n,1,1,no\n"), 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := mustParse(t, c.schema)
			pack := filepath.Join(t.TempDir(), "t.pack")
			if _, err := packTable(ctx, admit(), s, c.path, pack, Options{}); err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{c.path, pack} {
				for _, opt := range []Options{{}, {KeepBad: true}, {ByRow: true}, {ByRow: true, Unlabeled: true}} {
					if opt.ByRow && c.dropped > 0 {
						continue // a row that is bad for its label or its unit is none then
					}
					kept := 0
					if opt.KeepBad || path == pack {
						kept = c.rows
					}
					tab, stats, err := readTable(ctx, admit(), s, path, opt)
					if err != nil {
						t.Fatalf("%s %+v: %v", path, opt, err)
					}
					if tab.Rows() != kept || stats.Rows != c.rows || stats.Dropped != c.dropped {
						t.Errorf("%s %+v: %d rows, %+v", path, opt, tab.Rows(), stats)
					}
					checkTable(t, tab)
					if (tab.Shares() != nil) != (s.UnitRows > 0 && !opt.ByRow) {
						t.Errorf("%+v: shares %v", opt, tab.Shares())
					}
					if part := Subset([]*Table{tab}, func(int) bool { return true }); kept == 0 && part.Rows() != 0 || len(RowHashes([]*Table{tab}, nil)) != tab.Units() {
						t.Error("other rows in a division")
					}
					again := filepath.Join(t.TempDir(), "again.pack")
					if err := PackTable(s, tab, again); err != nil && !opt.Unlabeled {
						t.Error(err)
					}
					tab.Close()
				}
			}
			if _, _, err := readTable(ctx, admit(), s, c.path, Options{Rows: c.rows + 1, KeepBad: true}); err == nil || !strings.Contains(err.Error(), "under replace-one") {
				t.Errorf("another number than the declared one under replace-one: %v", err)
			}
		})
	}

	// Whether a unit is on both sides can be asked of nobody, too.
	s := mustParse(t, visits)
	none, one := writeFile(t, "none", "patient_id,who,age,sick\n"), writeFile(t, "one", "patient_id,who,age,sick\np1,1,1,no\n")
	for _, c := range [][2]string{{none, none}, {none, one}, {one, none}} {
		train, _, err := readTable(ctx, admit(), s, c[0], Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := readTable(ctx, admit(), s, c[1], Options{}, train); err != nil {
			t.Error(err)
		}
	}
}

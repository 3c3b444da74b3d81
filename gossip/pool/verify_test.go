package pool

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sottodp/sotto/internal/vfs"
	"github.com/sottodp/sotto/run/runlog"
)

// A comparison of journals names the directory whose part is missing, or was masked in another context.
func TestVerifyNames(t *testing.T) {
	for want, change := range map[string]func(p *runlog.SumsPart) (missing bool){
		"":                       func(*runlog.SumsPart) bool { return false },
		": its part of sum 1 of": func(*runlog.SumsPart) bool { return true },
		": sum 1 of attempt 1 has a part in another context than in ": func(p *runlog.SumsPart) bool { p.Digest[0]++; return false },
	} {
		dirs := []string{t.TempDir(), t.TempDir()}
		for i, dir := range dirs {
			s, err := runlog.Disk{FS: vfs.OS{}}.OpenSums(filepath.Join(dir, runlog.SumsFile), runlog.SumsHead{Run: "run", Config: "net", Owner: i, Owners: 2})
			if err != nil {
				t.Fatal(err)
			}
			p := runlog.SumsPart{Charged: 1, N: 1}
			missing := i == 1 && change(&p)
			if !missing {
				number := make([]byte, 8)
				number[0] = byte(i)
				err = errors.Join(s.Part(0, 0, p, number), s.Total(0, 0, []byte{1, 0, 0, 0, 0, 0, 0, 0}))
			}
			if err := errors.Join(err, s.Close()); err != nil {
				t.Fatal(err)
			}
		}
		_, err := Verify(dirs...)
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), dirs[1]+want)) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}

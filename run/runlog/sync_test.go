package runlog

import (
	"io/fs"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sottodp/sotto/internal/vfs"
	"github.com/sottodp/sotto/privacy"
)

// TestEContinueSyncs: what a killed process wrote may not be durable. Continue makes it so before it says what is there (R5).
func TestEContinueSyncs(t *testing.T) {
	dir := t.TempDir()
	w, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Charge(privacy.PureDP{Epsilon: 1}); err != nil {
		t.Fatal(err)
	}
	if err := w.Release([][]float64{{1}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var synced []string
	w, _, err = Disk{syncs{told: func(name string) { synced = append(synced, filepath.Base(name)) }}}.Continue(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	slices.Sort(synced)
	synced = slices.Compact(synced)
	if want := []string{EventsFile, ReleasesFile, StepsFile}; !slices.Equal(synced, want) {
		t.Errorf("synced %v; want %v", synced, want)
	}
}

// syncs tells which files are synced.
type syncs struct {
	vfs.OS
	told func(name string)
}

type synced struct {
	vfs.File
	told func(name string)
}

func (d syncs) OpenFile(name string, flag int, mode fs.FileMode) (vfs.File, error) {
	f, err := d.OS.OpenFile(name, flag, mode)
	return synced{f, d.told}, err
}

func (f synced) Sync() error {
	f.told(f.Name())
	return f.File.Sync()
}

package runlog

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

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
	syncFile = func(f *os.File) error {
		synced = append(synced, filepath.Base(f.Name()))
		return f.Sync()
	}
	defer func() { syncFile = (*os.File).Sync }()
	w, _, err = Continue(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	slices.Sort(synced)
	if want := []string{EventsFile, ReleasesFile, StepsFile}; !slices.Equal(synced, want) {
		t.Errorf("synced %v; want %v", synced, want)
	}
}

func TestEMakeDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b", "c")
	for range 2 {
		if err := MakeDir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		t.Fatal(err)
	}
}

package ledger

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/sottodp/sotto/internal/vfs"
)

func TestDefaultPlace(t *testing.T) {
	for _, c := range []struct{ xdg, want string }{
		{"data", "data/sotto/ledger.db"}, {"", ".local/share/sotto/ledger.db"},
	} {
		dir := t.TempDir()
		t.Setenv("HOME", dir)
		t.Setenv("XDG_DATA_HOME", "")
		if c.xdg != "" {
			t.Setenv("XDG_DATA_HOME", filepath.Join(dir, c.xdg))
		}
		l := open(t, "")
		want := filepath.Join(dir, c.want)
		if l.Where() != want {
			t.Errorf("found %s; want %s", l.Where(), want)
		}
		for path, mode := range map[string]os.FileMode{want: 0o600, filepath.Dir(want): 0o700} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
				t.Errorf("%s: found %v, %v; want %v", path, info.Mode(), err, mode)
			}
		}
	}
	for _, home := range []string{"", "relative"} { // a ledger in each working directory would be none
		t.Setenv("HOME", home)
		if _, err := Open(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "XDG_DATA_HOME") {
			t.Errorf("home %q: %v", home, err)
		}
	}
}

// A path is a path, whatever is in it.
func TestOddPaths(t *testing.T) {
	for _, name := range []string{"a b.db", "50%41.db", "what?mode=memory.db", "#1.db", "ü&_pragma=x.db"} {
		path := filepath.Join(t.TempDir(), name)
		reserve(t, open(t, path), reservation("clinic", "r"))
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			t.Errorf("%q: %v", name, err)
		}
	}
	t.Chdir(t.TempDir())
	reserve(t, open(t, "relative.db"), reservation("clinic", "r"))
	if _, err := os.Stat("relative.db"); err != nil {
		t.Error(err)
	}
}

func TestFilesThatAreNoLedger(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		t.Helper()
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, content, 0o600))
		return path
	}
	foreign := filepath.Join(dir, "foreign.db")
	db, err := sql.Open("sqlite", foreign)
	must(t, err)
	_, err = db.Exec(`CREATE TABLE patients (name TEXT)`)
	must(t, err)
	must(t, db.Close())
	half := filepath.Join(dir, "half.db")
	l := open(t, half)
	_, err = l.store.db.Exec(`DROP TABLE sotto_entries`)
	must(t, err)
	l.Close()
	noKey := filepath.Join(dir, "nokey.db")
	l = open(t, noKey)
	_, err = l.store.db.Exec(`UPDATE sotto_ledger SET mark_key = 'x'`)
	must(t, err)
	l.Close()
	for _, c := range []struct{ where, says string }{
		{dir, "found a directory"},
		{filepath.Join(dir, "none", "ledger.db"), "the directory " + filepath.Join(dir, "none") + " does not exist"},
		{write("text.db", []byte("name,age\nAnna,41\n")), "not an SQLite database"},
		{write("short.db", []byte("SQLite")), "not an SQLite database"},
		{write("garbage.db", []byte("SQLite format 3\x00"+strings.Repeat("garbage ", 200))), "SQLite"},
		{foreign, "belongs to another program"},
		{half, "one of its tables is missing"},
		{noKey, "the key of the content marks is damaged"},
		{"mysql://host/db", `found a URL that starts with "mysql://"`},
	} {
		l, err := Open(t.Context(), c.where)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: found %v; want %q in it", c.where, err, c.says)
		}
		if err == nil {
			l.Close()
		} else if strings.Contains(err.Error(), "Anna") {
			t.Errorf("the error shows the file's content: %v", err)
		}
	}
}

// B4: what is no ledger stays as it is, byte for byte, however it is opened.
func TestB4FilesAreLeftAsTheyAre(t *testing.T) {
	wal := filepath.Join(t.TempDir(), "wal.db")
	db, err := sql.Open("sqlite", wal)
	must(t, err)
	for _, do := range []string{`PRAGMA journal_mode(WAL)`, `CREATE TABLE patients (name TEXT)`} {
		_, err = db.Exec(do)
		must(t, err)
	}
	must(t, db.Close())
	other, err := os.ReadFile(wal)
	must(t, err)
	for name, content := range map[string][]byte{
		"empty": {}, "one byte": {'x'}, "text": []byte(strings.Repeat("name,age\n", 100)), "another program's": other,
	} {
		for how, open := range map[string]func(context.Context, string) (*Ledger, error){"open": Open, "find": Find, "view": View} {
			t.Run(name+"/"+how, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "ledger.db")
				must(t, os.WriteFile(path, content, 0o600))
				l, err := open(t.Context(), path)
				if err == nil {
					l.Close()
					t.Fatal("it was opened")
				}
				if !strings.Contains(err.Error(), path) {
					t.Errorf("the error does not say where: %v", err)
				}
				after, err := os.ReadFile(path)
				must(t, err)
				if !bytes.Equal(after, content) {
					t.Errorf("the file was changed")
				}
				if names, err := os.ReadDir(filepath.Dir(path)); err != nil || len(names) != 1 {
					t.Errorf("%v (%v)", names, err)
				}
			})
		}
	}
}

// B4: many processes and goroutines that make a ledger at once have one afterward.
func TestB4MakersAgree(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	var made sync.WaitGroup
	for i := range 8 {
		made.Go(func() {
			l, err := Open(t.Context(), path)
			if err == nil {
				_, err = l.Reserve(t.Context(), reservation("clinic", fmt.Sprint("r", i)))
				err = errors.Join(err, l.Close())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	made.Wait()
	if n := verify(t, open(t, path)); n != 9 {
		t.Errorf("found %d entries; want the dataset's and 8", n)
	}
}

// B4: what a process left that was killed while it made a ledger is removed.
func TestB4UnfinishedFilesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "ledger.db")
	for _, name := range []string{".ledger.db.new-1", ".ledger.db.new-1-journal", ".other.db.new-1"} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600))
	}
	open(t, path).Close()
	var names []string
	files, err := os.ReadDir(dir)
	must(t, err)
	for _, f := range files {
		names = append(names, f.Name())
	}
	if got := strings.Join(names, " "); got != ".other.db.new-1 ledger.db ledger.db-queue" {
		t.Errorf("found %s", got)
	}
}

// A view takes back what a program that was killed during a commit left in the file.
func TestViewAfterAKill(t *testing.T) {
	dir, copied := t.TempDir(), filepath.Join(t.TempDir(), "ledger.db")
	path := filepath.Join(dir, "ledger.db")
	l := open(t, path)
	reserve(t, l, reservation("clinic", "first"))
	_, err := l.store.db.Exec(`PRAGMA cache_size = 10; PRAGMA cache_spill = 1`) // pages: more goes to the file before the commit
	must(t, err)
	must(t, l.write(t.Context(), func(w *writer) error {
		if err := w.append(KindNotPrivate, "clinic", "", notPrivate{Why: strings.Repeat("x", 1<<20)}); err != nil {
			return err
		}
		copyFile(t, path, copied)
		copyFile(t, path+"-journal", copied+"-journal")
		return nil
	}))
	v, err := View(t.Context(), copied)
	if errors.Is(err, ErrWitness) { // the original went on
		forget(t, l)
		v, err = View(t.Context(), copied)
	}
	must(t, err)
	defer v.Close()
	if n := verify(t, v); n != 2 {
		t.Errorf("found %d entries; want 2", n)
	}
	if _, err := os.Stat(copied + "-journal"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the journal was not taken back (%v)", err)
	}
}

// badDir is the machine's file system, on which syncs of directories fail once one of them has.
type badDir struct {
	vfs.OS
	synced []string
	from   int // the first sync that fails; 0: none
}

func (d *badDir) SyncDir(dir string) error {
	d.synced = append(d.synced, dir)
	if d.from > 0 && len(d.synced) >= d.from {
		return syscall.EIO
	}
	return d.OS.SyncDir(dir)
}

// A transaction syncs the directory of SQLite's journal before its commit and after it: SQLite does so, and ignores some
// failures. The journal is beside the file, not beside a link to it.
func TestCommitSyncsDirectory(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	path, link := filepath.Join(dir, "ledger.db"), filepath.Join(t.TempDir(), "link.db")
	open(t, path).Close()
	must(t, os.Symlink(path, link))
	disk := &badDir{}
	l, err := Disk{FS: disk}.Open(t.Context(), link)
	must(t, err)
	defer l.Close()
	for i, run := range []string{"whole", "not begun", "not durable"} {
		disk.synced, disk.from = nil, i
		_, err := l.Reserve(t.Context(), reservation("clinic", run))
		if i == 0 && err != nil || i > 0 && !(errors.Is(err, ErrUncertain) && errors.Is(err, syscall.EIO)) {
			t.Errorf("%s: %v", run, err)
		}
		if want := slices.Repeat([]string{dir}, cmp.Or(i, 2)); !slices.Equal(disk.synced, want) {
			t.Errorf("%s: synced %v, want %v", run, disk.synced, want)
		}
		disk.from = 0
		if _, err := l.Run(t.Context(), run); errors.Is(err, ErrUnknownRun) != (i == 1) {
			t.Errorf("%s: %v", run, err)
		}
	}
}

// Before its commit a transaction writes nothing to the file, however large it is: the journal's name may not be durable yet.
func TestTransactionStaysInMemory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, path)
	before, err := os.ReadFile(path)
	must(t, err)
	must(t, l.write(t.Context(), func(w *writer) error {
		if err := w.append(KindNotPrivate, "clinic", "", notPrivate{Why: strings.Repeat("x", 4<<20)}); err != nil { // SQLite's cache has 2 MB
			return err
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, before) {
			t.Errorf("the file changed from %d to %d bytes before the commit (%v)", len(before), len(now), err)
		}
		return nil
	}))
}

// E: a ledger that is deleted or replaced under a run is named as such.
func TestLedgerIsGone(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"deleted": os.Remove,
		"replaced": func(path string) error {
			b, err := os.ReadFile(path)
			return errors.Join(err, os.Rename(path, path+".old"), os.WriteFile(path, b, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger.db")
			l := open(t, path)
			token := reserve(t, l, reservation("clinic", "r"))
			must(t, change(path))
			wantError(t, l.Reach(t.Context(), "r", token, 1, batchesOf(1, 100)), ErrGone)
			wantError(t, l.Settle(t.Context(), "r", token, Settlement{Outcome: Done}), ErrGone)
		})
	}
}

// A journal that was left without its ledger would be written into a new one.
func TestJournalWithoutItsLedger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	must(t, os.WriteFile(path+"-journal", []byte("pages"), 0o600))
	_, err := Open(t.Context(), path)
	wantError(t, err, ErrNotLedger)
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("a file was made (%v)", err)
	}
}

func TestDamagedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, path)
	for i := range 60 {
		reserve(t, l, reservation("clinic", fmt.Sprint("r", i)))
	}
	l.Close()
	whole, err := os.ReadFile(path)
	must(t, err)
	for name, damage := range map[string]func([]byte) []byte{
		"truncated": func(b []byte) []byte { return b[:len(b)/2] },
		"a page of zeros": func(b []byte) []byte {
			clear(b[len(b)/2&^4095:][:4096])
			return b
		},
		"bits flipped": func(b []byte) []byte {
			for i := 5000; i < len(b); i += 97 {
				b[i] ^= 0x55
			}
			return b
		},
	} {
		must(t, os.WriteFile(path, damage(append([]byte(nil), whole...)), 0o600))
		l, err := Open(t.Context(), path)
		if err != nil {
			continue
		}
		n, err := l.Verify(t.Context())
		if err == nil {
			t.Errorf("%s: %d entries verify", name, n)
		} else if !strings.Contains(err.Error(), path) {
			t.Errorf("%s: the error does not say where: %v", name, err)
		}
		l.Close()
	}
}

func TestNoSpaceLeft(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, path)
	must(t, l.SetBudget(t.Context(), "clinic", "record", "", budget(100, 0.9)))
	if _, err := l.store.db.Exec(`PRAGMA max_page_count = 12`); err != nil { // the file may not grow beyond
		t.Fatal(err)
	}
	admitted := 0
	var err error
	for ; err == nil && admitted < 500; admitted++ {
		_, err = l.Reserve(t.Context(), reservation("clinic", fmt.Sprint("r", admitted)))
	}
	admitted--
	if err == nil || !strings.Contains(err.Error(), "no space is left; nothing was recorded") {
		t.Fatalf("after %d reservations: %v", admitted, err)
	}
	l.Close()
	l = open(t, path)
	runs, err := l.Runs(t.Context(), "")
	must(t, err)
	if len(runs) != admitted || admitted == 0 {
		t.Errorf("%d runs were admitted, the ledger has %d", admitted, len(runs))
	}
	verify(t, l)
}

// A ledger that this user may only read can be read, and says why nothing can be
// reserved. Root may write everything, so there another user tries.
func TestReadOnly(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "sotto-ledger-") // other users cannot enter t.TempDir
	must(t, err)
	t.Cleanup(func() { os.Chmod(dir, 0o700); os.RemoveAll(dir) })
	path := filepath.Join(dir, "ledger.db")
	l := open(t, path)
	reserve(t, l, reservation("clinic", "r"))
	l.Close()
	must(t, os.Chmod(path, 0o444))
	program := filepath.Join(dir, "ledger.test")
	in, err := os.Open(os.Args[0])
	must(t, err)
	defer in.Close()
	out, err := os.OpenFile(program, os.O_CREATE|os.O_WRONLY, 0o755)
	must(t, err)
	_, err = io.Copy(out, in)
	must(t, err)
	must(t, out.Close())
	must(t, os.Chmod(dir, 0o555))
	cmd := exec.Command(program, path)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "SOTTO_LEDGER_CHILD=read-only")
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	says, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(says), "it cannot be written, the file or its directory is read-only") {
		t.Errorf("found %v: %s", err, says)
	}
}

func TestCanceledContext(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		l := open(t, where)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := l.Reserve(ctx, reservation("clinic", "r"))
		wantError(t, err, context.Canceled)
		if n := verify(t, l); n != 0 {
			t.Errorf("found %d entries; want none", n)
		}
	})
}

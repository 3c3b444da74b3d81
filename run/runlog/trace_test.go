package runlog

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/privacy"
)

var step = privacy.PoissonSampled{Rate: 0.25, Of: privacy.Gaussian{Sigma: 2}}

// noted writes one batch of a pretended run: its charge, two answers, a step.
func noted(t *testing.T, w *Writer, e privacy.Event, batch int) {
	t.Helper()
	if err := w.Charge(e); err != nil {
		t.Fatal(err)
	}
	if err := w.Release(answers(batch)); err != nil {
		t.Fatal(err)
	}
	w.Step(stepOf(batch))
}

func answers(batch int) [][]float64 {
	return [][]float64{{float64(batch), -0.5, math.Inf(1)}, {1 / float64(batch+1)}}
}

func stepOf(batch int) Step {
	return Step{T: batch + 1, Rate: 0.1, GradNorm: float64(batch) / 3, Moved: 0.25}
}

// record makes a run of n equal batches and closes it.
func record(t *testing.T, n int) string {
	t.Helper()
	dir := t.TempDir()
	w, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		noted(t, w, step, i)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func read(t *testing.T, dir string) *Record {
	t.Helper()
	rec, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// contents is the bytes of a file of a run.
func contents(t *testing.T, dir, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func put(t *testing.T, dir, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func checkBatches(t *testing.T, rec *Record, batches ...int) {
	t.Helper()
	if rec.Released != len(batches) {
		t.Fatalf("%d releases, want %d", rec.Released, len(batches))
	}
	in := rec.Open(rec.Oldest())
	defer in.Close()
	if at := rec.Oldest(); at != nil {
		batches = batches[at.Released:]
	}
	for i, batch := range batches {
		got, err := in.Next()
		if want := (Release{batch, answers(batch)}); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("release %d is %v, %v; want %v", i, got, err, want)
		}
	}
	if got, err := in.Next(); err != io.EOF {
		t.Errorf("behind the last: %v, %v", got, err)
	}
}

func TestRoundTrip(t *testing.T) {
	rec := read(t, record(t, 5))
	checkBatches(t, rec, 0, 1, 2, 3, 4)
	if rec.Torn || rec.Charged() != 5 || len(rec.Steps) != 5 {
		t.Errorf("torn %v, charged %d, %d steps", rec.Torn, rec.Charged(), len(rec.Steps))
	}
	for i, s := range rec.Steps {
		if s != stepOf(i) {
			t.Errorf("step %d is %+v", i, s)
		}
	}
}

// A run whose releases exceed the memory can still be finished, reported and replayed.
func TestReadHoldsOneBatch(t *testing.T) {
	dir := t.TempDir()
	w, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	const batches, dim = 50, 20_000
	for range batches {
		if err := w.Charge(privacy.Gaussian{Sigma: 2}); err != nil {
			t.Fatal(err)
		}
		if err := w.Release([][]float64{make([]float64, dim)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	rec, err := Read(dir)
	if err != nil || rec.Released != batches || rec.Charged() != batches {
		t.Fatalf("%+v, %v", rec, err)
	}
	in := rec.Open(nil)
	for err == nil {
		_, err = in.Next()
	}
	runtime.ReadMemStats(&after)
	if err != io.EOF {
		t.Error(err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 8*8*dim+1<<18 {
		t.Errorf("reading took %d bytes of memory; one batch has %d", got, 8*dim)
	}
}

func TestEmptyRun(t *testing.T) {
	rec := read(t, record(t, 0))
	if rec.Torn || rec.Charged() != 0 || rec.Released != 0 || !privacy.Equal(rec.Event(), privacy.Composed(nil)) {
		t.Errorf("an empty run reads as %+v", rec)
	}
}

// A norm that is not a number would break the line it stands in.
func TestStepWithoutNorm(t *testing.T) {
	dir := t.TempDir()
	w, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	w.Step(Step{T: 1, Rate: 0.1, GradNorm: math.NaN(), Moved: math.Inf(1)})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got := read(t, dir).Steps[0]; got != (Step{1, 0.1, -1, -1}) {
		t.Errorf("read %+v", got)
	}
}

// TestMostSteps: the longest lines of a run of MostSteps steps are a file that readers accept.
func TestMostSteps(t *testing.T) {
	long := -math.MaxFloat64 / 3
	line, err := json.Marshal(Step{MostSteps, long, long, long})
	if err != nil {
		t.Fatal(err)
	}
	if size := MostSteps * (len(line) + 1); size > readfile.Lines || MostSteps > readfile.Count {
		t.Errorf("%d lines such as %s have %d bytes", MostSteps, line, size)
	}
}

func TestRunLengthCoding(t *testing.T) {
	dir := t.TempDir()
	w, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	other := privacy.Composed{privacy.Gaussian{Sigma: 3}, privacy.Laplace{Scale: 1}}
	batch := 0
	group := func(events ...privacy.Event) {
		for _, e := range events {
			noted(t, w, e, batch)
			batch++
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	group(step, step, step, other, other)
	group(other, step)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	rec := read(t, dir)
	want := []Charges{{0, 3, step}, {3, 2, other}, {5, 1, other}, {6, 1, step}} // a line never spans groups
	if !reflect.DeepEqual(rec.Events, want) {
		t.Errorf("charges %v, want %v", rec.Events, want)
	}
	whole := privacy.Composed{privacy.Repeated{Count: 3, Of: step}, privacy.Repeated{Count: 3, Of: other}, privacy.Repeated{Count: 1, Of: step}}
	if !privacy.Equal(rec.Event(), whole) {
		t.Errorf("event %v, want %v", rec.Event(), whole)
	}
	if !privacy.Equal(w.Spent(), whole) || rec.Charged() != 7 {
		t.Errorf("spent %v and %d batches, want %v and 7", w.Spent(), rec.Charged(), whole)
	}
}

func TestCreateRefusesARecord(t *testing.T) {
	dir := record(t, 1)
	if _, err := Create(dir); !errors.Is(err, fs.ErrExist) {
		t.Errorf("err = %v, want one that says the file exists", err)
	}
}

// A crash cuts a file at any byte: what stood before is intact, Continue cuts
// the rest away, and the run can go on.
func TestTornTail(t *testing.T) {
	const n = 3
	whole := record(t, n)
	files := map[string][]byte{}
	for _, name := range []string{EventsFile, ReleasesFile, StepsFile} {
		files[name] = contents(t, whole, name)
	}
	recordBytes := len(appendRelease(nil, 0, answers(0)))
	lastLine := bytes.LastIndexByte(bytes.TrimSpace(files[StepsFile]), '\n') + 1
	from := map[string]int{StepsFile: lastLine, ReleasesFile: len(files[ReleasesFile]) - recordBytes}
	for name, start := range from {
		for size := start; size < len(files[name]); size++ {
			dir := t.TempDir()
			for other, b := range files {
				put(t, dir, other, b)
			}
			put(t, dir, name, files[name][:size])
			w, rec, err := Continue(dir, false)
			if err != nil {
				t.Fatalf("%s cut at %d: %v", name, size, err)
			}
			if rec.Torn != (size > start) {
				t.Errorf("%s cut at %d: torn is %v", name, size, rec.Torn)
			}
			if got := contents(t, dir, name); !bytes.Equal(got, files[name][:start]) {
				t.Errorf("%s cut at %d: %d bytes are left, want %d", name, size, len(got), start)
			}
			batches, steps := []int{0, 1, 2}, n
			if name == ReleasesFile {
				batches = batches[:2]
			} else {
				steps--
			}
			checkBatches(t, rec, batches...)
			if rec.Charged() != n || len(rec.Steps) != steps {
				t.Errorf("%s cut at %d: charged %d, %d steps", name, size, rec.Charged(), len(rec.Steps))
			}
			noted(t, w, step, n)
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			checkBatches(t, read(t, dir), append(batches, n)...)
		}
	}
}

// Events come first: a torn one means that nothing after it has been written.
func TestTornEvents(t *testing.T) {
	whole := contents(t, record(t, 3), EventsFile)
	for size := range len(whole) {
		dir := t.TempDir()
		put(t, dir, EventsFile, whole[:size])
		put(t, dir, ReleasesFile, nil)
		put(t, dir, StepsFile, nil)
		w, rec, err := Continue(dir, false)
		if err != nil {
			t.Fatalf("cut at %d: %v", size, err)
		}
		if rec.Torn != (size > 0) || rec.Charged() != 0 {
			t.Errorf("cut at %d: torn %v, charged %d", size, rec.Torn, rec.Charged())
		}
		noted(t, w, step, 0)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		checkBatches(t, read(t, dir), 0) // the magic is back, too
	}
}

func TestTornMagic(t *testing.T) {
	dir := record(t, 2)
	for size := range len(magic) {
		put(t, dir, ReleasesFile, magic[:size])
		rec := read(t, dir)
		if rec.Torn != (size > 0) || rec.Released != 0 || rec.Charged() != 2 {
			t.Errorf("cut at %d: torn %v, %d releases", size, rec.Torn, rec.Released)
		}
	}
}

// Whatever bit of a record in the middle is wrong, the error names the file and
// the byte where the record begins; nothing behind it is silently dropped.
func TestCorruptRelease(t *testing.T) {
	dir := record(t, 4)
	whole := contents(t, dir, ReleasesFile)
	recordBytes := len(appendRelease(nil, 0, answers(0)))
	start := len(magic) + recordBytes
	for bit := range recordBytes * 8 {
		b := bytes.Clone(whole)
		b[start+bit/8] ^= 1 << (bit % 8)
		put(t, dir, ReleasesFile, b)
		_, err := Read(dir)
		if want := fmt.Sprintf("%s: the record at byte %d ", ReleasesFile, start); err == nil || !strings.Contains(err.Error(), want) {
			t.Fatalf("bit %d of the record: err = %v, want one with %q", bit, err, want)
		}
	}
	put(t, dir, ReleasesFile, []byte("some other file\nof a person"))
	if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), "is not a file of releases") {
		t.Errorf("err = %v", err)
	}
}

func TestCorruptLines(t *testing.T) {
	event := `{"event":"gaussian","sigma":1}`
	for _, c := range []struct{ name, text, want string }{
		{EventsFile, `{"first":1,"count":1,"event":` + event + "}\n", EventsFile + ":1: "},
		{EventsFile, `{"first":0,"count":0,"event":` + event + "}\n", EventsFile + ":1: "},
		{EventsFile, `{"first":0,"count":-3,"event":` + event + "}\n", EventsFile + ":1: "},
		{EventsFile, `{"first":0,"count":1,"event":{"event":"gaussian","sigma":-1}}` + "\n", EventsFile + ":1: "},
		{EventsFile, `{"first":0,"count":1}` + "\n", EventsFile + ":1: "},
		{EventsFile, `{"first":0,"count":1,"event":` + event + `,"note":""}` + "\n", EventsFile + ":1: "},
		{EventsFile, fmt.Sprintf("{\"first\":0,\"count\":%d,\"event\":%s}\n{\"first\":%d,\"count\":2,\"event\":%s}\n",
			math.MaxInt, event, math.MaxInt, event), EventsFile + ":2: "},
		{StepsFile, `{"t":1}` + "\n" + `{"t":"1"}` + "\n", StepsFile + ":2: "},
		{StepsFile, `{"t":1,"loss":3}` + "\n", StepsFile + ":1: "},
	} {
		dir := record(t, 0)
		put(t, dir, c.name, []byte(c.text))
		if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: err = %v, want one with %q", c.text, err, c.want)
		}
	}
}

// A crash may leave holes in what was not durable: a file then ends before its first hole. Steps follow from what was
// durable, so what they need has no holes.
func TestHoles(t *testing.T) {
	for _, name := range []string{EventsFile, ReleasesFile, StepsFile} {
		for _, durable := range []bool{false, true} {
			dir := t.TempDir()
			w, err := Create(dir)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 4 {
				noted(t, w, privacy.Gaussian{Sigma: float64(1 + i)}, i) // lines of their own
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			b := contents(t, dir, name)
			hole := len(b) / 2
			clear(b[hole : hole+8])
			put(t, dir, name, b)
			if name == EventsFile {
				put(t, dir, ReleasesFile, nil)
			}
			if name != StepsFile && !durable {
				put(t, dir, StepsFile, nil)
			}
			w, rec, err := Continue(dir, false)
			if durable && name != StepsFile {
				if err == nil || !strings.Contains(err.Error(), name) {
					t.Errorf("%s: err = %v", name, err)
				}
				continue
			}
			if err != nil || !rec.Torn {
				t.Fatalf("%s: %v", name, err)
			}
			n := rec.Charged()
			if charged := name != EventsFile; charged != (n == 4) || rec.Released >= 4 && name == ReleasesFile || len(rec.Steps) >= 4 {
				t.Errorf("%s: %d charged, %d released, %d steps", name, n, rec.Released, len(rec.Steps))
			}
			noted(t, w, step, n)
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if after := read(t, dir); after.Torn || after.Charged() != n+1 || after.Released != rec.Released+1 {
				t.Errorf("%s: afterward %+v", name, after)
			}
		}
	}
	dir := record(t, 2)
	put(t, dir, StepsFile, nil)
	b := contents(t, dir, ReleasesFile)
	clear(b[:len(magic)])
	put(t, dir, ReleasesFile, b)
	if rec := read(t, dir); !rec.Torn || rec.Released != 0 {
		t.Errorf("without a first line: %+v", rec)
	} else if _, err := rec.Open(nil).Next(); err != io.EOF {
		t.Errorf("err = %v", err)
	}
}

// sealed gives a body of a release its length and its checksum.
func sealed(body []byte) []byte {
	b := append([]byte(nil), magic...)
	rec := append(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body...)
	return append(b, binary.LittleEndian.AppendUint32(rec, crc32.Checksum(rec, castagnoli))...)
}

// Records whose checksum holds can still be wrong.
func TestImpossibleRelease(t *testing.T) {
	body := func(batch uint64, answers uint32, rest ...byte) []byte {
		b := binary.LittleEndian.AppendUint64(nil, batch)
		return append(binary.LittleEndian.AppendUint32(b, answers), rest...)
	}
	for name, b := range map[string][]byte{
		"no header":            {1, 2, 3},
		"not charged":          body(2, 0),
		"negative batch":       body(math.MaxUint64, 0),
		"more answers than it": body(0, math.MaxUint32),
		"more values than it":  body(0, 1, 0xff, 0xff, 0xff, 0xff),
		"bytes left over":      body(0, 0, 1),
	} {
		dir := record(t, 2)
		put(t, dir, ReleasesFile, sealed(b))
		if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("byte %d", len(magic))) {
			t.Errorf("%s: err = %v", name, err)
		}
	}
	dir := record(t, 2)
	whole := contents(t, dir, ReleasesFile)
	put(t, dir, ReleasesFile, append(whole, whole[len(magic):]...))
	if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), "stands before") {
		t.Errorf("a batch released twice: err = %v", err)
	}
}

// With secure noise, a batch that was charged and not released is spent; a
// seeded run buys it again without a second charge.
func TestContinue(t *testing.T) {
	for _, redo := range []bool{false, true} {
		dir := record(t, 5)
		b := contents(t, dir, ReleasesFile)
		put(t, dir, ReleasesFile, b[:len(b)-2*len(appendRelease(nil, 0, answers(0)))]) // batches 3 and 4 are lost
		before := contents(t, dir, EventsFile)
		w, rec, err := Continue(dir, redo)
		if err != nil {
			t.Fatal(err)
		}
		checkBatches(t, rec, 0, 1, 2)
		if spent := (privacy.Repeated{Count: 5, Of: step}); !privacy.Equal(w.Spent(), spent) {
			t.Errorf("redo %v: the writer begins with %v spent, want %v", redo, w.Spent(), spent)
		}
		first := 5
		if redo {
			first = 3
		}
		for i := range 2 {
			noted(t, w, step, first+i)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if after := contents(t, dir, EventsFile); bytes.Equal(before, after) != redo {
			t.Errorf("redo %v: events.jsonl is now %s", redo, after)
		}
		noted(t, w, step, first+2)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		rec = read(t, dir)
		want := []int{0, 1, 2, 5, 6, 7}
		if redo {
			want = []int{0, 1, 2, 3, 4, 5}
		}
		checkBatches(t, rec, want...)
		if n := want[len(want)-1] + 1; rec.Charged() != n || !privacy.Equal(w.Spent(), privacy.Repeated{Count: n, Of: step}) {
			t.Errorf("redo %v: charged %d, spent %v, want %d", redo, rec.Charged(), w.Spent(), n)
		}
	}
}

// A run that skipped batches in one resume goes on behind the last release in
// the next, whichever way.
func TestContinueBehindAGap(t *testing.T) {
	dir := record(t, 3)
	b := contents(t, dir, ReleasesFile)
	put(t, dir, ReleasesFile, b[:len(b)-len(appendRelease(nil, 0, answers(0)))])
	w, _, err := Continue(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	noted(t, w, step, 3)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if w, _, err = Continue(dir, true); err != nil {
		t.Fatal(err)
	}
	noted(t, w, step, 4)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	rec := read(t, dir)
	checkBatches(t, rec, 0, 1, 3, 4)
	if rec.Charged() != 5 {
		t.Errorf("charged %d, want 5", rec.Charged())
	}
}

func TestGuard(t *testing.T) {
	dir := t.TempDir()
	w, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	moved := errors.New("the run was taken up elsewhere")
	w.Guard = func(charged int, _ []Charges) error {
		if b := contents(t, dir, EventsFile); charged != 1 || len(b) == 0 {
			t.Errorf("asked with %d batches charged and %d bytes of charges", charged, len(b))
		}
		return moved
	}
	w.Durable = func([]Step) { t.Error("told of a step that is not durable") }
	noted(t, w, step, 0)
	if err := w.Flush(); !errors.Is(err, moved) {
		t.Errorf("flush: %v", err)
	}
	w.Guard = nil // the refusal stays
	for name, err := range map[string]error{"charge": w.Charge(step), "release": w.Release(nil), "flush": w.Flush(), "close": w.Close()} {
		if !errors.Is(err, moved) {
			t.Errorf("%s after the refusal: %v", name, err)
		}
	}
	for _, name := range []string{ReleasesFile, StepsFile} { // the charge is paid, nothing has left
		if b := contents(t, dir, name); len(b) > 0 {
			t.Errorf("%s holds %d bytes", name, len(b))
		}
	}
}

func TestDurableComesAfterTheData(t *testing.T) {
	dir := t.TempDir()
	w, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	w.Durable = func(steps []Step) {
		told += len(steps)
		rec := read(t, dir)
		if rec.Charged() != told || rec.Released != told || len(rec.Steps) != told || rec.Torn {
			t.Errorf("told of %d steps: %d charges, %d releases and %d steps are there", told, rec.Charged(), rec.Released, len(rec.Steps))
		}
		if last := steps[len(steps)-1]; last != stepOf(told-1) {
			t.Errorf("told of %+v, want %+v", last, stepOf(told-1))
		}
	}
	for i := range 6 {
		noted(t, w, step, i)
		if told > i {
			t.Fatalf("told of step %d before it was durable", i)
		}
		if i%2 == 1 {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil || told != 6 {
		t.Errorf("told of %d steps, err = %v", told, err)
	}
}

// A group that cannot be written ends the run, and nobody is told of its steps.
func TestFailedWrite(t *testing.T) {
	w, err := Create(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w.Durable = func([]Step) { t.Error("told of a step that is not durable") }
	noted(t, w, step, 0)
	w.releases.Close()
	if err := w.Flush(); err == nil {
		t.Fatal("a failed write passed")
	}
	if err := w.Charge(step); err == nil {
		t.Error("a charge was taken after a failed write")
	}
}

func TestMissingFiles(t *testing.T) {
	for _, name := range []string{EventsFile, ReleasesFile, StepsFile} {
		dir := record(t, 1)
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(dir); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

func TestInfo(t *testing.T) {
	dir := t.TempDir()
	if _, err := ReadInfo(dir); err == nil || !strings.Contains(err.Error(), "is not a run directory") {
		t.Errorf("err = %v", err)
	}
	plan, err := privacy.MarshalEvent(privacy.Repeated{Count: 10, Of: step})
	if err != nil {
		t.Fatal(err)
	}
	seed := uint64(math.MaxUint64)
	raw := []byte(`{}`)
	want := &Info{Format: InfoFormat, ID: "r1", Status: Finished, Seed: &seed, Plan: plan,
		Schema: raw, Model: raw, Config: raw, Public: raw, Assumptions: []string{"a"},
		Budget: privacy.Budget{Epsilon: 1, Delta: 1e-6, Adjacency: privacy.AddRemove}, Result: &Result{Steps: 3}}
	if err := WriteInfo(dir, want); err != nil {
		t.Fatal(err)
	}
	got, err := ReadInfo(dir)
	if err != nil {
		t.Fatal(err)
	}
	if e, err := got.PlanEvent(); err != nil || !privacy.Equal(e, privacy.Repeated{Count: 10, Of: step}) {
		t.Errorf("plan %v, %v", e, err)
	}
	if got.Budget != want.Budget || *got.Seed != seed || got.Result.Steps != 3 {
		t.Errorf("read %+v", got)
	}
	for text, want := range map[string]string{
		`{"format":"sotto-run/1","colour":1}`: `unknown field "colour"`,
		`{"format":"sotto-run/9"}`:            `found "sotto-run/9"`,
		`{`:                                   "EOF",
	} {
		put(t, dir, InfoFile, []byte(text))
		if _, err := ReadInfo(dir); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), InfoFile) {
			t.Errorf("%s: err = %v", text, err)
		}
	}
	if _, err := (&Info{Plan: []byte(`{"event":"magic"}`)}).PlanEvent(); err == nil {
		t.Error("an unknown plan passed")
	}
}

// FuzzRead: no bytes make Read panic or take memory out of proportion, and what
// it accepts can be gone on from.
func FuzzRead(f *testing.F) {
	dir := f.TempDir()
	w, err := Create(dir)
	if err != nil {
		f.Fatal(err)
	}
	for i := range 3 {
		if err := errors.Join(w.Charge(step), w.Release(answers(i))); err != nil {
			f.Fatal(err)
		}
		w.Step(stepOf(i))
	}
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	var seeds [3][]byte
	for i, name := range []string{EventsFile, ReleasesFile, StepsFile} {
		if seeds[i], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			f.Fatal(err)
		}
	}
	huge := append(bytes.Clone(magic), 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0)
	many := sealed(append(make([]byte, 8), 0xff, 0xff, 0xff, 0xff))
	f.Add(seeds[0], seeds[1], seeds[2])
	f.Add(seeds[0], seeds[1][:len(seeds[1])-3], seeds[2][:5])
	f.Add(seeds[0], huge, []byte{})
	f.Add(seeds[0], many, []byte("{}\n"))
	f.Add([]byte(`{"first":0,"count":9223372036854775807,"event":{"event":"composed"}}`+"\n"), []byte{}, []byte("null\n"))
	f.Fuzz(func(t *testing.T, events, releases, steps []byte) {
		dir := t.TempDir()
		put(t, dir, EventsFile, events)
		put(t, dir, ReleasesFile, releases)
		put(t, dir, StepsFile, steps)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		rec, err := Read(dir)
		runtime.ReadMemStats(&after)
		size := uint64(len(events) + len(releases) + len(steps))
		if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20+1000*size {
			t.Fatalf("%d bytes of input took %d bytes of memory", size, got)
		}
		if err != nil {
			return
		}
		if rec.Charged() < rec.Released {
			t.Errorf("%d releases for %d charges", rec.Released, rec.Charged())
		}
		in, n := rec.Open(nil), 0
		for ; err == nil; n++ {
			_, err = in.Next()
		}
		if err != io.EOF || n != rec.Released+1 {
			t.Errorf("%d of %d releases, then %v", n-1, rec.Released, err)
		}
		w, again, err := Continue(dir, true)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if again.Released != rec.Released || len(again.Steps) != len(rec.Steps) {
			t.Error("two readings differ")
		}
		if last, err := Read(dir); err != nil || last.Torn {
			t.Errorf("after the tail was cut: torn %v, %v", last != nil && last.Torn, err)
		}
	})
}

// At once, a charge is in the file and has passed Guard when Charge returns, after the release before it, and is never withdrawn.
func TestChargesAtOnce(t *testing.T) {
	dir := t.TempDir()
	w, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	var guarded []int
	w.AtOnce = true
	w.Guard = func(charged int, group []Charges) error {
		if len(group) != 1 || group[0].First != charged-1 || group[0].Count != 1 {
			t.Errorf("guarded %d charges with the group %v", charged, group)
		}
		// A crash here loses no release: it would stand by the next charge when the run goes on.
		if rec, err := Read(dir); err != nil || rec.Charged() != charged || rec.Released != charged-1 {
			t.Errorf("before charge %d returns: %+v, %v", charged, rec, err)
		}
		guarded = append(guarded, charged)
		return nil
	}
	e := privacy.Gaussian{Sigma: 1}
	for k := range 3 {
		if err := w.Charge(e); err != nil {
			t.Fatal(err)
		}
		w.Withdraw()
		rec, err := Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		if rec.Charged() != k+1 || rec.Released != k || len(guarded) != k+1 {
			t.Errorf("after charge %d: the log has %d charges and %d releases, Guard %v", k+1, rec.Charged(), rec.Released, guarded)
		}
		if err := w.Release([][]float64{{1}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if rec, err := Read(dir); err != nil || rec.Charged() != 3 || rec.Released != 3 {
		t.Errorf("at the end: %+v, %v", rec, err)
	}
}

package runlog

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/sottodp/sotto/internal/simdisk"
)

const sumsPath = "/sums"

var sumsHead = SumsHead{Run: "run", Config: "0123", Owner: 1}

// A journal of sums that ends anywhere is cut to its last whole record; one that is damaged before its last record is refused.
func TestSumsTails(t *testing.T) {
	disk := simdisk.New(1)
	s, err := Disk{disk}.OpenSums(sumsPath, sumsHead)
	if err != nil {
		t.Fatal(err)
	}
	numbers := bytes.Repeat([]byte{1, 2}, 8)
	ends := []int64{0, s.size}
	for _, err := range []func() error{
		func() error { return s.Part(0, 0, SumsPart{Charged: 1, N: 2}, numbers) },
		func() error { return s.Total(0, 0, numbers) },
		func() error { return s.Part(0, 1, SumsPart{Charged: 1}, nil) },
		func() error { return s.GiveUp(0, 1) },
	} {
		if err := err(); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, s.size)
	}
	want := s.Attempts[0]
	for what, err := range map[string]error{
		"a part after the end of its attempt": s.Part(0, 2, SumsPart{}, nil),
		"a part of a later attempt":           s.Part(2, 0, SumsPart{}, nil),
		"a part without its numbers":          s.Part(1, 0, SumsPart{N: 1}, nil),
	} {
		if err == nil {
			t.Errorf("%s was taken", what)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	all := disk.Peek(sumsPath)
	put := func(b []byte) Disk {
		d := simdisk.New(1)
		f, err := d.OpenFile(sumsPath, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(b); err != nil {
			t.Fatal(err)
		}
		f.Close()
		return Disk{d}
	}
	for n := range len(all) + 1 {
		d := put(all[:n])
		whole := int64(0)
		for _, end := range ends {
			if end <= int64(n) {
				whole = end
			}
		}
		r, err := d.ReadSums(sumsPath)
		if (err == nil) != (whole > 0) || err == nil && (r.size != whole || r.Torn != (whole < int64(n)) || r.Head != sumsHead) {
			t.Errorf("%d bytes, of which %d are whole: read %+v, %v", n, whole, r, err)
		}
		s, err := d.OpenSums(sumsPath, sumsHead)
		if err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if s.size != max(whole, ends[1]) {
			t.Errorf("%d bytes: %d are whole; want %d", n, s.size, whole)
		}
	}
	for at := range int(ends[len(ends)-2]) { // lengths, too
		b := bytes.Clone(all)
		b[at] ^= 1
		for _, open := range []func(d Disk) (*Sums, error){
			func(d Disk) (*Sums, error) { return d.OpenSums(sumsPath, sumsHead) },
			func(d Disk) (*Sums, error) { return d.ReadSums(sumsPath) },
		} {
			if s, err := open(put(b)); err == nil {
				t.Errorf("byte %d is damaged, and %d bytes are read", at, s.size)
			}
		}
	}
	r, err := put(all).ReadSums(sumsPath)
	if err != nil {
		t.Fatal(err)
	}
	got := r.Of(0)
	if !slices.Equal(got.Parts, want.Parts) || !slices.Equal(got.Totals, want.Totals) || !got.GivenUp || r.Start() == got.Totals[0].Transcript {
		t.Errorf("read %+v; wrote %+v", got, want)
	}
	if b, err := r.TotalNumbers(got.Totals[0]); err != nil || !bytes.Equal(b, numbers) {
		t.Errorf("read the total %v, %v", b, err)
	}
	if _, err := put(all).OpenSums(sumsPath, SumsHead{Run: "another", Config: "0123", Owner: 1}); !errors.Is(err, ErrOtherJournal) {
		t.Errorf("the journal of another run: %v", err)
	}
}

// The transcript depends on each total and its place, and not on whose journal it is in.
func TestSumsTranscript(t *testing.T) {
	known := map[[sha256.Size]byte]int{}
	for k, c := range []struct {
		head    SumsHead
		attempt int
		number  byte
	}{{sumsHead, 0, 0}, {sumsHead, 0, 1}, {sumsHead, 1, 0}, {SumsHead{Run: "run", Config: "another", Owner: 1}, 0, 0}, {SumsHead{Run: "mine", Config: "0123"}, 0, 0}} {
		s, err := Disk{simdisk.New(1)}.OpenSums(sumsPath, c.head)
		if err != nil {
			t.Fatal(err)
		}
		for a := range c.attempt {
			if err := s.GiveUp(a, 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(s.Part(c.attempt, 0, SumsPart{N: 1}, make([]byte, 8)), s.Total(c.attempt, 0, []byte{c.number, 0, 0, 0, 0, 0, 0, 0})); err != nil {
			t.Fatal(err)
		}
		transcript := s.Of(c.attempt).Totals[0].Transcript
		if same, ok := known[transcript]; ok != (k == 4) || k == 4 && same != 0 {
			t.Errorf("sum %d has the transcript of sum %d", k, same)
		}
		known[transcript] = k
	}
}

// What a process reads of a journal stays there when the power goes, also if the sync of the process before it failed.
func TestSumsAfterFailedSync(t *testing.T) {
	failed := 0
	for call := 0; ; call++ {
		disk := simdisk.New(uint64(call))
		work := func() error {
			s, err := Disk{disk}.OpenSums(sumsPath, sumsHead)
			if err != nil {
				return err
			}
			return errors.Join(s.Part(0, 0, SumsPart{Charged: 1, N: 500}, make([]byte, 4000)), s.Close())
		}
		disk.Start(map[int]simdisk.Fault{call: simdisk.EIO})
		if err := work(); err != nil {
			failed++
		} else if disk.Calls() <= call {
			break
		}
		var seen [2]int
		for k := range seen {
			disk.Start(nil)
			s, err := Disk{disk}.OpenSums(sumsPath, sumsHead)
			if err != nil {
				t.Fatalf("call %d: %v", call, err)
			}
			seen[k] = len(s.Attempts)
			disk.Cut(true)
		}
		if seen[1] < seen[0] {
			t.Errorf("call %d: a part was read, and is lost with the power", call)
		}
	}
	if failed < 5 {
		t.Errorf("%d calls failed", failed)
	}
}

package frame

import (
	"bytes"
	"errors"
	"testing"
)

// file is frames of these bodies, and where each ends.
func file(bodies ...string) (b []byte, ends []int) {
	for _, body := range bodies {
		b = append(b, Seal(append(Begin(nil), body...))...)
		ends = append(ends, len(b))
	}
	return b, ends
}

// A file that was cut anywhere has the frames before the cut.
func TestCuts(t *testing.T) {
	bodies := []string{"first", "2", "a third frame"}
	all, ends := file(bodies...)
	for size := range len(all) + 1 {
		at := 0
		for k, body := range bodies {
			got, err := Read(bytes.NewReader(all[:size]), int64(at), int64(size), 100)
			if ends[k] > size {
				if !errors.Is(err, ErrTorn) {
					t.Errorf("%d bytes, frame %d: %q, %v", size, k, got, err)
				}
				break
			}
			if err != nil || string(got) != body {
				t.Errorf("%d bytes, frame %d: %q, %v", size, k, got, err)
			}
			at = ends[k]
		}
	}
}

// Any damage to a frame is told: that of the last as a torn end, since a crash can do that, and that of another as damage.
func TestDamage(t *testing.T) {
	all, ends := file("first", "2", "a third frame")
	for at := range all {
		b := bytes.Clone(all)
		b[at] ^= 0x10
		from, want := 0, ErrDamaged
		for _, end := range ends[:2] {
			if at >= end {
				from = end
			}
		}
		if at >= ends[1] {
			want = ErrTorn
		}
		if got, err := Read(bytes.NewReader(b), int64(from), int64(len(b)), 100); !errors.Is(err, want) {
			t.Errorf("byte %d is damaged: %q, %v; want %v", at, got, err, want)
		}
	}
	if _, err := Read(bytes.NewReader(all), int64(ends[1]), int64(len(all)), 12); !errors.Is(err, ErrLong) {
		t.Errorf("13 bytes of 12 allowed: %v", err)
	}
	if _, err := Read(bytes.NewReader(make([]byte, 40)), 0, 40, 100); !errors.Is(err, ErrTorn) {
		t.Errorf("zeros: %v", err)
	}
}

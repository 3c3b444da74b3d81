package kern

import (
	"math"
	"strings"
	"testing"
)

// The examples reach what they name, and a kernel that is off by one bit is found.
func TestCheck(t *testing.T) {
	if err := Check(); err != nil {
		t.Error(err)
	}
	for _, e := range examples() {
		for i, v := range e.out {
			if v == 0 || v != v {
				t.Errorf("%s: value %d is %v", e.kernel, i, v)
			}
		}
	}
	off := examples()
	off[5].out[36] = math.Nextafter(off[5].out[36], 0)
	if err := differ(off, examples()); err == nil || !strings.Contains(err.Error(), "norm2") {
		t.Errorf("one bit of norm2: %v", err)
	}
}

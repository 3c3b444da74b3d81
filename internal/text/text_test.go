package text

import "testing"

func TestWrap(t *testing.T) {
	if got := Wrap("aa bb ccc dddddddd e", 6); got != "aa bb\nccc\ndddddddd\ne" {
		t.Errorf("%q", got)
	}
}

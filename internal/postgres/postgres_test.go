package postgres

import (
	"errors"
	"testing"
)

// A program that registers no driver is told which import is missing.
func TestNoDriver(t *testing.T) {
	if _, err := Open("postgres://u@h/d", nil); !errors.Is(err, ErrNoDriver) {
		t.Errorf("found %v", err)
	}
	if code := Code(errors.New("x")); code != "" {
		t.Errorf("found code %q", code)
	}
}

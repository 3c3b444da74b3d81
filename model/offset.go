package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
)

// An Offset is what is added to a model's margins, a number for each: of one margin, or of each class. None adds
// nothing. JSON has the number of one margin by itself.
type Offset []float64

// MarshalJSON writes one number, or a list of them.
func (o Offset) MarshalJSON() ([]byte, error) {
	if len(o) == 1 {
		return json.Marshal(o[0])
	}
	return json.Marshal([]float64(o))
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (o *Offset) UnmarshalJSON(text []byte) error {
	if bytes.Contains(text, []byte("null")) { // json makes 0 of it
		return errors.New("offset: found null; write a number for each margin")
	}
	if len(text) > 0 && text[0] == '[' {
		return json.Unmarshal(text, (*[]float64)(o))
	}
	*o = make(Offset, 1)
	return json.Unmarshal(text, &(*o)[0])
}

// Times is the offset of margins that are multiplied by a factor.
func (o Offset) Times(factor float64) Offset {
	times := slices.Clone(o)
	for k := range times {
		times[k] *= factor
	}
	return times
}

// WithOffset is the model whose margins are larger by public numbers: that of rows less a center, for rows as they are.
// Only models with Facts.Centered have it.
func WithOffset(m Model, offset ...float64) (Model, error) {
	if !slices.ContainsFunc(offset, func(v float64) bool { return v != 0 }) {
		return m, nil
	}
	finite := !slices.ContainsFunc(offset, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
	switch m := m.(type) {
	case *glm:
		if with := *m; finite && len(offset) == 1 {
			with.offset = offset[0]
			return &with, nil
		}
	case *softmax:
		if with := *m; finite && len(offset) == m.classes {
			with.offset = slices.Clone(offset)
			return &with, nil
		}
	}
	return nil, fmt.Errorf("model: %s: offset %v; choose a finite number for each margin, of models whose rows can be taken less a center", m.Name(), slices.Clone(offset))
}

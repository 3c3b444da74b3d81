package runlog

import (
	"encoding/json"
	"strings"

	"github.com/sottodp/sotto/privacy"
)

// A Holdout says which share of the units was kept out of training, and how the model is scored on
// them. Only HoldoutFile identifies these units.
type Holdout struct {
	Share float64         `json:"share"`
	Rows  int             `json:"rows"`  // nominal
	Score json.RawMessage `json:"score"` // what is asked of them
	Split string          `json:"split"` // identifies the key and all else that decides
}

// The parts of the table of a run with a holdout. Its events name them, each with the split that made it. ADR 51.
const (
	TrainingPart = "training"
	HoldoutPart  = "holdout"
)

// InHoldout says whether what was charged of a batch is of the rows that are held out.
func InHoldout(charged privacy.Event) (held bool) {
	privacy.Walk(charged, func(e privacy.Event) bool {
		p, ok := e.(privacy.Parallel)
		held = held || ok && strings.HasPrefix(p.Part, HoldoutPart)
		return !held
	})
	return held
}

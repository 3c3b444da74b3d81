package method

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A rateSchedule says what part of the step size η each step has, from public numbers alone:
// it costs nothing. It is written in words:
//
//	[warmup N] constant                 1
//	[warmup N] cosine [to F]            F + (1−F)·(1 + cos(πu/n))/2
//	[warmup N] linear [to F]            1 − (1−F)·u/n
//	[warmup N] sqrt [S], inverse [S]    min(1, √(S/(u+1))), min(1, S/(u+1))
//
// u counts the n steps behind the N of the warm-up, in which the part is 1/(N+1), 2/(N+1) and so on. F is
// 0 and S is 1 where they are left out; so cosine and linear would reach F one step after the last.
type rateSchedule struct {
	shape  string
	warm   int     // N
	least  float64 // F
	steady float64 // S
	steps  int
}

const schedules = `constant, cosine, linear (both also as in "cosine to 0.1"), sqrt, inverse (both also as in "inverse 100"), or any of them after, say, "warmup 20"`

// parseRates reads the schedule of a run of so many steps; "" is constant.
func parseRates(text string, steps int) (rateSchedule, error) {
	wrong := fmt.Errorf("schedule: found %q; choose %s", text, schedules)
	s := rateSchedule{shape: "constant", steady: 1, steps: steps}
	words := strings.Fields(text)
	if len(words) > 1 && words[0] == "warmup" {
		n, err := strconv.Atoi(words[1])
		if err != nil || n < 1 {
			return s, wrong
		}
		if n >= steps {
			return s, fmt.Errorf("schedule: found a warm-up of %d steps; choose fewer than the %d of the run", n, steps)
		}
		if s.warm, words = n, words[2:]; len(words) == 0 {
			return s, wrong
		}
	}
	if len(words) == 0 {
		return s, nil
	}
	s.shape = words[0]
	number := func(at int, dst *float64, most float64) bool {
		v, err := strconv.ParseFloat(words[at], 64)
		*dst = v
		return err == nil && v > 0 && v <= most
	}
	ok := len(words) == 1
	switch s.shape {
	case "constant":
	case "cosine", "linear":
		ok = ok || len(words) == 3 && words[1] == "to" && number(2, &s.least, 1)
	case "sqrt", "inverse":
		ok = ok || len(words) == 2 && number(1, &s.steady, 1e9)
	default:
		ok = false
	}
	if !ok {
		return s, wrong
	}
	return s, nil
}

// rateWords is the field schedule of a method with so many steps.
type rateWords struct {
	text  *string
	steps *int
}

func (rateWords) check() error { return nil }

func (f rateWords) fill() error {
	_, err := parseRates(*f.text, *f.steps)
	return err
}

// part is that of step t = 0, 1, ….
func (s rateSchedule) part(t int) float64 {
	if t < s.warm {
		return float64(t+1) / float64(s.warm+1)
	}
	u, n := float64(t-s.warm), float64(s.steps-s.warm)
	switch s.shape {
	case "cosine":
		return s.least + (1-s.least)*(1+math.Cos(math.Pi*u/n))/2
	case "linear":
		return 1 - (1-s.least)*u/n
	case "sqrt":
		return math.Min(1, math.Sqrt(s.steady/(u+1)))
	case "inverse":
		return math.Min(1, s.steady/(u+1))
	}
	return 1
}

package runlog_test

import (
	"fmt"
	"os"

	"github.com/sottodp/sotto/run/runlog"
)

// Hash is what the seal of a run directory holds of each file: it finds every change.
func ExampleHash() {
	dir, err := os.MkdirTemp("", "sotto")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	for _, text := range []string{"a step\n", "another step\n", "a step\n"} {
		if err := os.WriteFile(dir+"/steps.jsonl", []byte(text), 0o600); err != nil {
			fmt.Println(err)
			return
		}
		h, err := runlog.Hash(dir, "steps.jsonl")
		fmt.Println(h[:8], err)
	}
	// Output:
	// 98e91c93 <nil>
	// d3e19d1b <nil>
	// 98e91c93 <nil>
}

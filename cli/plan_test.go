package cli

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/sottodp/sotto/plan"
)

// TestPlanPage: docs/how-to/plan.md speaks of every flag of plan, and of every field that it
// prints as JSON and of no other.
func TestPlanPage(t *testing.T) {
	b, err := os.ReadFile("../docs/how-to/plan.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	spec := map[string]bool{"label": true, "lab": true, "set": true, "help": true, "accept-dropped": true}
	for _, f := range specFlags {
		spec[f.flag] = true
	}
	planCommand().Flags().VisitAll(func(f *pflag.Flag) {
		if !spec[f.Name] && !strings.Contains(page, "`--"+f.Name) {
			t.Errorf("the page does not speak of --%s", f.Name)
		}
	})
	_, table, _ := strings.Cut(page, "## As JSON")
	said := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`.+?`) \\|").FindAllStringSubmatch(table, -1) {
		for _, name := range strings.Split(row[1], ", ") {
			said[strings.Trim(name, "`")] = true
		}
	}
	kind := reflect.TypeFor[plan.Plan]()
	for i := range kind.NumField() {
		name, _, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
		if name != "" && !said[name] {
			t.Errorf("the page does not speak of the field %q", name)
		}
		delete(said, name)
	}
	if len(said) > 0 {
		t.Errorf("the page speaks of fields that are not there: %v", said)
	}
}

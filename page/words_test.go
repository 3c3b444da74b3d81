package page

import (
	"reflect"
	"strings"
	"testing"

	"github.com/sottodp/sotto/oracle"
)

// Every public fact that a report shows has a name in words.
func TestFieldNames(t *testing.T) {
	public := reflect.TypeFor[oracle.Public]()
	for i := range public.NumField() {
		name, _, _ := strings.Cut(public.Field(i).Tag.Get("json"), ",")
		if fieldNames[name] == "" && name != "-" {
			t.Errorf("the field %s of public facts has no name in words", name)
		}
	}
}

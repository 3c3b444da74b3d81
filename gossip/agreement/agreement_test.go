package agreement

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/sottodp/sotto/gossip"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
)

func example() *Agreement {
	delta, seed := 1e-5, uint64(7)
	return &Agreement{
		Schema: json.RawMessage(`{"dataset":"clinic"}`), Model: Model{json.RawMessage(`{"name":"logistic"}`), "died"},
		Privacy: Privacy{Epsilon: 1, Delta: &delta, Adjacency: privacy.ReplaceOne}, Lab: true, Seed: &seed,
		Schedule: Schedule{Schedule: gossip.Schedule{Graph: gossip.Ring(3), Kind: gossip.Matching, Count: 1, Rounds: 9}},
		Method:   Method{Name: "dda"},
		Owners: []Owner{
			{"north", oracle.Public{Dim: 3, Rows: 5, Adjacency: privacy.AddRemove}, json.RawMessage(`{"batch":0}`), json.RawMessage(`{"type":"gaussian"}`)},
			{"south", oracle.Public{Dim: 3, Rows: 6, Adjacency: privacy.AddRemove}, json.RawMessage(`{"batch":1}`), json.RawMessage(`{"type":"gaussian"}`)},
		},
	}
}

// An agreement reads the same from the parts of either version, with and without an open seed.
func TestVersions(t *testing.T) {
	early := map[string]string{labV1: ""}
	for name, change := range map[string]func(*Agreement){
		"fixed": func(*Agreement) {},
		"open": func(a *Agreement) {
			a.Seed, a.Schedule.Open = nil, &Open{"random", 0.5, 1, 9}
			a.Method.Settings = []Setting{{"name", "dda"}, {"batch", "20"}}
		},
	} {
		for _, version := range []map[string]string{nil, early} {
			a := example()
			change(a)
			parts, err := a.Parts(version)
			if err != nil {
				t.Fatal(err)
			}
			network, err := json.Marshal(map[string]any{"id": "n", "agreed": parts.Hashes()})
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			if err := (File{network, parts}).Write(dir); err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(network)
			config := hex.EncodeToString(sum[:])
			again, id, err := Read(dir, config)
			if err != nil || id != "n" || !reflect.DeepEqual(again, a) {
				t.Errorf("%s, %v: found %+v of %q, %v; want %+v", name, version, again, id, err, a)
			}
			a.Lab = false
			other, err := a.Parts(version)
			if err != nil {
				t.Fatal(err)
			}
			if part := other.Differs(parts.Hashes()); !strings.HasSuffix(part, "lab") {
				t.Errorf("%s, %v: another %q, want lab", name, version, part)
			}
			path := filepath.Join(dir, "agreed.json")
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(strings.Replace(string(text), `"clinic"`, `"klinic"`, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, _, err := Read(dir, config); err == nil || !strings.Contains(err.Error(), "its schema is not the network's") {
				t.Errorf("%s, %v: an edited schema: %v", name, version, err)
			}
		}
	}
}

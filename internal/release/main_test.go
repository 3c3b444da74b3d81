package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// The bill of a program, here that of the test, names Go and every module that is linked.
func TestMaterials(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	text, err := materials(b, "sotto-1-linux-amd64", "1")
	if err != nil {
		t.Fatal(err)
	}
	var list bom
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	if list.Format != "CycloneDX" || list.Spec != "1.5" || list.Metadata.Component.Version != "1" || len(list.Metadata.Component.Hashes[0].Content) != 64 {
		t.Errorf("%+v", list)
	}
	if c := list.Components[0]; c.Name != "std" || !strings.HasPrefix(c.PURL, "pkg:golang/std@1.") {
		t.Errorf("%+v", c)
	}
	if _, err := materials([]byte("no program"), "", ""); err == nil {
		t.Error("a text has a bill")
	}
}

// A copy for the second build has the sources, and nothing hidden or built.
func TestSources(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{".git", "dist", "web/dist", "web"} {
		if err := os.MkdirAll(root+"/"+dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(root+"/"+dir+"/f", nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	to := t.TempDir() + "/copy"
	if err := os.CopyFS(to, sources{os.DirFS(root)}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{".git/f": false, "dist/f": false, "web/f": true, "web/dist/f": true} {
		if _, err := os.Stat(to + "/" + name); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The wheel of each platform, around a text in place of its command: pip's name of the platform, the files that
// RECORD lists with their hashes, the program with its mode, and the same bytes twice.
func TestPack(t *testing.T) {
	// PEP 600 and 656 for Linux: a static program needs no newer C library. Programs of Go 1.26 say that they need macOS 12.
	form := regexp.MustCompile(`^(manylinux_2_17_(x86_64|aarch64)\.manylinux2014_(x86_64|aarch64)\.musllinux_1_1_(x86_64|aarch64)|macosx_12_0_(x86_64|arm64)|win_(amd64|arm64))$`)
	machines := map[string]string{"linux/amd64": "x86_64", "linux/arm64": "aarch64", "darwin/amd64": "x86_64", "darwin/arm64": "arm64", "windows/amd64": "amd64", "windows/arm64": "arm64"}
	if len(tags) != len(machines) {
		t.Errorf("there are %d platforms", len(tags))
	}
	for platform, tag := range tags {
		t.Run(platform, func(t *testing.T) {
			goos, _, _ := strings.Cut(platform, "/")
			for one := range strings.SplitSeq(tag, ".") {
				if !strings.HasSuffix(one, "_"+machines[platform]) {
					t.Errorf("the tag %q is not of %s", one, platform)
				}
			}
			if !form.MatchString(tag) {
				t.Errorf("found the tags %q", tag)
			}
			command := []byte("the command of " + platform)
			first, err := pack("../..", goos, tag, "0.1.0", command)
			if err != nil {
				t.Fatal(err)
			}
			again, err := pack("../..", goos, tag, "0.1.0", command)
			if err != nil || !bytes.Equal(first, again) {
				t.Errorf("the second wheel differs: %v", err)
			}
			check(t, first, goos, tag, command)
		})
	}
}

func check(t *testing.T, wheel []byte, goos, tag string, command []byte) {
	t.Helper()
	archive, err := zip.NewReader(bytes.NewReader(wheel), int64(len(wheel)))
	if err != nil {
		t.Fatal(err)
	}
	content := map[string][]byte{}
	var names []string
	for _, f := range archive.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if content[f.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
		names = append(names, f.Name)
		if program := strings.HasPrefix(path.Base(f.Name), "sotto") && !strings.HasSuffix(f.Name, ".py"); program != (f.Mode().Perm() == 0o755) {
			t.Errorf("%s: mode %v", f.Name, f.Mode())
		}
	}
	const info = "sottodp-0.1.0.dist-info/"
	program := "sottodp/sotto"
	if goos == "windows" {
		program += ".exe"
	}
	for _, name := range []string{"sottodp/__init__.py", "sottodp/py.typed", "sottodp/_types.py", program, info + "METADATA", info + "WHEEL", info + "entry_points.txt", info + "RECORD"} {
		if _, ok := content[name]; !ok {
			t.Errorf("there is no %s in %q", name, names)
		}
	}
	if !bytes.Equal(content[program], command) {
		t.Errorf("%s is another command", program)
	}
	lines, err := csv.NewReader(bytes.NewReader(content[info+"RECORD"])).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var recorded []string
	for _, line := range lines {
		recorded = append(recorded, line[0])
		if line[0] == info+"RECORD" {
			continue
		}
		sum := sha256.Sum256(content[line[0]])
		if line[1] != "sha256="+base64.RawURLEncoding.EncodeToString(sum[:]) || line[2] != fmt.Sprint(len(content[line[0]])) {
			t.Errorf("RECORD says %q", line)
		}
	}
	slices.Sort(names)
	slices.Sort(recorded)
	if !slices.Equal(names, recorded) {
		t.Errorf("RECORD lists\n%q\nthe archive\n%q", recorded, names)
	}
	text := string(content[info+"WHEEL"])
	for one := range strings.SplitSeq(tag, ".") {
		if !strings.Contains(text, "\nTag: py3-none-"+one+"\n") {
			t.Errorf("WHEEL has no tag for %s:\n%s", one, text)
		}
	}
	if meta := string(content[info+"METADATA"]); !strings.HasPrefix(meta, "Metadata-Version: 2.1\nName: sottodp\nVersion: 0.1.0\n") || !strings.Contains(meta, "\n\n# Sotto for Python\n") {
		t.Errorf("METADATA is\n%s", meta)
	}
}

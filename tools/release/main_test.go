package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// The bill of a program, here that of the test, names Go and every module that is linked, with its licenses.
func TestMaterials(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.Read(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	info.Deps = slices.DeleteFunc(info.Deps, func(m *debug.Module) bool { return m.Replace != nil }) // Sotto, as this test has it
	text, err := materials(b, info, "sotto-1-linux-amd64", "1", map[string][]string{"github.com/google/licensecheck": {"BSD-3-Clause", "MIT"}})
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
	i := slices.IndexFunc(list.Components, func(c component) bool { return c.Name == "github.com/google/licensecheck" })
	if i < 0 || list.Components[i].Licenses[0].Expression != "BSD-3-Clause AND MIT" {
		t.Errorf("component %d of %+v", i, list.Components)
	}
}

// Every module in the program has a license that is allowed.
func TestLicenses(t *testing.T) {
	for _, goos := range []string{"linux", "windows"} {
		found, err := licensed("../..", goos, "amd64")
		if err != nil {
			t.Fatal(err)
		}
		if len(found) < 20 || !slices.Equal(found["github.com/spf13/cobra"], []string{"Apache-2.0"}) {
			t.Errorf("%s: %v", goos, found)
		}
	}
}

const gpl = `This program is free software; you can redistribute it and/or modify it under the terms of the GNU General Public
License as published by the Free Software Foundation; version 2 of the License. This program is distributed in the hope that
it will be useful, but WITHOUT ANY WARRANTY; without even the implied warranty of MERCHANTABILITY or FITNESS FOR A
PARTICULAR PURPOSE. See the GNU General Public License for more details.`

func TestOtherLicensesAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"none":    {"README", "free for all", "has no license"},
		"unknown": {"LICENSE", "You may look at it on Mondays.", "names no known license"},
		"other":   {"COPYING", gpl, "found the license GPL-2.0"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(dir+"/"+c.file, []byte(c.text), 0o644); err != nil {
				t.Fatal(err)
			}
			if found, err := licenses("example.org/m", []string{dir}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("found %v and the error %v", found, err)
			}
		})
	}
}

// The provenance names the files, the commit and the modules; with changes that are not committed it names no commit.
func TestProvenance(t *testing.T) {
	info := &buildinfo.BuildInfo{GoVersion: "go1.26.1", Deps: []*debug.Module{{Path: "example.org/m", Version: "v1.0.0", Sum: "h1:AAAA"}},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "false"}}}
	files := []subject{{Name: "sotto", Digest: map[string]string{"sha256": "00"}}}
	read := func() (s statement) {
		text, err := provenance("1", files, []*buildinfo.BuildInfo{info, info})
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	var uris []string
	for _, r := range read().Predicate.Build.Resolved {
		uris = append(uris, r.URI)
	}
	if want := []string{"git+" + source + "@abc", "pkg:golang/std@1.26.1", "pkg:golang/example.org/m@v1.0.0"}; !slices.Equal(uris, want) {
		t.Errorf("found %q; want %q", uris, want)
	}
	info.Settings[1].Value = "true"
	s := read()
	if r := s.Predicate.Build.Resolved[0]; r.Digest["gitCommit"] != "" || !strings.Contains(s.Predicate.Build.External["source"].(string), "not committed") {
		t.Errorf("%+v", s.Predicate.Build)
	}
}

// The images are the same bytes each time, and hold the command, certificates, the bill and a folder to work in.
func TestImages(t *testing.T) {
	make := func() []byte {
		all := map[string]v1.Image{}
		for _, arch := range []string{"amd64", "arm64"} {
			i, err := image(arch, []byte("program for "+arch), []byte("{}"))
			if err != nil {
				t.Fatal(err)
			}
			all[arch] = i
		}
		b, err := images(all)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	b := make()
	if !bytes.Equal(b, make()) {
		t.Error("two images of the same files differ")
	}
	dir := t.TempDir()
	for r := tar.NewReader(bytes.NewReader(b)); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, h.Name)), 0o755), os.WriteFile(filepath.Join(dir, h.Name), content, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 2 {
		t.Fatalf("%+v, %v", manifest, err)
	}
	i, err := index.Image(manifest.Manifests[1].Digest)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for r := tar.NewReader(mutate.Extract(i)); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		if content, err := io.ReadAll(r); err != nil || h.Name == "sotto" && string(content) != "program for arm64" {
			t.Errorf("%s: %q, %v", h.Name, content, err)
		}
	}
	slices.Sort(names)
	if want := []string{"etc/ssl/certs/ca-certificates.crt", "sotto", "usr/share/sbom/sotto.cdx.json", "work"}; !slices.Equal(names, want) && !slices.Equal(names, append(want[:3:3], "work/")) {
		t.Errorf("found %q; want %q", names, want)
	}
	if pool := x509.NewCertPool(); !pool.AppendCertsFromPEM(certificates()) || len(certificates()) < 100_000 {
		t.Errorf("%d bytes of certificates", len(certificates()))
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

// The Dockerfile makes the image that a release has: how it is configured stands in both.
func TestDockerfile(t *testing.T) {
	b, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, last, ok := strings.Cut(string(b), "\nFROM scratch\n")
	if !ok {
		t.Fatal("the last stage does not begin with FROM scratch")
	}
	got := v1.Config{Labels: map[string]string{}}
	for line := range strings.Lines(last) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "", "#", "COPY":
		case "ENV":
			got.Env = append(got.Env, rest)
		case "USER":
			got.User = rest
		case "WORKDIR":
			got.WorkingDir = rest
		case "ENTRYPOINT":
			err = json.Unmarshal([]byte(rest), &got.Entrypoint)
		case "LABEL":
			name, value, _ := strings.Cut(rest, "=")
			got.Labels[name] = value
		default:
			t.Errorf("%s: found an instruction that is not compared", word)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	i, err := image("amd64", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := i.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(c.Config, got); d != "" {
		t.Errorf("image, Dockerfile: %s", d)
	}
}

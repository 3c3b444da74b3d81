// Release builds a release: the command for six platforms, for each a bill of
// materials (CycloneDX 1.5), and SHA256SUMS over all files.
//
//	go run ./internal/release [-version 0.1.0] [-out dist/release]
//	go run ./internal/release -check    builds twice for this machine, compares, and checks the size
//
// The same commit and the same Go give the same bytes in any directory.
package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/sottodp/sotto/internal/program"
)

// most bytes of a program, on any platform.
const most = 50e6

var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

func main() {
	version := flag.String("version", "0.1.0", "version in the names of the files")
	out := flag.String("out", "dist/release", "directory to write to")
	check := flag.Bool("check", false, "build twice for this machine, the second time elsewhere and from nothing, and compare")
	flag.Parse()
	err := func() error {
		if *check {
			return reproducible(runtime.GOOS, runtime.GOARCH)
		}
		return release(*version, *out)
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func release(version, out string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	var sums strings.Builder
	write := func(name string, b []byte, mode fs.FileMode) error {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(b), name)
		fmt.Printf("%9.2f MB  %s\n", float64(len(b))/1e6, name)
		return os.WriteFile(filepath.Join(out, name), b, mode)
	}
	for _, p := range platforms {
		goos, arch, _ := strings.Cut(p, "/")
		b, err := program.Build(".", goos, arch)
		if err != nil {
			return err
		}
		if err := fits(p, len(b)); err != nil {
			return err
		}
		name := fmt.Sprintf("sotto-%s-%s-%s", version, goos, arch)
		bill, err := materials(b, name, version)
		if err != nil {
			return err
		}
		file := name
		if goos == "windows" {
			file += ".exe"
		}
		if err := write(file, b, 0o755); err != nil {
			return err
		}
		if err := write(name+".cdx.json", bill, 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(out, "SHA256SUMS"), []byte(sums.String()), 0o644)
}

// fits says whether a program is small enough.
func fits(platform string, size int) error {
	if size > most {
		return fmt.Errorf("the program for %s has %d bytes; allowed are %.0f (docs/how-to/install.md says what they are)", platform, size, most)
	}
	return nil
}

// reproducible builds here, and in a copy of the module in another directory with an empty
// build cache.
func reproducible(goos, arch string) error {
	here, err := program.Build(".", goos, arch, "GOFLAGS=-buildvcs=false")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "sotto-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	module := filepath.Join(dir, "elsewhere", "sotto")
	if err := os.CopyFS(module, sources{os.DirFS(".")}); err != nil {
		return err
	}
	there, err := program.Build(module, goos, arch, "GOFLAGS=-buildvcs=false", "GOCACHE="+filepath.Join(dir, "cache"))
	if err != nil {
		return err
	}
	if !bytes.Equal(here, there) {
		return fmt.Errorf("two builds for %s/%s differ: %x and %x", goos, arch, sha256.Sum256(here), sha256.Sum256(there))
	}
	fmt.Printf("%s/%s: two builds, %d bytes each, SHA-256 %x\n", goos, arch, len(here), sha256.Sum256(here))
	return fits(goos+"/"+arch, len(here))
}

// sources leaves out what is hidden, and what was built.
type sources struct{ fs.FS }

func (s sources) ReadDir(name string) ([]fs.DirEntry, error) {
	all, err := fs.ReadDir(s.FS, name)
	var kept []fs.DirEntry
	for _, e := range all {
		if !strings.HasPrefix(e.Name(), ".") && !(name == "." && e.Name() == "dist") {
			kept = append(kept, e)
		}
	}
	return kept, err
}

// The parts of CycloneDX that are used.
type (
	bom struct {
		Format     string      `json:"bomFormat"`
		Spec       string      `json:"specVersion"`
		Version    int         `json:"version"`
		Metadata   metadata    `json:"metadata"`
		Components []component `json:"components"`
	}
	metadata struct {
		Component component `json:"component"`
	}
	component struct {
		Type    string `json:"type"`
		Ref     string `json:"bom-ref,omitempty"`
		Name    string `json:"name"`
		Version string `json:"version"`
		PURL    string `json:"purl,omitempty"`
		Hashes  []hash `json:"hashes,omitempty"`
	}
	hash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
)

// materials lists what a program was built from, as the program itself says.
func materials(b []byte, name, version string) ([]byte, error) {
	info, err := buildinfo.Read(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(b)
	list := bom{Format: "CycloneDX", Spec: "1.5", Version: 1, Metadata: metadata{component{Type: "application", Ref: name, Name: "sotto", Version: version,
		Hashes: []hash{{"SHA-256", hex.EncodeToString(sum[:])}}}}}
	list.Components = append(list.Components, component{Type: "library", Ref: "go", Name: "std", Version: info.GoVersion, PURL: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go")})
	for _, m := range info.Deps {
		c, err := module(m)
		if err != nil {
			return nil, err
		}
		list.Components = append(list.Components, c)
	}
	text, err := json.MarshalIndent(list, "", "  ")
	return append(text, '\n'), err
}

// module is one of them. Its hash is that of go.sum, of the files in it.
func module(m *debug.Module) (component, error) {
	if m.Replace != nil {
		m = m.Replace
	}
	c := component{Type: "library", Name: m.Path, Version: m.Version, PURL: "pkg:golang/" + m.Path + "@" + m.Version}
	c.Ref = c.PURL
	text, ok := strings.CutPrefix(m.Sum, "h1:")
	if !ok {
		return c, fmt.Errorf("module %s has no sum", m.Path)
	}
	sum, err := base64.StdEncoding.DecodeString(text)
	c.Hashes = []hash{{"SHA-256", hex.EncodeToString(sum)}}
	return c, err
}

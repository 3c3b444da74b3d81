// Release builds a release: the command for six platforms, for each a bill of
// materials (CycloneDX 1.5) with licenses, an OCI image for Linux, SHA256SUMS over
// all files, and their provenance (SLSA 1, unsigned).
//
//	cd tools/release
//	go run . [-version 0.1.0] [-out ../../dist/release]
//	go run . -try ../../examples/clinic   runs the image's command on an example in a chroot, as root
//	go run . -check    builds twice for this machine, compares, and checks the size
//
// The same commit and the same Go give the same bytes in any directory.
package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/sottodp/sotto/internal/program"
)

// root is the module of the command.
const root = "../.."

// most bytes of a program, on any platform.
const most = 55e6

var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

func main() {
	version := flag.String("version", "0.1.0", "version in the names of the files")
	out := flag.String("out", root+"/dist/release", "directory to write to")
	check := flag.Bool("check", false,
		"build twice for this machine, the second time elsewhere and from nothing, and compare")
	example := flag.String("try", "",
		"build the image and run its command on this example in a chroot, as the image's user")
	flag.Parse()
	err := func() error {
		if *example != "" {
			return try(*example)
		}
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
	var made []subject
	write := func(name string, b []byte, mode fs.FileMode) error {
		sum := fmt.Sprintf("%x", sha256.Sum256(b))
		fmt.Fprintf(&sums, "%s  %s\n", sum, name)
		fmt.Printf("%9.2f MB  %s\n", float64(len(b))/1e6, name)
		made = append(made, subject{Name: name, Digest: map[string]string{"sha256": sum}})
		return os.WriteFile(filepath.Join(out, name), b, mode)
	}
	var programs []*buildinfo.BuildInfo
	linux := map[string]v1.Image{}
	for _, p := range platforms {
		goos, arch, _ := strings.Cut(p, "/")
		b, err := program.Build(root, goos, arch)
		if err != nil {
			return err
		}
		if err := fits(p, len(b)); err != nil {
			return err
		}
		info, err := buildinfo.Read(bytes.NewReader(b))
		if err != nil {
			return err
		}
		programs = append(programs, info)
		found, err := licensed(root, goos, arch)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("sotto-%s-%s-%s", version, goos, arch)
		bill, err := materials(b, info, name, version, found)
		if err != nil {
			return err
		}
		if goos == "linux" {
			if linux[arch], err = image(arch, b, bill); err != nil {
				return err
			}
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
	oci, err := images(linux)
	if err != nil {
		return err
	}
	if err := write(fmt.Sprintf("sotto-%s-oci.tar", version), oci, 0o644); err != nil {
		return err
	}
	text, err := provenance(version, made, programs)
	if err != nil {
		return err
	}
	if err := write(fmt.Sprintf("sotto-%s.provenance.json", version), text, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "SHA256SUMS"), []byte(sums.String()), 0o644)
}

// fits says whether a program is small enough.
func fits(platform string, size int) error {
	if size > most {
		return fmt.Errorf("the program for %s has %d bytes, more than %.0f (docs/how-to/install.md says what they are)",
			platform, size, most)
	}
	return nil
}

// reproducible builds here, and in a copy of the module in another directory with an empty
// build cache.
func reproducible(goos, arch string) error {
	here, err := program.Build(root, goos, arch, "GOFLAGS=-buildvcs=false")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "sotto-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	module := filepath.Join(dir, "elsewhere", "sotto")
	if err := os.CopyFS(module, sources{os.DirFS(root)}); err != nil {
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

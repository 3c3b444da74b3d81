// Wheel builds the Python package: the files of python/sottodp and a static sotto command for one platform, in a
// wheel (a zip archive, PEP 427) with the same bytes for the same source.
//
//	go run ./internal/wheel [-os linux] [-arch amd64 | -all] [-version 0.1.0] [-out dist]
//
// With -all it builds one for each platform.
package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/base64"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/sottodp/sotto/internal/program"
)

// tags are pip's names of the platforms. A static program runs under any C library; Go 1.26 needs macOS 12.
var tags = map[string]string{
	"linux/amd64":   "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
	"linux/arm64":   "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
	"darwin/amd64":  "macosx_12_0_x86_64",
	"darwin/arm64":  "macosx_12_0_arm64",
	"windows/amd64": "win_amd64",
	"windows/arm64": "win_arm64",
}

const metadata = `Metadata-Version: 2.1
Name: sottodp
Version: %s
Summary: Differentially private learning for scikit-learn users
Requires-Python: >=3.10
Requires-Dist: numpy
Requires-Dist: pyarrow
Requires-Dist: scikit-learn>=1.6
Provides-Extra: spark
Requires-Dist: pyspark>=3.5; extra == 'spark'
Requires-Dist: pandas; extra == 'spark'
Provides-Extra: dask
Requires-Dist: dask[dataframe,distributed]>=2026.8; extra == 'dask'
Description-Content-Type: text/markdown

`

func main() {
	goos := flag.String("os", runtime.GOOS, "operating system of the wheel")
	arch := flag.String("arch", runtime.GOARCH, "architecture of the wheel")
	all := flag.Bool("all", false, "build a wheel for each platform")
	version := flag.String("version", "0.1.0", "version, as PEP 440 writes it")
	out := flag.String("out", "dist", "directory to write to")
	flag.Parse()
	platforms := []string{*goos + "/" + *arch}
	if *all {
		platforms = slices.Sorted(maps.Keys(tags))
	}
	for _, p := range platforms {
		path, err := build(p, *version, *out)
		if err != nil {
			fmt.Fprintln(os.Stderr, "wheel:", err)
			os.Exit(1)
		}
		fmt.Println(path)
	}
}

// most bytes of a wheel.
const most = 20e6

func build(platform, version, out string) (string, error) {
	tag, ok := tags[platform]
	if !ok {
		return "", fmt.Errorf("no wheel for %s", platform)
	}
	goos, arch, _ := strings.Cut(platform, "/")
	command, err := program.Build(".", goos, arch)
	if err != nil {
		return "", err
	}
	content, err := pack(".", goos, tag, version, command)
	if err != nil {
		return "", err
	}
	if len(content) > most {
		return "", fmt.Errorf("the wheel for %s has %d bytes, more than %.0f", platform, len(content), float64(most))
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(out, "sottodp-"+version+"-py3-none-"+tag+".whl")
	return path, os.WriteFile(path, content, 0o644)
}

// pack is the wheel of a command and of the files of python in the module's directory.
func pack(module, goos, tag, version string, command []byte) ([]byte, error) {
	readme, err := os.ReadFile(filepath.Join(module, "python/README.md"))
	if err != nil {
		return nil, err
	}
	sources, err := filepath.Glob(filepath.Join(module, "python/sottodp/*.py"))
	if err != nil {
		return nil, err
	}
	var w wheel
	w.zip = zip.NewWriter(&w.bytes)
	w.zip.RegisterCompressor(zip.Deflate, func(to io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(to, flate.BestCompression)
	})
	for _, source := range sources { // in order of their names
		text, err := os.ReadFile(source)
		if err != nil {
			return nil, err
		}
		w.add("sottodp/"+filepath.Base(source), text, 0o644)
	}
	w.add("sottodp/py.typed", nil, 0o644)
	name := "sottodp/sotto"
	if goos == "windows" {
		name += ".exe"
	}
	w.add(name, command, 0o755)
	info := "sottodp-" + version + ".dist-info/"
	w.add(info+"METADATA", append(fmt.Appendf(nil, metadata, version), readme...), 0o644)
	lines := "Wheel-Version: 1.0\nGenerator: sotto\nRoot-Is-Purelib: false\n"
	for platform := range strings.SplitSeq(tag, ".") {
		lines += "Tag: py3-none-" + platform + "\n"
	}
	w.add(info+"WHEEL", []byte(lines), 0o644)
	w.add(info+"entry_points.txt", []byte("[console_scripts]\nsotto = sottodp._command:main\n"), 0o644)
	w.record.WriteString(info + "RECORD,,\n")
	w.add(info+"RECORD", bytes.Clone(w.record.Bytes()), 0o644)
	if w.err == nil {
		w.err = w.zip.Close()
	}
	return w.bytes.Bytes(), w.err
}

// A wheel is an archive under construction. It keeps the first error.
type wheel struct {
	bytes, record bytes.Buffer
	zip           *zip.Writer
	err           error
}

func (w *wheel) add(name string, content []byte, mode os.FileMode) {
	if w.err != nil {
		return
	}
	h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
	h.SetMode(mode)
	f, err := w.zip.CreateHeader(h)
	if err == nil {
		_, err = f.Write(content)
	}
	w.err = err
	sum := sha256.Sum256(content)
	fmt.Fprintf(&w.record, "%s,sha256=%s,%d\n", name, base64.RawURLEncoding.EncodeToString(sum[:]), len(content))
}

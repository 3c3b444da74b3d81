//go:build linux

package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/sottodp/sotto/internal/program"
)

// try builds the image of this machine's architecture, unpacks its archive and layers, and runs its command on an
// example in a chroot, as the image's user. It also compares the bill of materials in the image with the program in it.
// It must be root.
func try(example string) error {
	b, err := program.Build(root, "linux", runtime.GOARCH)
	if err != nil {
		return err
	}
	info, err := buildinfo.Read(bytes.NewReader(b))
	if err != nil {
		return err
	}
	found, err := licensed(root, "linux", runtime.GOARCH)
	if err != nil {
		return err
	}
	bill, err := materials(b, info, "sotto-linux-"+runtime.GOARCH, "try", found)
	if err != nil {
		return err
	}
	made, err := image(runtime.GOARCH, b, bill)
	if err != nil {
		return err
	}
	archive, err := images(map[string]v1.Image{runtime.GOARCH: made})
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "sotto-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o711); err != nil { // the image's user goes through it
		return err
	}
	root, oci := filepath.Join(dir, "root"), filepath.Join(dir, "oci")
	if err := unpack(bytes.NewReader(archive), oci, false); err != nil {
		return err
	}
	index, err := layout.ImageIndexFromPath(oci)
	if err != nil {
		return err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	i, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		return err
	}
	if err := unpack(mutate.Extract(i), root, true); err != nil {
		return err
	}
	if err := covered(root); err != nil {
		return err
	}
	return start(i, root, example)
}

// unpack writes the files of a tar archive below dir, with their owners where owned.
func unpack(from io.Reader, dir string, owned bool) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for r := tar.NewReader(from); ; {
		h, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		name := filepath.Join(dir, filepath.Clean("/"+h.Name))
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(name, 0o755)
		} else {
			var b []byte
			if b, err = io.ReadAll(r); err == nil {
				err = errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, b, 0o644),
					os.Chmod(name, h.FileInfo().Mode()))
			}
		}
		if err == nil && owned {
			err = os.Chown(name, h.Uid, h.Gid)
		}
		if err != nil {
			return err
		}
	}
}

// covered checks that the bill in an image is of the program in it: its hash, and each module that is linked.
func covered(root string) error {
	b, err := os.ReadFile(filepath.Join(root, "sotto"))
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(root, "usr/share/sbom/sotto.cdx.json"))
	if err != nil {
		return err
	}
	var list bom
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	if h := list.Metadata.Component.Hashes; len(h) != 1 || h[0].Content != fmt.Sprintf("%x", sha256.Sum256(b)) {
		return errors.New("the bill of materials is of another program than the image's")
	}
	known := map[string]bool{}
	for _, c := range list.Components {
		known[c.Name] = len(c.Licenses) > 0
	}
	info, err := buildinfo.Read(bytes.NewReader(b))
	if err != nil {
		return err
	}
	for _, m := range info.Deps {
		if !known[m.Path] {
			return fmt.Errorf("the bill of materials in the image lacks %s, or its license", m.Path)
		}
	}
	fmt.Printf("the bill of materials in the image names its program and %d modules, each with a license\n",
		len(info.Deps))
	return nil
}

// start runs the image's command on a copy of an example, as a container without a network would.
func start(i v1.Image, root, example string) error {
	c, err := i.ConfigFile()
	if err != nil {
		return err
	}
	uid, gid, _ := strings.Cut(c.Config.User, ":")
	u, err := strconv.ParseUint(uid, 10, 32)
	if err != nil || u == 0 {
		return fmt.Errorf("the image's user is %q; use a number, and not root's", c.Config.User)
	}
	g, err := strconv.ParseUint(gid, 10, 32)
	if err != nil {
		return err
	}
	work := filepath.Join(root, c.Config.WorkingDir)
	if err := os.CopyFS(filepath.Join(work, "example"), os.DirFS(example)); err != nil {
		return err
	}
	if err := os.Chmod(filepath.Join(work, "example"), 0o755); err != nil {
		return err
	}
	begin := time.Now()
	run := exec.Command(c.Config.Entrypoint[0], "fit", "example/sotto.yaml", "--quiet", "--out", "run")
	run.Env, run.Dir, run.Stdout, run.Stderr = c.Config.Env, c.Config.WorkingDir, os.Stdout, os.Stderr
	run.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: uint32(u), Gid: uint32(g)}}
	if err := run.Run(); err != nil {
		return fmt.Errorf("the image's command in a chroot as user %d: %w", u, err)
	}
	for _, name := range []string{"model.json", "report.html"} {
		if s, err := os.Stat(filepath.Join(work, "run", name)); err != nil || s.Size() == 0 {
			return fmt.Errorf("the image's command wrote no %s: %v", name, err)
		}
	}
	fmt.Printf("the image's command fits %s in a chroot as user %d: exit code 0 after %v\n", example, u,
		time.Since(begin).Round(10*time.Millisecond))
	return nil
}

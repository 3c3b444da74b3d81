package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// A file in a layer or an archive; a folder has no content and a name that ends with a slash.
type file struct {
	name    string
	content []byte
	mode    int64
}

// user is one without rights: `docker run --user` names the owner of the data.
const user = 65532

// archive is a tar archive without times and names of people.
func archive(files []file) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: time.Unix(0, 0),
			Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if strings.HasSuffix(f.name, "/") {
			h.Typeflag, h.Uid, h.Gid = tar.TypeDir, user, user
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), w.Close()
}

// certificates are the roots that TLS to a database trusts: Mozilla's, as golang.org/x/crypto has them, without those
// that it restricts, which a file cannot say.
func certificates() []byte {
	var all bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			pem.Encode(&all, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return all.Bytes()
}

// image is the command as the Dockerfile has it, with its bill of materials.
func image(arch string, program, bill []byte) (v1.Image, error) {
	layer, err := archive([]file{
		{"sotto", program, 0o755},
		{"etc/ssl/certs/ca-certificates.crt", certificates(), 0o644},
		{"usr/share/sbom/sotto.cdx.json", bill, 0o644},
		{"work/", nil, 0o755},
	})
	if err != nil {
		return nil, err
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(layer)), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	i := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if i, err = mutate.AppendLayers(i, l); err != nil {
		return nil, err
	}
	c, err := i.ConfigFile()
	if err != nil {
		return nil, err
	}
	c = c.DeepCopy()
	c.OS, c.Architecture, c.Created = "linux", arch, v1.Time{Time: time.Unix(0, 0).UTC()}
	c.Config = v1.Config{
		Entrypoint: []string{"/sotto"},
		Env:        []string{"XDG_DATA_HOME=/work/.local/share"},
		User:       "65532:65532",
		WorkingDir: "/work",
		Labels:     map[string]string{"org.opencontainers.image.source": source},
	}
	return mutate.ConfigFile(i, c)
}

// images is an OCI archive with an image for each architecture, which `docker load`, podman and skopeo read.
func images(all map[string]v1.Image) ([]byte, error) {
	dir, err := os.MkdirTemp("", "sotto-image-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range []string{"amd64", "arm64"} {
		if all[arch] != nil {
			index = mutate.AppendManifests(index,
				mutate.IndexAddendum{Add: all[arch],
					Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
		}
	}
	if _, err := layout.Write(dir, index); err != nil {
		return nil, err
	}
	var files []file
	err = filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(dir, name)
		files = append(files, file{path.Clean(filepath.ToSlash(inside)), content, 0o644})
		return err
	})
	if err != nil {
		return nil, err
	}
	return archive(files)
}

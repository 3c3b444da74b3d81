package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"
)

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
		// Licenses holds one SPDX expression.
		Licenses []license `json:"licenses,omitempty"`
	}
	license struct {
		Expression string `json:"expression"`
	}
	hash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
)

// expression is the license of what has parts under each of these.
func expression(licenses []string) []license {
	return []license{{strings.Join(licenses, " AND ")}}
}

// materials lists what a program was built from, as the program itself says, with the licenses of each module.
func materials(b []byte, info *buildinfo.BuildInfo, name, version string,
	licenses map[string][]string) ([]byte, error) {
	sum := sha256.Sum256(b)
	list := bom{Format: "CycloneDX", Spec: "1.5", Version: 1,
		Metadata: metadata{component{Type: "application", Ref: name, Name: "sotto", Version: version,
			Hashes: []hash{{"SHA-256", hex.EncodeToString(sum[:])}}, Licenses: expression([]string{"Apache-2.0"})}}}
	list.Components = append(list.Components,
		component{Type: "library", Ref: "go", Name: "std", Version: info.GoVersion,
			PURL: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go"), Licenses: expression([]string{"BSD-3-Clause"})})
	for _, m := range info.Deps {
		c, err := module(m, licenses[m.Path])
		if err != nil {
			return nil, err
		}
		list.Components = append(list.Components, c)
	}
	text, err := json.MarshalIndent(list, "", "  ")
	return append(text, '\n'), err
}

// module is one of them. Its hash is that of go.sum, of the files in it.
func module(m *debug.Module, licenses []string) (component, error) {
	if m.Replace != nil {
		m = m.Replace
	}
	c := component{Type: "library", Name: m.Path, Version: m.Version, PURL: "pkg:golang/" + m.Path + "@" + m.Version}
	c.Ref = c.PURL
	if len(licenses) > 0 {
		c.Licenses = expression(licenses)
	}
	text, ok := strings.CutPrefix(m.Sum, "h1:")
	if !ok {
		return c, fmt.Errorf("module %s has no sum", m.Path)
	}
	sum, err := base64.StdEncoding.DecodeString(text)
	c.Hashes = []hash{{"SHA-256", hex.EncodeToString(sum)}}
	return c, err
}

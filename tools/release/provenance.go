package main

import (
	"debug/buildinfo"
	"encoding/json"
	"strings"
)

// The parts of an in-toto statement with SLSA provenance, version 1, that are used. It holds no time and no name of a
// machine: the same commit gives the same bytes.
type (
	statement struct {
		Type          string    `json:"_type"`
		Subject       []subject `json:"subject"`
		PredicateType string    `json:"predicateType"`
		Predicate     predicate `json:"predicate"`
	}
	subject struct {
		Name   string            `json:"name,omitempty"`
		URI    string            `json:"uri,omitempty"`
		Digest map[string]string `json:"digest"`
	}
	predicate struct {
		Build definition `json:"buildDefinition"`
		Run   details    `json:"runDetails"`
	}
	definition struct {
		Type     string         `json:"buildType"`
		External map[string]any `json:"externalParameters"`
		Resolved []subject      `json:"resolvedDependencies"`
	}
	details struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	}
)

const source = "https://github.com/sottodp/sotto"

// provenance says from which sources, by which command the files were made. programs are what buildinfo says of the
// programs among them.
func provenance(version string, files []subject, programs []*buildinfo.BuildInfo) ([]byte, error) {
	s := statement{Type: "https://in-toto.io/Statement/v1", Subject: files,
		PredicateType: "https://slsa.dev/provenance/v1"}
	d := &s.Predicate.Build
	d.Type = source + "/tree/main/internal/release"
	d.External = map[string]any{"command": "go run ./internal/release -version " + version, "platforms": platforms}
	s.Predicate.Run.Builder.ID = source + "/tree/main/internal/release"

	commit, changed := "", false
	seen := map[string]bool{}
	add := func(uri string, digest map[string]string) {
		if !seen[uri] {
			seen[uri] = true
			d.Resolved = append(d.Resolved, subject{URI: uri, Digest: digest})
		}
	}
	for _, p := range programs {
		for _, setting := range p.Settings {
			switch setting.Key {
			case "vcs.revision":
				commit = setting.Value
			case "vcs.modified":
				changed = changed || setting.Value == "true"
			}
		}
	}
	switch {
	case commit == "":
		d.External["source"] = "no commit is known"
	case changed:
		d.External["source"] = "commit " + commit + " with changes that are not committed"
	default:
		add("git+"+source+"@"+commit, map[string]string{"gitCommit": commit})
	}
	for _, p := range programs {
		add("pkg:golang/std@"+strings.TrimPrefix(p.GoVersion, "go"), map[string]string{})
		for _, m := range p.Deps {
			c, err := module(m, nil)
			if err != nil {
				return nil, err
			}
			add(c.PURL, map[string]string{"dirHash1": m.Sum})
		}
	}
	text, err := json.MarshalIndent(s, "", "  ")
	return append(text, '\n'), err
}

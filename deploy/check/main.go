// Check renders the chart with Helm's library, decodes every object strictly into the types of Kubernetes, and checks
// what the chart promises. It is a module of its own, which no program of Sotto imports.
//
//	go run . [-update]
//
// The rendered objects are kept in testdata, with the SHA-256 of the chart that they come from: a test of package cli
// compares it, so a chart that this program has not seen fails there. -update writes them.
package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	network "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

const chartDir = "../sotto"

func main() {
	update := flag.Bool("update", false, "write what is rendered to testdata")
	flag.Parse()
	if err := check(*update); err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(1)
	}
}

func check(update bool) error {
	sum, err := hash(os.DirFS(chartDir))
	if err != nil {
		return err
	}
	var all []error
	files, err := filepath.Glob("testdata/*.values.yaml")
	if err != nil || len(files) < 2 {
		return fmt.Errorf("found %d files of values: %w", len(files), err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		text, err := render(b)
		if err == nil {
			err = decoded(text)
		}
		if err != nil {
			all = append(all, fmt.Errorf("%s: %w", file, err))
			continue
		}
		text = fmt.Appendf(nil, "# The chart with SHA-256 %x, by go run . -update in deploy/check.\n%s", sum, text)
		kept := strings.TrimSuffix(file, ".values.yaml") + ".rendered.yaml"
		if update {
			if err := os.WriteFile(kept, text, 0o644); err != nil {
				return err
			}
		} else if old, err := os.ReadFile(kept); err != nil || !bytes.Equal(old, text) {
			all = append(all, fmt.Errorf("%s: is not what the chart gives; go run . -update writes it", kept))
		}
		fmt.Printf("%s: %d objects\n", file, bytes.Count(text, []byte("\nkind: ")))
	}
	all = append(all, refused(files[0]))
	return errors.Join(all...)
}

// hash is of all files of a chart, in their order.
func hash(chart fs.FS) ([]byte, error) {
	h := sha256.New()
	err := fs.WalkDir(chart, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(chart, name)
		fmt.Fprintf(h, "%s %d\n%s", name, len(b), b)
		return err
	})
	return h.Sum(nil), err
}

// render returns the chart's objects with these values, in the order of its files.
func render(values []byte) ([]byte, error) {
	c, err := loader.Load(chartDir)
	if err != nil {
		return nil, err
	}
	set, err := chartutil.ReadValues(values)
	if err != nil {
		return nil, err
	}
	full, err := chartutil.ToRenderValues(c, set,
		chartutil.ReleaseOptions{Name: "clinic", Namespace: "default", Revision: 1, IsInstall: true}, nil)
	if err != nil {
		return nil, err
	}
	out, err := engine.Render(c, full)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(out)) {
		if strings.HasSuffix(name, ".yaml") {
			fmt.Fprintf(&text, "---\n%s\n", strings.TrimSpace(out[name]))
		}
	}
	return text.Bytes(), nil
}

// decoded checks all objects of a text.
func decoded(text []byte) error {
	var all []error
	kinds := map[string]int{}
	for _, one := range strings.Split(string(text), "---\n")[1:] {
		var head struct{ Kind, APIVersion string }
		if err := yaml.Unmarshal([]byte(one), &head); err != nil {
			return err
		}
		kinds[head.APIVersion+" "+head.Kind]++
		strict := func(v any) error { return yaml.UnmarshalStrict([]byte(one), v) }
		var err error
		switch head.Kind {
		case "Job":
			j := &batch.Job{}
			if err = strict(j); err == nil {
				err = job(j)
			}
		case "Service":
			err = strict(&core.Service{})
		case "NetworkPolicy":
			p := &network.NetworkPolicy{}
			if err = strict(p); err == nil {
				err = policy(p)
			}
		default:
			err = errors.New("is of a kind that the chart should not have")
		}
		if err != nil {
			all = append(all, fmt.Errorf("%s: %w", head.Kind, err))
		}
	}
	want := map[string]int{"batch/v1 Job": 2, "v1 Service": 1, "networking.k8s.io/v1 NetworkPolicy": 2}
	if !maps.Equal(kinds, want) {
		all = append(all, fmt.Errorf("found %v; want %v", kinds, want))
	}
	return errors.Join(all...)
}

func yes(b *bool) bool { return b != nil && *b }
func no(b *bool) bool  { return b != nil && !*b }

// job checks what the chart promises of its pods.
func job(j *batch.Job) error {
	var all []error
	want := func(ok bool, what string) {
		if !ok {
			all = append(all, fmt.Errorf("%s: %s", j.Name, what))
		}
	}
	pod := &j.Spec.Template.Spec
	want(len(pod.Containers) == 1 && len(pod.InitContainers) == 0, "has other containers than one")
	c := &pod.Containers[0]
	want(no(pod.AutomountServiceAccountToken) && pod.ServiceAccountName == "", "has a token of a service account")
	want(pod.SecurityContext != nil && yes(pod.SecurityContext.RunAsNonRoot) && pod.SecurityContext.SeccompProfile != nil,
		"may run as root")
	s := c.SecurityContext
	want(s != nil && yes(s.ReadOnlyRootFilesystem) && no(s.AllowPrivilegeEscalation) && s.Capabilities != nil &&
		slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}), "has rights that it does not need")
	want(!pod.HostNetwork && !pod.HostPID && !pod.HostIPC, "shares what is the node's")
	want(c.LivenessProbe != nil && len(c.Resources.Limits) > 0 && len(c.Resources.Requests) > 0,
		"has no probe or no resources")
	want(c.TerminationMessagePolicy == core.TerminationMessageReadFile, "shows its log in its status")
	want(slices.ContainsFunc(c.Args, func(a string) bool {
		return strings.HasPrefix(a, "--owner-log=")
	}), "keeps no owner's log")
	want(pod.RestartPolicy == core.RestartPolicyNever && j.Spec.PodFailurePolicy != nil, "starts again after any failure")
	ends := false
	for _, r := range j.Spec.PodFailurePolicy.Rules {
		ends = ends || r.Action == batch.PodFailurePolicyActionFailJob && slices.Equal(r.OnExitCodes.Values, []int32{2, 3})
	}
	want(ends, "starts again after wrong input")
	// A secret is a mounted file of mode 0400, never a variable or an argument.
	want(len(c.EnvFrom) == 0, "takes variables from a Secret or a ConfigMap")
	for _, e := range c.Env {
		want(e.ValueFrom == nil || e.ValueFrom.SecretKeyRef == nil && e.ValueFrom.ConfigMapKeyRef == nil,
			e.Name+" is from a Secret")
	}
	secrets := 0
	for _, v := range pod.Volumes {
		if v.Secret != nil {
			secrets++
			want(v.Secret.DefaultMode != nil && *v.Secret.DefaultMode == 0o400, v.Name+" has another mode than 0400")
		}
		want(v.HostPath == nil, v.Name+" is of the node")
	}
	want(secrets > 0, "has no key")
	if strings.HasSuffix(j.Name, "-workers") {
		want(j.Spec.CompletionMode != nil && *j.Spec.CompletionMode == batch.IndexedCompletion &&
			*j.Spec.Completions == *j.Spec.Parallelism, "has no index for each shard")
		want(secrets == 1, "has more secrets than the key")
	} else {
		want(c.ReadinessProbe != nil, "is not asked whether it is ready")
	}
	return errors.Join(all...)
}

// policy checks that a policy closes both ways, opens no port to everyone, and no range of ports that holds one which
// others may use.
func policy(p *network.NetworkPolicy) error {
	if len(p.Spec.PolicyTypes) != 2 || len(p.Spec.PodSelector.MatchLabels) < 3 {
		return fmt.Errorf("%s: leaves a way open, or is for other pods", p.Name)
	}
	var ports []network.NetworkPolicyPort
	var single []int32
	for _, r := range p.Spec.Ingress {
		if len(r.From) == 0 || len(r.Ports) == 0 {
			return fmt.Errorf("%s: is open to all", p.Name)
		}
		for _, one := range r.Ports {
			ports = append(ports, one)
			if one.EndPort == nil {
				single = append(single, one.Port.IntVal)
			}
		}
	}
	for _, one := range ports {
		for _, port := range single {
			if one.EndPort != nil && one.Port.IntVal <= port && port <= *one.EndPort {
				return fmt.Errorf("%s: opens ports %v to %d, and %d to others alone", p.Name, one.Port, *one.EndPort, port)
			}
		}
	}
	for _, r := range p.Spec.Egress {
		if len(r.To) == 0 || len(r.Ports) == 0 {
			return fmt.Errorf("%s: reaches all", p.Name)
		}
	}
	return nil
}

// refused checks that wrong values are refused, and why.
func refused(file string) error {
	good, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var all []error
	for _, c := range []struct{ path, value, want string }{
		{"run.spec", `""`, "run.spec is missing: the ConfigMap"},
		{"run.shards", "0", "at '/run/shards': minimum: got 0, want 1"},
		{"run.shard", "2", "at '/run': additional properties 'shard' not allowed"},
		{"run.args", `["--shards=3"]`, "args: found --shards=3, which the chart sets"},
		{"key.secret", `""`, "key.secret is missing: the Secret"},
		{"key.secret", `"a b"`, "at '/key/secret': 'a b' does not match pattern"},
		{"ledger.url", `""`, "ledger.url is missing"},
		{"ledger.url", `"postgres://sotto:secret@db/ledger"`, "found one with a password"},
		{"ledger.url", `"postgres://sotto@db/ledger?password=secret"`, "found a password"},
		{"ledger.url", `"ledger.db"`, "none of the form postgres://USER@HOST:PORT/DATABASE"},
		{"ledger.passwordSecret", `""`, "ledger.passwordSecret is missing"},
		{"coordinator.claim", `""`, "coordinator.claim is missing"},
		{"networkPolicy.postgres", "[]", "networkPolicy.postgres is missing"},
		{"workers.data", `"/data/all.csv"`, "workers.data: found no {index}"},
		{"metrics.enabled", "true", "metrics.from is missing"},
		{"metrics.timings", "true", "metrics.timings: found true where metrics.enabled is false"},
		{"image.tag", `"latest"`, "at '/image/tag'"},
		{"user", "0", "at '/user': minimum: got 0"},
		{"coordinator.resources", "{requests: {cpu: many}, limits: {}}", "does not match pattern"},
	} {
		values := map[string]any{}
		if err := yaml.Unmarshal(good, &values); err != nil {
			return err
		}
		in, last := values, c.path
		if first, rest, ok := strings.Cut(c.path, "."); ok {
			last = rest
			if in, ok = values[first].(map[string]any); !ok {
				in = map[string]any{}
				values[first] = in
			}
		}
		var v any
		if err := yaml.Unmarshal([]byte(c.value), &v); err != nil {
			return err
		}
		in[last] = v
		b, err := yaml.Marshal(values)
		if err != nil {
			return err
		}
		if _, err := render(b); err == nil || !strings.Contains(err.Error(), c.want) {
			all = append(all, fmt.Errorf("%s: %s gives %v; want %q", c.path, c.value, err, c.want))
		}
	}
	return errors.Join(all...)
}

{{- /* What a person must decide, and what would not do what it seems to. The schema has the types. */ -}}
{{- define "sotto.check" -}}
{{- $v := .Values -}}
{{- if not $v.run.spec }}{{ fail "run.spec is missing: the ConfigMap with sotto.yaml and schema.yaml; kubectl create configmap NAME --from-file=sotto.yaml --from-file=schema.yaml makes it" }}{{ end -}}
{{- if not $v.key.secret }}{{ fail "key.secret is missing: the Secret with the field key; kubectl create secret generic NAME --from-file=key makes it from a file of 32 random bytes" }}{{ end -}}
{{- if not $v.ledger.url }}{{ fail "ledger.url is missing: where the budget is kept, as postgres://sotto@db.example:5432/ledger?sslmode=verify-full" }}{{ end -}}
{{- if not (regexMatch "^postgres(ql)?://[^:/@?#]+@[^@?#]+/[^@?#]+([?].*)?$" $v.ledger.url) }}{{ fail "ledger.url: found one with a password, or none of the form postgres://USER@HOST:PORT/DATABASE; use one without a password, which belongs into ledger.passwordSecret" }}{{ end -}}
{{- if regexMatch "[?&](password|sslpassword)=" $v.ledger.url }}{{ fail "ledger.url: found a password, which kubectl describe may show; use a URL without one" }}{{ end -}}
{{- if not $v.ledger.passwordSecret }}{{ fail "ledger.passwordSecret is missing: the Secret with the field pgpass, a password file of PostgreSQL" }}{{ end -}}
{{- if not $v.coordinator.claim }}{{ fail "coordinator.claim is missing: the PersistentVolumeClaim that keeps the run directory; without it a pod that starts again cannot continue the run" }}{{ end -}}
{{- if not $v.networkPolicy.postgres }}{{ fail "networkPolicy.postgres is missing: where PostgreSQL is, as [{ipBlock: {cidr: 10.1.2.3/32}}]" }}{{ end -}}
{{- if and (gt (int $v.run.shards) 1) (not (contains "{index}" $v.workers.data)) }}{{ fail "workers.data: found no {index}; use a name that contains it, as each shard has a table of its own" }}{{ end -}}
{{- if and $v.metrics.enabled (not $v.metrics.from) }}{{ fail "metrics.from is missing: the labels of the namespace whose pods may ask for metrics, as {kubernetes.io/metadata.name: monitoring}" }}{{ end -}}
{{- if and $v.metrics.timings (not $v.metrics.enabled) }}{{ fail "metrics.timings: found true where metrics.enabled is false; set both, or neither" }}{{ end -}}
{{- range concat $v.run.args $v.workers.args }}
{{- if regexMatch "^--?(workers|shards|key|ledger|out|or-resume|resume|owner-log|json|metrics|metrics-timings|health|hub|shard|index|data)(=|$)" . }}{{ fail (printf "args: found %s, which the chart sets; use other flags" .) }}{{ end -}}
{{- end -}}
{{- end }}
